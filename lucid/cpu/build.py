"""Compile the loops for the CPU beforehand: `python -m lucid.cpu.build`.

They come to lie in the cache of compiled code, `LUCID_CACHE_DIR` or ``~/.cache/lucid``, from which every process of the
same user and kind of processor takes them. What is not built so is compiled when it is first worth it.
"""

from __future__ import annotations

import argparse
import os
import pkgutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from lucid.cpu.functions import UNITS, Library
from lucid.cuda.cache import folder
from lucid.errors import KernelError

if TYPE_CHECKING:
    from collections.abc import Sequence

_PACKAGE = Path(__file__).parents[1]
_FORMULAS = "lucid.ops.base.formula.formulas"


def libraries() -> list[Library]:
    """Return the libraries of all functions that lucid declares, those made of formulas included."""
    for module in pkgutil.walk_packages([str(_PACKAGE)], "lucid.", onerror=lambda _: None):
        if not module.name.endswith("__main__"):
            # what needs a package that is not installed declares nothing here
            with suppress(ImportError):
                import_module(module.name)
    for formula in import_module(_FORMULAS).APPLIED:
        formula.loop  # noqa: B018 - it is declared when it is asked for
    return [library for unit in sorted(UNITS, key=lambda unit: unit.file) for library in unit.libraries.values()]


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the libraries; return 0, or 1 after printing an error."""
    parser = argparse.ArgumentParser(prog="python -m lucid.cpu.build", description=__doc__)
    parser.parse_args(arguments)
    console = Console(stderr=True)
    started = time.perf_counter()
    pool = ThreadPoolExecutor(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())
    try:
        built = [each for each in pool.map(Library.build, libraries()) if each]
    except KernelError as error:
        console.print(f"[bold red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        return 1
    finally:
        pool.shutdown(cancel_futures=True)
    seconds = time.perf_counter() - started
    console.print(f"{len(built)} libraries in {folder()}, {seconds:.1f} s", highlight=False, soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
