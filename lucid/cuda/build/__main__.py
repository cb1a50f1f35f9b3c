"""Compile lucid's kernels beforehand: `python -m lucid.cuda.build --arch sm_80,sm_90,sm_100`.

It needs NVRTC, and no GPU. Written beside the kernels' sources, which is the default, the folder is found by lucid and
taken along by a wheel; another is named to processes by LUCID_BUILT_KERNELS. They compile none of these kernels then.
"""

from __future__ import annotations

import argparse
import os
import pkgutil
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from lucid.cuda.build import archive
from lucid.cuda.build.nvrtc import Compiler, compiler
from lucid.cuda.launch.kernels import C_TYPES, FLOATS, KERNELS, Unit, unit
from lucid.errors import LucidError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_PACKAGE = Path(__file__).parents[2]
# The floating dtypes, by the names that users give them.
_DTYPES = {str(dtype): name for dtype, name in C_TYPES.items() if name in FLOATS}


def units(dtypes: Sequence[str] = tuple(_DTYPES)) -> list[Unit]:
    """Return all that lucid declares, but for floating dtypes that are not named; whoever needs no dtype is in it."""
    for module in pkgutil.walk_packages([str(_PACKAGE)], "lucid."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    absent = {name for dtype, name in _DTYPES.items() if dtype not in dtypes}
    groups = {(kernel.stem, each[0] if each else None) for kernel in KERNELS for each in kernel.instances}
    return [unit(*each) for each in sorted(groups, key=str) if each[1] not in absent]


def _build(
    nvrtc: Compiler, architecture: str, chosen: Sequence[Unit], out: Path, jobs: int, advance: Callable[[], None]
) -> tuple[str, ...]:
    """Compile units for one architecture into its archive, so many at once; return a row of the table."""
    started = time.perf_counter()

    def one(each: Unit) -> archive.Entry:
        image = nvrtc.compile(each, architecture)
        advance()
        return each, image

    pool = ThreadPoolExecutor(jobs)
    try:
        # those that take longest at first, so that none is left at the end alone
        longest = sorted(chosen, key=lambda each: -len(each.signatures) * len(each.source))
        images = list(pool.map(one, longest))
    finally:
        # what has not begun is left where one does not compile, or somebody pressed Ctrl-C
        pool.shutdown(cancel_futures=True)
    path = out / f"{architecture}.zip"
    archive.write(path, sorted(images, key=lambda entry: entry[0].name))
    kernels = sum(len(image.kernels) for _, image in images)
    size, seconds = path.stat().st_size / 1e6, time.perf_counter() - started
    return path.name, str(len(images)), f"{kernels:,}", f"{size:.1f}", f"{seconds:.1f}"


# ---- the command ----


def _architectures(text: str) -> list[str]:
    names = [each.strip() for each in text.split(",")]
    for each in names:
        if not re.fullmatch(r"sm_\d{2,3}", each):
            raise argparse.ArgumentTypeError(
                f"expected architectures such as sm_90, or sm_80,sm_90, got {each!r}; nvidia-smi "
                "--query-gpu=compute_cap --format=csv tells that of a device, 9.0 for sm_90"
            )
    return list(dict.fromkeys(names))


def _dtypes(text: str) -> list[str]:
    names = [each.strip() for each in text.split(",")]
    if unknown := [each for each in names if each not in _DTYPES]:
        raise argparse.ArgumentTypeError(f"expected some of {','.join(_DTYPES)}, got {unknown[0]!r}")
    return names


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got {text!r}")
    return int(text)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=archive.COMMAND, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--arch", type=_architectures, required=True, metavar="sm_90,...", help="of which devices")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where to (default: beside the kernels' sources)")
    parser.add_argument(
        "--dtype", type=_dtypes, default=list(_DTYPES), metavar="float32,...",
        help="floating dtypes to build for (default: all); kernels of integers are always built",
    )  # fmt: skip
    parser.add_argument(
        "--jobs",
        type=_positive,
        default=len(os.sched_getaffinity(0)),
        help="compilations at once (default: processors)",
    )
    return parser.parse_args(arguments)


def _run(options: argparse.Namespace, console: Console) -> None:
    nvrtc = compiler()
    if missing := [each for each in options.arch if each not in nvrtc.architectures]:
        raise LucidError(
            f"NVRTC {nvrtc.version} does not compile for {missing[0]}, but for {', '.join(nvrtc.architectures)}; "
            "leave it out, or install another NVRTC"
        )
    out = (options.out or archive.standard()).expanduser().absolute()
    # before minutes are spent
    out.mkdir(parents=True, exist_ok=True)
    if not os.access(out, os.W_OK):
        raise LucidError(f"{out} cannot be written; name a folder of your own by --out")
    chosen = units(options.dtype)
    table = Table("file", "units", "kernels", "MB", "seconds", title=f"Built by NVRTC {nvrtc.version}")
    with Progress(console=console) as progress:
        for architecture in options.arch:
            advance = partial(progress.advance, progress.add_task(architecture, total=len(chosen)))
            table.add_row(*_build(nvrtc, architecture, chosen, out, options.jobs, advance))
    console.print(table)
    console.print(f"written to {out}", highlight=False, soft_wrap=True)
    if options.out and out != archive.standard():
        console.print(f"processes find it by LUCID_BUILT_KERNELS={out}", highlight=False, soft_wrap=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the kernels; return 0, or 1 after printing an error."""
    options = _options(arguments)
    try:
        _run(options, Console(stderr=True))
    except (LucidError, OSError) as error:
        remedy = "; name a folder that can be written by --out" if isinstance(error, OSError) else ""
        words = f"[bold red]error:[/] {escape(str(error))}{escape(remedy)}"
        Console(stderr=True).print(words, highlight=False, soft_wrap=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
