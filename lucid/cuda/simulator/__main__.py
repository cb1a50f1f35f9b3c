"""Runs a script on simulated CUDA devices: ``python -m lucid.cuda.simulator script.py``, any that uses CuPy."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from lucid.cuda.build.nvrtc import compiler
from lucid.cuda.simulator.bootstrap import start
from lucid.cuda.simulator.settings import NVRTC, nvrtc, whole_number
from lucid.cuda.simulator.source import arguments
from lucid.errors import CudaUnavailableError, LucidError

if TYPE_CHECKING:
    from types import TracebackType

_SETTING = "LUCID_CUDA_SIMULATOR"
_OURS = frozenset({__file__, arguments.__file__, runpy.__file__, "<frozen runpy>"})


def main() -> None:
    """Read the command line, start the devices, and run the script, module or code as Python would."""
    parser = argparse.ArgumentParser(
        prog="python -m lucid.cuda.simulator",
        description="Run a script, or a module, that uses CuPy on CUDA devices simulated on the CPU.",
        usage="%(prog)s [--devices N] [--no-nvrtc] (SCRIPT | -m MODULE | -c CODE) [ARGUMENT ...]",
        allow_abbrev=False,
    )
    parser.add_argument("--devices", type=_number, metavar="N", help=f"1 to 64; default: ${_SETTING}, else 1")
    parser.add_argument(
        "--nvrtc",
        action=argparse.BooleanOptionalAction,
        help=f"let NVIDIA's compiler check each source too; default: ${NVRTC}, else if it is installed",
    )
    # each takes all that follows, which is the script's
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="run a module, as python -m does")
    parser.add_argument("-c", dest="code", nargs=argparse.REMAINDER, help="run code, as python -c does")
    parser.add_argument("script", nargs=argparse.REMAINDER, help="file, folder or archive, and its arguments")
    options = parser.parse_args()
    chosen = options.module or options.code or options.script
    if not chosen:
        parser.error("name a script, -m and a module, or -c and code")
    try:
        os.environ[_SETTING] = str(options.devices or whole_number(_SETTING, 1, 64) or 1)
        start()
        _choose_nvrtc(options.nvrtc)
    except LucidError as error:
        parser.exit(1, f"{parser.prog}: {error}\n")
    sys.excepthook = _print_without_us
    sys.argv = list(chosen)
    if options.module:
        runpy.run_module(chosen[0], run_name="__main__", alter_sys=True)
    elif options.code:
        _search_first("")
        sys.argv[0] = "-c"
        sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(chosen[0], "<string>", "exec"), vars(sys.modules["__main__"]))  # noqa: S102 - what it is for
    elif Path(chosen[0]).exists():
        _search_first(str(Path(chosen[0]).resolve().parent))
        runpy.run_path(chosen[0], run_name="__main__")
    else:
        parser.exit(2, f"{parser.prog}: can't open file {chosen[0]!r}: there is none\n")


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= 64):
        raise argparse.ArgumentTypeError(f"expected a whole number of 1 to 64, got {text!r}")
    return int(text)


def _choose_nvrtc(asked: bool | None) -> None:
    """Have NVIDIA's compiler asked or not, as the option or the setting says, otherwise if it is installed."""
    if asked is None and NVRTC not in os.environ:
        with suppress(CudaUnavailableError):
            compiler()  # by its path, after ours of its name
            asked = True
    if asked is not None:
        os.environ[NVRTC] = str(int(asked))
    if nvrtc():
        compiler()


def _search_first(folder: str) -> None:
    """Put the folder first in the import path, in the place of the entry for ``-m``."""
    if not sys.flags.safe_path:
        sys.path[0] = folder


def _print_without_us(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    while traceback is not None and traceback.tb_frame.f_code.co_filename in _OURS:
        traceback = traceback.tb_next
    place = traceback
    while place is not None and place.tb_next is not None:
        if place.tb_next.tb_frame.f_code.co_filename in _OURS:
            place.tb_next = place.tb_next.tb_next
        else:
            place = place.tb_next
    sys.__excepthook__(kind, error.with_traceback(traceback), traceback)


if __name__ == "__main__":
    main()
