"""Functions in C++ from ``kernels/cpu``, declared by their callers; without a compiler NumPy does their work.

A function gives the bits that NumPy gives, or is compiled when it is called first, with `BUILD` as its work: a result
never depends on what was compiled by then, nor on the number of elements.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from lucid.backends import cpu
from lucid.base.locks import Once
from lucid.errors import KernelError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.base.arrays import Array
    from lucid.cuda.source.signature import Source

    Call: TypeAlias = Callable[..., None]

LOOK, BUILD = 1 << 12, 1 << 20
"""Elements that are worked on before a library is loaded, and before it is compiled: small scripts wait for neither."""

_COMPILER = "lucid.cpu.compiler"
_TYPES: dict[str, Any] = {
    "P": ctypes.c_void_p, "q": ctypes.c_int64, "Q": ctypes.c_uint64, "i": ctypes.c_int32, "I": ctypes.c_uint32,
    "d": ctypes.c_double, "f": ctypes.c_float, "?": ctypes.c_bool,
}  # fmt: skip


UNITS: list[Unit] = []
"""The files of which functions are declared."""

_FILES: dict[str, Unit] = {}


class Library:
    """The functions of a file for one dtype, compiled together once enough elements were worked on.

    Parameters
    ----------
    unit : Unit
        The file.

    Attributes
    ----------
    instances : dict
        C++ names with template arguments, by the names of their symbols.
    """

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.instances: dict[str, str] = {}
        self._loaded: ctypes.CDLL | None = None
        self._worked = 0
        self._next = LOOK
        self._once: Once[int, None] = Once()

    def work(self, elements: int) -> ctypes.CDLL | None:
        """Return the library, or None while it is not worth its compilation, or cannot be compiled."""
        if self._loaded is None:
            self._worked += elements
            if self._worked >= self._next:
                # other threads that ask meanwhile wait for it
                self._once(self._next, self._load)
        return self._loaded

    def _load(self) -> None:
        make = self._worked >= BUILD
        following = sys.maxsize if make else BUILD
        try:
            if sys.platform != "win32":
                self.build(make=make)
        except (KernelError, OSError) as error:
            following = sys.maxsize
            log = import_module("logging").getLogger("lucid.cpu")
            log.info("%s is not compiled, and NumPy does its work: %s", self.unit.file, error)
        self._next = following

    def build(self, *, make: bool = True) -> bool:
        """Load the library, compiled if it was not before and `make` says so; return whether there is one.

        Raises
        ------
        KernelError
            If there is no compiler, or it finds an error.
        OSError
            If the library cannot be loaded.
        """
        source = self.unit.source
        path = None if source is None else import_module(_COMPILER).library(source, self.instances, make=make)
        if path is not None:
            self._loaded = ctypes.CDLL(str(path))
        return path is not None


class Unit:
    """A file of ``kernels/cpu``, or one that is made.

    Parameters
    ----------
    file : str
        Its name; those that are made may share one.
    made : callable, optional
        Gives the text of a file that stands nowhere; "" if there is nothing to compile.

    Attributes
    ----------
    functions : list of Function
        What is declared of it.
    libraries : dict of str to Library
        By the first template argument of their functions, "" of those that are no templates.
    """

    def __init__(self, file: str, made: Callable[[], str] | None = None) -> None:
        UNITS.append(self)
        self.file = file
        self._made = made
        self.functions: list[Function] = []
        self.libraries: dict[str, Library] = {}

    @cached_property
    def source(self) -> Source | None:
        """The text of the file, and its declarations; None if there is nothing to compile."""
        if self._made is not None and not self._made():
            return None
        # with what compiles and keeps code it would be a tenth of `import lucid`
        return import_module(_COMPILER).whole(self.file, self._made)

    def library(self, arguments: tuple[str, ...]) -> Library:
        """Return the library of functions with these template arguments."""
        key = arguments[0] if arguments else ""
        if key not in self.libraries:
            self.libraries[key] = Library(self)
        return self.libraries[key]


class Function:
    """A function of a file in ``kernels/cpu``.

    Parameters
    ----------
    file : str or Unit
        The file.
    name : str
        The function there, in namespace lucid.
    instances : sequence of tuple of str
        The template arguments that it is compiled for, or ``[()]`` of no template.

    Attributes
    ----------
    instances : dict
        The symbols by template arguments.
    """

    def __init__(self, file: str | Unit, name: str, instances: Sequence[tuple[str, ...]] = ((),)) -> None:
        self.name = name
        if isinstance(file, str):
            file = _FILES.get(file) or _FILES.setdefault(file, Unit(file))
        self.unit = file
        file.functions.append(self)
        self.instances: dict[tuple[str, ...], str] = {}
        for each in instances:
            self.instances[each] = symbol = "_".join([name, *each]).replace(" ", "_")
            self.unit.library(each).instances[symbol] = f"{name}<{', '.join(each)}>" if each else name
        self._calls: dict[tuple[str, ...], Call] = {}

    def __call__(self, work: int, *arguments: str) -> Call | None:
        """Return the function for these template arguments; None if NumPy does its work.

        It takes numbers, and addresses for pointers, and lets other threads run meanwhile.

        Parameters
        ----------
        work : int
            How many elements it will work on.
        *arguments : str
            Of its template.
        """
        if not cpu.compiled:
            return None
        call = self._calls.get(arguments)
        if call is not None:
            return call
        if arguments not in self.instances:
            return None
        library = self.unit.library(arguments).work(work)
        return None if library is None else self._bound(library, arguments)

    def _bound(self, library: ctypes.CDLL, arguments: tuple[str, ...]) -> Call:
        source: Any = self.unit.source
        codes = source.signature(self.name, arguments)
        pointer = ctypes.c_void_p.in_dll(library, self.instances[arguments]).value or 0
        call: Call = ctypes.CFUNCTYPE(None, *[_TYPES[code] for code in codes])(pointer)
        self._calls[arguments] = call
        return call


def _told(array: Array) -> int:
    return array.__array_interface__["data"][0]


# An array of NumPy's begins with the address of its elements, behind what every object of Python's begins with: all
# that is compiled against NumPy reads it there. Asking for it takes six times as long.
_HEAD = object.__basicsize__
_POINTER = ctypes.c_size_t


def _read(array: Array) -> int:
    place = id(array)
    # one of a class that inherits from it begins so, too; a number of NumPy's, which is no array, does not
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected an array of NumPy's, got {type(array).__name__}")
    return _POINTER.from_address(place + _HEAD).value


_sample: Array = np.zeros(3)[1:]
_known = sys.implementation.name == "cpython" and _read(_sample) == _told(_sample)
first_element: Callable[[Array], int] = _read if _known else _told
"""Gives the address of the first element of an array of NumPy's, for loops that are told its strides."""


def address(array: Array) -> int:
    """Return the address of an array of NumPy's that is in the order of C, and aligned, as loops expect it."""
    flags = array.flags
    if not (flags.c_contiguous and flags.aligned):
        raise ValueError("expected an array in the order of C, and aligned: lucid.cpu.functions.dense makes one")
    return first_element(array)


def dense(array: Array) -> Array:
    """Return an array in the order of C, and aligned, copied if it is not."""
    flags = array.flags
    # a number of NumPy's has flags, too
    if type(array) is np.ndarray and flags.c_contiguous and flags.aligned:
        return array
    return np.require(array, requirements=["C", "A"])
