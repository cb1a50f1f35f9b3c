"""Reports of lucid's work beside its results: the logger ``lucid.cuda``, and progress bars on a terminal."""

from __future__ import annotations

import atexit
import contextlib
import sys
from typing import TYPE_CHECKING

from lucid.base.locks import new_rlock

if TYPE_CHECKING:
    import logging
    from collections.abc import Generator

    from rich.progress import Progress, TaskID


def logger() -> logging.Logger:
    """Return the logger ``lucid.cuda``."""
    import logging  # noqa: PLC0415  it takes a twentieth of the time of `import lucid`

    return logging.getLogger("lucid.cuda")


def shows_progress() -> bool:
    """Return whether progress bars are shown: the output of errors is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


# The display of all bars of the process, while there are some: two on one terminal would overwrite each other.
_display: Progress | None = None
# reentrant: the garbage collector may end a bar while another one begins
_lock = new_rlock()


@contextlib.contextmanager
def progress_bar(name: str, total: float | None, completed: int = 0) -> Generator[tuple[Progress, TaskID]]:
    """Show a bar meanwhile; give rich's display and the task in it, for ``display.advance(task, steps)``."""
    global _display
    from rich.console import Console  # noqa: PLC0415  only who sees a bar needs it
    from rich.progress import Progress  # noqa: PLC0415  as above

    with _lock:
        if _display is None:
            _display = Progress(console=Console(stderr=True), transient=True)
            # a bar that is left when Python ends is too late to draw on the terminal
            atexit.register(_display.stop)
            _display.start()
        display = _display
        task = display.add_task(name, total=total, completed=completed)
    try:
        yield display, task
    finally:
        with _lock:
            display.remove_task(task)
            if not display.tasks:
                display.stop()
                atexit.unregister(display.stop)
                _display = None
