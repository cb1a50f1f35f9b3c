"""Arguments of raw kernels are compared with the parameters of the source: CUDA copies bytes, whatever they mean.

What a kernel may mean passes: integers of either sign, bytes for anything, parts of complex numbers. Memory passes
unseen as ``x.data``.
"""

from __future__ import annotations

import ctypes
import gc
from functools import cache
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.cuda.simulator.runtime import runtime
from lucid.cuda.source.signature import NUMBERS, Source, declared
from lucid.errors import KernelError, warn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


# By the codes of runtime.h; l is a long long.
_DTYPES = {code: np.dtype(code) for code in "?bBhHiIqQfd"} | {"l": np.dtype(np.int64), "L": np.dtype(np.uint64)}


def compare_arguments(cupy: Any, source_of: Callable[[str], str | None]) -> None:
    """Let every `cupy.RawKernel` check the arguments of its calls.

    Parameters
    ----------
    cupy : module
        CuPy, imported.
    source_of : callable
        Gives the source from which a library was made, by its path.
    """
    raw, function = cupy.RawKernel, cupy.cuda.function.Function
    # a class of C's takes no new attributes; the dictionary behind does
    attributes = gc.get_referents(raw.__dict__)[0]
    original = attributes["kernel"]

    class Compared(function):
        def __call__(self, grid: Any, block: Any, args: Sequence[Any], *others: Any, **named: Any) -> Any:
            instance = ctypes.c_void_p(self.ptr)
            codes = runtime().lucid_parameters(instance, ctypes.byref(ctypes.c_uint())).decode()
            name = runtime().lucid_name(instance).decode()
            text = source_of(runtime().lucid_path(instance).decode())
            compare(name, codes, _parameters(text or "", name), args, cupy.ndarray)
            return function.__call__(self, grid, block, args, *others, **named)

    def kernel(self: Any) -> Any:
        plain = original.__get__(self)
        handle = ctypes.c_void_p(plain.ptr)
        return Compared(plain.module, runtime().lucid_name(handle).decode())

    attributes["kernel"] = property(kernel)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(raw))


@cache
def _parameters(text: str, name: str) -> list[tuple[str, str, int]]:
    """Return name, type and stars of each parameter of a kernel; none if its source does not tell them."""
    try:
        template, parameters = Source(text, "kernel.cu").kernels.get(name, ("", []))
    except KernelError:
        return []
    if template is not None:
        return []
    each = [declared(parameter)[0] for parameter in parameters]
    return [(one.name, one.type, one.stars) for one in each]


def compare(
    kernel: str, codes: str, parameters: Sequence[tuple[str, str, int]], args: Sequence[Any], array: type
) -> None:
    """Refuse arguments that a kernel cannot mean.

    Raises
    ------
    TypeError
        If there are too few or too many, or one is of another type than its parameter.
    """
    if len(args) != len(codes):
        raise TypeError(f"{kernel} takes {len(codes)} arguments, got {len(args)}")
    known = parameters if len(parameters) == len(codes) else [("", "", 0)] * len(codes)
    numbers = {int(one) for one in args if isinstance(one, Integral)}
    for place, (code, (name, kind, stars), one) in enumerate(zip(codes, known, args, strict=True), 1):
        what = f"argument {place} of {kernel}{f', {name},' if name else ''}"
        if isinstance(one, array):
            _compare_array(what, code, kind if stars == 1 else "", one, numbers)
        elif code in _DTYPES:
            _compare_number(what, _DTYPES[code], one)
        elif code == "P" and isinstance(one, (float, complex, np.inexact)):
            raise TypeError(f"{what} is {one!r}, and the parameter a pointer: pass an array")


def _compare_array(what: str, code: str, kind: str, one: Any, numbers: set[int]) -> None:
    if code in _DTYPES:
        raise TypeError(f"{what} is an array, and the parameter a number of {_DTYPES[code]}: pass x.item()")
    if code != "P":
        return
    if kind in NUMBERS and not _may_mean(one.dtype, NUMBERS[kind].dtype):
        raise TypeError(
            f"{what} is an array of {one.dtype}, and the parameter a pointer to {kind}: pass x.astype(...), or x.data "
            "for the memory as it is"
        )
    flags = one.flags
    if not (flags.c_contiguous or flags.f_contiguous or numbers.intersection(_steps(one))):
        warn(
            f"{what} is a view of strides {one.strides}, of which the kernel is given none: it sees the memory and not "
            "the view; pass cupy.ascontiguousarray(x), or x.data for the memory as it is",
            RuntimeWarning,
        )


def _may_mean(actual: np.dtype[Any], expected: np.dtype[Any]) -> bool:
    if expected.itemsize == 1 or actual.itemsize == 1 or actual == expected:
        return True
    if actual.kind == "c":
        return actual.itemsize == 2 * expected.itemsize and expected.kind == "f"
    same_kind = (actual.kind in "iu") == (expected.kind in "iu")
    # half types are often passed as their bits
    return actual.itemsize == expected.itemsize and (same_kind or actual.itemsize == 2)


def _steps(one: Any) -> set[int]:
    return {*one.strides, *(stride // one.itemsize for stride in one.strides)}


def _compare_number(what: str, expected: np.dtype[Any], one: Any) -> None:
    # as many bytes as CuPy makes of it; those of an integer begin with the lowest
    if not isinstance(one, (bool, int, float, np.bool_, np.number)):
        return
    actual: np.dtype[Any] = np.asarray(one).dtype
    whole = actual.kind in "biu" and expected.kind in "biu"
    if actual == expected or (whole and actual.itemsize >= expected.itemsize):
        return
    raise TypeError(f"{what} is {one!r}, {actual.itemsize} bytes of {actual}, and the parameter {expected}: pass "
                    f"numpy.{expected}({one})")  # fmt: skip
