"""How a file is refused: one handler turns whatever reading it raises into errors that name the file."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from lucid.errors import CheckpointError, DeviceError, OutOfMemoryError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from lucid.serialization.locations import Locations


MOST_SHOWN = 80  # letters of a name in a file
LONGEST = 300  # letters of what is wrong with it


class NotLoadedError(CheckpointError, TypeError):
    """A file holds something else than tensors and plain values."""


class NotLoaded(Exception):
    """A sound file holds something that lucid does not load; the words follow the file's name."""


class TooMuch(Exception):
    """Part of a file would take more memory or time than is spent on it; the words follow the file's name."""


def plain(text: str, most: int) -> str:
    """Return a text with escapes for unprintable letters, cut if it is long."""
    cut = text if len(text) <= most else f"{text[:most]}..."
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in cut)


def shown(name: object) -> str:
    """Return a name from a file for messages: quoted, escaped, and cut if it is long."""
    if not isinstance(name, str):
        return type(name).__name__ if not isinstance(name, int | None) or abs(name or 0) >= 2**64 else repr(name)
    return repr(name) if len(name) <= MOST_SHOWN else f"{name[:MOST_SHOWN]!r}..."


def reason(error: Exception) -> str:
    """Return the message of an error."""
    try:
        words = str(error)
    except ValueError:  # a number of thousands of digits
        words = ""
    return plain(f"{type(error).__name__}: {words}" if words else type(error).__name__, LONGEST)


@contextlib.contextmanager
def checked(source: str, what: str | Callable[[], str], place: Locations | None = None) -> Generator[None]:
    """Turn errors inside into a CheckpointError: `source`, its fault, and the reason.

    Errors of the system, such as a file that is not there, and of the user's own `map_location` stay as they are, and
    so does what is a CheckpointError, a device that does not exist, or memory that ran out.
    """
    try:
        yield
    except (CheckpointError, DeviceError, OutOfMemoryError, MemoryError):
        raise
    except NotLoaded as error:
        raise NotLoadedError(
            f"load: {source} {plain(str(error), LONGEST)}, which is not loaded: expected tensors, numbers, strings, "
            "bools, None, and dicts, lists and tuples of these; in PyTorch, save the state_dict() alone"
        ) from error
    except TooMuch as error:
        raise CheckpointError(f"load: {source} {error}") from error
    except Exception as error:
        of_the_system = isinstance(error, OSError) and error.errno is not None
        if of_the_system or (place is not None and error is place.raised):
            raise
        words = what if isinstance(what, str) else what()
        raise CheckpointError(f"load: {source} {words} ({reason(error)})") from error


def some(names: Sequence[str], most: int = 5) -> str:
    """Return the first of some names as messages show them, and how many there are more."""
    first = ", ".join(plain(name, MOST_SHOWN) for name in names[:most])
    return first if len(names) <= most else f"{first} and {len(names) - most} more"
