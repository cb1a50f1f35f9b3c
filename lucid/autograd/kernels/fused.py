"""Functions made by `cupy.fuse`: called with terms instead of arrays they give their formulas."""

from __future__ import annotations

import copy
import inspect
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from lucid.autograd.base import TensorBase, is_tuple
from lucid.autograd.kernels.expressions import ZERO, Term, number, parse, replaced
from lucid.autograd.kernels.formulas import Formulas, computed_in, seeds_of, working_dtype
from lucid.autograd.kernels.recording import NUMBERS, Call, KernelWithDerivative, no_derivative
from lucid.autograd.kernels.slopes import gradients
from lucid.base import gpu
from lucid.errors import ArgumentError, GraphError, KernelError, NotDifferentiableError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["Fused"]

# CuPy's names of ufuncs, as expressions of their operands in the dtypes of CuPy's loop. No other is read: a function of
# C's that has the same name may be another one.
_TRUTHS = {
    "greater": "a > b", "less": "a < b", "greater_equal": "a >= b", "less_equal": "a <= b", "equal": "a == b",
    "not_equal": "a != b", **{name: f"{name}(a)" for name in ("isnan", "isinf", "isfinite", "signbit")},
}  # fmt: skip
# of any operands that are true or not; of bools alone the second four
_LOGICAL = {
    "logical_and": "a && b", "logical_or": "a || b", "logical_xor": "!a != !b", "logical_not": "!a",
    "bitwise_and": "a && b", "bitwise_or": "a || b", "bitwise_xor": "!a != !b", "invert": "!a",
}  # fmt: skip
_NUMBERS = {
    "add": "a + b", "subtract": "a - b", "multiply": "a * b", "true_divide": "a / b", "divide": "a / b",
    "floor_divide": "floor(a / b)", "remainder": "a - floor(a / b) * b", "fmod": "fmod(a, b)", "negative": "-a",
    "positive": "a", "power": "pow(a, b)", "square": "a * a", "reciprocal": "1 / a", "absolute": "abs(a)",
    "fabs": "abs(a)", "copysign": "copysign(a, b)", "maximum": "max(a, b)", "minimum": "min(a, b)",
    "fmax": "fmax(a, b)", "fmin": "fmin(a, b)", "where": "a ? b : c", "arctan2": "atan2(a, b)", "hypot": "hypot(a, b)",
    **{f"arc{name}": f"a{name}(a)" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{name: f"{name}(a)" for name in (
        "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sqrt",
        "rsqrt", "cbrt", "floor", "ceil", "rint", "trunc",
    )},
}  # fmt: skip
# as integers compute; all others go through floating-point numbers
_INTEGERS = {
    **{name: _NUMBERS[name] for name in (
        "add", "subtract", "multiply", "negative", "positive", "square", "maximum", "minimum", "where",
    )},
    "floor_divide": "b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0)",
    "remainder": "b == 0 ? 0 : a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0)",
    "reciprocal": "a == 0 ? 0 : 1 / a", "absolute": "a < 0 ? -a : a", "fmax": "max(a, b)", "fmin": "min(a, b)",
}  # fmt: skip
_UFUNCS = {**_TRUTHS, **_LOGICAL, **_NUMBERS}
_FLOAT = np.dtype(np.float64)
_BOOL = np.dtype(np.bool_)
_NOT_READ = (KernelError, NotDifferentiableError, RecursionError, TypeError, ValueError, AttributeError, OverflowError)


class _WritesError(Exception):
    """The function writes into an argument."""


class _Kind(NamedTuple):
    """All of a value that CuPy looks at before it reads a function."""

    dtype: np.dtype[Any]
    number: type | None = None
    ndim: int = 0


class Traced(np.lib.mixins.NDArrayOperatorsMixin):
    """Stand-in for an array while a function is read; its operators and CuPy's ufuncs give others."""

    def __init__(self, term: Term, kind: _Kind) -> None:
        self.term, self.kind, self.dtype = term, kind, kind.dtype

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: object, **settings: object) -> Any:
        """Take note of an operator."""
        return self._noted(ufunc.__name__, getattr(gpu.cupy(), ufunc.__name__, None), method, inputs, settings)

    def __cupy_override_elementwise_kernel__(self, kernel: Any, *inputs: object, **settings: object) -> Any:
        """Note a ufunc of CuPy's, called through this method of its arguments."""
        return self._noted(kernel.name.removeprefix("cupy_"), kernel, "__call__", inputs, settings)

    def _noted(self, name: str, ufunc: Any, method: str, inputs: Sequence[Any], settings: Mapping[str, Any]) -> Any:
        if name not in _UFUNCS or method != "__call__" or settings.keys() - {"out"}:
            raise KernelError(" with ".join([name, *settings, method]).removesuffix(" with __call__") + " is not read")
        if settings.get("out") is not None or len(inputs) > ufunc.nin:
            raise _WritesError
        dtypes, result = _loop(name, ufunc, inputs)
        text = _UFUNCS[name]
        whole = name in _NUMBERS and result.kind in "biu"
        if whole and name in _INTEGERS:
            text = _INTEGERS[name]
        elif whole:
            dtypes = [_FLOAT] * len(inputs)
        elif name in _LOGICAL:
            if "logical" not in name and result != _BOOL:
                raise KernelError(f"{name} of integers is not read")
            dtypes = [_BOOL] * len(inputs)
        elif name in {"divide", "true_divide"}:
            dtypes = [result] * 2
        parts = list(map(_written, inputs, dtypes))
        term = _put(text, parts)
        if name in _TRUTHS and sorted(dtype.kind for dtype in dtypes) == ["i", "u"]:
            # as CuPy does it: C would take what is negative for a large number
            signed = [part if dtype.kind == "i" else ZERO for part, dtype in zip(parts, dtypes, strict=True)]
            negative = Term("<", (parts[dtypes[0].kind == "u"], ZERO))
            term = Term("?", (negative, _put(text, signed), term))
        # C computes with bools and short integers in longer ones, and with half types in float
        rounded = whole or (name in _NUMBERS and result.itemsize == 2)
        return Traced(_cast(term, result) if rounded and name != "where" else term, _Kind(result))

    def astype(self, dtype: Any, **_: object) -> Traced:
        """Return a cast."""
        dtype = np.dtype(dtype)
        return self if dtype == self.dtype else Traced(_cast(self.term, dtype), _Kind(dtype))

    def __setitem__(self, key: object, value: object) -> None:
        raise _WritesError

    def __bool__(self) -> bool:
        raise KernelError("a condition decides what the function does: use cupy.where")

    def __getattr__(self, name: str) -> Any:
        raise KernelError(f".{name} of an array is not read")


def _put(text: str, parts: Sequence[Term]) -> Term:
    return replaced(parse(text), dict(zip(map(Term, "abc"), parts, strict=False)))


def _kind(value: object) -> _Kind:
    """Return the kind of an operand, traced or a number."""
    kind = type(value)
    if isinstance(value, Traced):
        return value.kind
    if isinstance(value, NUMBERS):
        return _Kind(np.dtype(kind), kind)
    raise KernelError(f"{kind.__name__} among the arguments of a function is not read")


def _loop(name: str, ufunc: Any, inputs: Sequence[object]) -> tuple[list[np.dtype[Any]], np.dtype[Any]]:
    """Return the dtypes of CuPy's loop of a ufunc in a fused function: of the operands, and of the result."""
    kinds = list(map(_kind, inputs))
    # asked of CuPy as it asks itself: beside numbers it takes other dtypes than NumPy does
    numbers = tuple([kind.number or False for kind in kinds])
    dtypes = tuple([kind.dtype for kind in kinds])
    loop: Any = ufunc._ops._guess_routine_from_in_types(dtypes, numbers)  # noqa: SLF001
    taken = [np.dtype(each) for each in (*loop.in_types, *loop.out_types)] if loop and loop.routine else []
    if not taken or any(dtype.kind not in "biufV" for dtype in taken):
        raise KernelError(f"{name} of {', '.join(kind.dtype.name for kind in kinds)} is not read")
    return taken[:-1], taken[-1]


def _written(value: object, dtype: np.dtype[Any]) -> Term:
    """Return an operand in a dtype; for bools anything that is true or not."""
    if isinstance(value, Traced):
        return value.term if dtype in {value.dtype, _BOOL} else _cast(value.term, dtype)
    with np.errstate(all="ignore"):
        exact = np.asarray(value).astype(dtype)
    if dtype.kind in "fV":
        return number(float(exact), single=dtype.itemsize < 8)
    whole = Term(f"{int(exact)}u") if dtype.kind == "u" else number(int(exact))
    return whole if dtype == _BOOL else _cast(whole, dtype)


def _cast(term: Term, dtype: np.dtype[Any]) -> Term:
    if working_dtype(dtype) != dtype:
        term = Term(f"({dtype.name})", (term,))
    return Term(f"({computed_in(dtype)})", (term,))


def _kind_of(value: object) -> _Kind | None:
    """Return the kind of an argument of a call."""
    array: Any = value.array if isinstance(value, TensorBase) else value
    if array is None:
        return None
    if isinstance(array, NUMBERS):
        return _kind(cast("object", array))
    dtype: Any = getattr(array, "dtype", None)
    if not hasattr(dtype, "kind"):  # an array of another library's
        lent: Any = getattr(array, "__cuda_array_interface__", None)
        dtype = np.dtype(lent["typestr"]) if lent else np.asarray(array).dtype
    return _Kind(dtype, None, getattr(array, "ndim", 0))


class Fused(KernelWithDerivative):
    """A function of `cupy.fuse` that takes Tensors: ``f(x, y)``."""

    def __init__(self, kernel: Any, texts: Mapping[str, str], backward: Callable[..., Any] | None) -> None:
        name: str = kernel.name or "fused"
        if not name.isidentifier():
            raise KernelError(f"{name}: CuPy compiles no function of this name: use def, or cupy.fuse(kernel_name='f')")
        parameters = list(inspect.signature(kernel.func).parameters)
        super().__init__(kernel, name, parameters, parameters, ["out"], texts, backward)
        # by all that CuPy reads the function anew for: its numbers and conditions are those of these dtypes
        self._variants: dict[Any, Fused] = {}
        self.failed: Exception | None = None
        try:
            terms = self._read([_Kind(_FLOAT)] * len(parameters))
            self.results = tuple(terms)
            if self.derived:
                texts = self._gradient_texts(terms, parameters)
        except _NOT_READ as error:
            if self.derived:
                raise no_derivative(name, error, parameters[0] if parameters else "x") from error
        self.formulas = Formulas(name, texts)

    def _gradient_texts(self, terms: Mapping[str, Term], wanted: Sequence[str]) -> dict[str, str]:
        """Return the gradients of some parameters as texts."""
        seeds = seeds_of(list(terms), self.parameters, alone=True)
        slopes = gradients(terms, {each: Term(seed) for each, seed in seeds.items()}, wanted)
        return {each: str(term) for each, term in slopes.items()}

    def _for(self, args: Sequence[Any]) -> Fused:
        """Return the function as CuPy reads it for the kinds of some arguments, with the gradients that it has then."""
        if not self.derived:
            return self
        kinds = tuple(map(_kind_of, args))
        variant = self._variants.get(kinds)
        if variant is None:
            variant = self._variants[kinds] = copy.copy(self)
            # one of its own, which CuPy reads now too: what the function finds outside of its arguments may change
            variant.kernel = type(self.kernel)(self.kernel.func, self.kernel.name)
            wanted = [
                name for name, kind in zip(self.parameters, kinds, strict=True) if kind and kind.dtype.kind in "fV"
            ]
            texts: dict[str, str] = {}
            try:
                texts = self._gradient_texts(self._read(kinds), wanted)
            except _NOT_READ as error:
                variant.failed = error.with_traceback(None)
            halves = [half for half in ("float16", "bfloat16") if any(f"({half})" in text for text in texts.values())]
            preamble = "".join([f"#include <cupy/{half}.cuh>\n" for half in halves])
            variant.formulas = Formulas(self.name, texts, preamble)
        return variant

    def _wanted(self, call: Call, needs: Sequence[bool], arrays: Sequence[Any]) -> list[str]:
        if self.failed is not None and any(needs):
            raise no_derivative(self.name, self.failed, self.parameters[0]) from self.failed
        return super()._wanted(call, needs, arrays)

    def _read(self, kinds: Sequence[_Kind | None]) -> dict[str, Term]:
        """Return the function's terms, by names of its outputs."""
        traced = [kind and Traced(Term(each), kind) for each, kind in zip(self.parameters, kinds, strict=True)]
        try:
            result = self.kernel.func(*traced)
        except _WritesError:
            raise GraphError(
                f"{self.name} writes into an argument, which is not recorded: return what it computes instead"
            ) from None
        entries: Sequence[Any] = result if is_tuple(result) else (result,)
        names = ["out"] if len(entries) == 1 else [f"out{index}" for index in range(len(entries))]
        return {each: _written(entry, _kind(entry).dtype) for each, entry in zip(names, entries, strict=True)}

    def __call__(self, *args: Any) -> Any:
        """Return the function's result as Tensors, recorded if an argument requires grad."""
        if len(args) != len(self.parameters):
            raise ArgumentError(f"{self.name}: expected {', '.join(self.parameters)}, got {len(args)} arguments")

        variant = self._for(args)

        def launch(arrays: Sequence[Any]) -> Sequence[Any]:
            result = variant.kernel(*arrays)
            return result if is_tuple(result) else (result,)

        return variant.record(args, self.parameters, launch, {})

    def number(self, name: str, value: object, types: Mapping[str, np.dtype[Any]], result: np.dtype[Any]) -> Any:
        """Return a number as the function computes with it: a Python float beside float32 is one."""
        # gradients that are found cast it themselves
        return np.float32(value) if isinstance(value, float) and result.itemsize <= 4 and not self.derived else value
