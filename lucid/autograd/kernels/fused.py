"""Functions made by `cupy.fuse`: called with terms instead of arrays they give their formulas."""

from __future__ import annotations

import copy
import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import TensorBase, is_tuple
from lucid.autograd.kernels.expressions import Term, number, parse, replaced
from lucid.autograd.kernels.formulas import Formulas, computed_in, seeds_of
from lucid.autograd.kernels.recording import KernelWithDerivative, no_derivative
from lucid.autograd.kernels.slopes import gradients
from lucid.errors import ArgumentError, GraphError, KernelError, NotDifferentiableError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["Fused"]

# CuPy's names of ufuncs, as expressions of their operands; a function of the same name and one operand needs no entry.
_UFUNCS = {
    "add": "a + b", "subtract": "a - b", "multiply": "a * b", "true_divide": "a / b", "divide": "a / b",
    "negative": "-a", "positive": "a", "power": "pow(a, b)", "square": "a * a", "reciprocal": "1 / a",
    "absolute": "abs(a)", "fabs": "abs(a)", "maximum": "max(a, b)", "minimum": "min(a, b)", "fmax": "fmax(a, b)",
    "fmin": "fmin(a, b)", "greater": "a > b", "less": "a < b", "greater_equal": "a >= b", "less_equal": "a <= b",
    "equal": "a == b", "not_equal": "a != b", "logical_and": "a && b", "logical_or": "a || b", "logical_not": "!a",
    "where": "a ? b : c", "arctan2": "atan2(a, b)", "hypot": "hypot(a, b)",
    **{f"arc{name}": f"a{name}(a)" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
}  # fmt: skip
_QUOTIENTS = {"true_divide", "divide"}
_ARITHMETIC = {
    "add", "subtract", "multiply", "negative", "power", "square", "absolute", "maximum", "minimum", "reciprocal",
}  # fmt: skip
_FLOAT = np.dtype(np.float64)


class _WritesError(Exception):
    """The function writes into an argument."""


class Traced(np.lib.mixins.NDArrayOperatorsMixin):
    """Stand-in for an array while a function is read; its operators and CuPy's ufuncs give others."""

    def __init__(self, term: Term, dtype: np.dtype[Any] = _FLOAT) -> None:
        self.term, self.dtype = term, dtype

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: object, **settings: object) -> Any:
        """Take note of an operator."""
        return self._noted(ufunc.__name__, method, inputs, settings)

    def __cupy_override_elementwise_kernel__(self, kernel: Any, *inputs: object, **settings: object) -> Any:
        """Note a ufunc of CuPy's, called through this method of its arguments."""
        return self._noted(kernel.name.removeprefix("cupy_"), "__call__", inputs, settings)

    def _noted(self, name: str, method: str, inputs: Sequence[Any], settings: Mapping[str, Any]) -> Any:
        if settings.get("out") is not None:
            raise _WritesError
        if method != "__call__" or settings or not 1 <= len(inputs) <= 3:
            raise KernelError(f"{name} with {', '.join(settings) or method} is not read")
        dtype = _dtype_of(name, inputs)
        whole = name in _ARITHMETIC and dtype.kind in "biu"
        parts = list(map(_term, inputs))
        if whole:
            parts = [
                _cast(part, dtype) if isinstance(each, Traced) and each.dtype != dtype else part
                for each, part in zip(inputs, parts, strict=True)
            ]
        if (whole and name == "power") or (name in _QUOTIENTS and all(map(_is_whole, inputs))):
            parts[0] = _cast(parts[0], _FLOAT)
        text = _UFUNCS.get(name, f"{name}({', '.join('abc'[: len(parts)])})")
        term = replaced(parse(text), dict(zip(map(Term, "abc"), parts, strict=False)))
        # C adds bools and short integers as longer ones
        return Traced(_cast(term, dtype) if whole else term, dtype)

    def astype(self, dtype: Any, **_: object) -> Traced:
        """Return a cast."""
        dtype = np.dtype(dtype)
        return self if dtype == self.dtype else Traced(_cast(self.term, dtype), dtype)

    def __setitem__(self, key: object, value: object) -> None:
        raise _WritesError

    def __bool__(self) -> bool:
        raise KernelError("a condition decides what the function does: use cupy.where")

    def __getattr__(self, name: str) -> Any:
        raise KernelError(f".{name} of an array is not read")


def _term(value: object) -> Term:
    if isinstance(value, Traced):
        return value.term
    if isinstance(value, bool | int | float | np.number | np.bool_):
        return number(np.asarray(value).item() * 1)
    raise KernelError(f"{type(value).__name__} among the arguments of a function is not read")


def _cast(term: Term, dtype: np.dtype[Any]) -> Term:
    return Term(f"({computed_in(dtype)})", (term,))


def _is_whole(value: object) -> bool:
    """Return whether a value is of integers or bools."""
    return (value.dtype if isinstance(value, Traced) else np.asarray(value).dtype).kind in "biu"


def _dtype_of(name: str, inputs: Sequence[Any]) -> np.dtype[Any]:
    """Return the dtype of the result of a ufunc, by NumPy's function of its name."""
    function = getattr(np, name, None)
    if function is None:
        return _FLOAT
    with np.errstate(all="ignore"):
        result = function(*[np.ones(1, each.dtype) if isinstance(each, Traced) else each for each in inputs])
    return getattr(result, "dtype", _FLOAT)


def _dtype_if_whole(value: object) -> np.dtype[Any] | None:
    """Return the dtype of an argument of integers or bools; None of others."""
    array: Any = value.array if isinstance(value, TensorBase) else value
    dtype: Any = getattr(array, "dtype", None)
    if not hasattr(dtype, "kind"):  # a number, or an array of another library's
        lent: Any = getattr(array, "__cuda_array_interface__", None)
        dtype = np.dtype(lent["typestr"]) if lent else np.asarray(array).dtype
    return dtype if dtype.kind in "biu" else None


class Fused(KernelWithDerivative):
    """A function of `cupy.fuse` that takes Tensors: ``f(x, y)``."""

    def __init__(self, kernel: Any, texts: Mapping[str, str], backward: Callable[..., Any] | None) -> None:
        self.parameters = list(inspect.signature(kernel.func).parameters)
        # by the dtypes of the arguments of integers and bools, which NumPy computes with in another way than C
        self._variants: dict[Any, Fused] = {}
        name: str = kernel.name or "fused"
        if not name.isidentifier():
            raise KernelError(f"{name}: CuPy compiles no function of this name: use def, or cupy.fuse(kernel_name='f')")
        derived = not texts and backward is None
        results = ["out"]
        try:
            terms = self._read(kernel, name, [_FLOAT] * len(self.parameters))
            results = list(terms)
            if derived:
                texts = self._gradient_texts(terms, self.parameters)
        except (KernelError, NotDifferentiableError, RecursionError, TypeError, AttributeError) as error:
            if derived:
                raise no_derivative(name, error, self.parameters[0] if self.parameters else "x") from error
        seeds = seeds_of(results, self.parameters, alone=True)
        formulas = Formulas(name, texts)
        super().__init__(kernel, name, self.parameters, results, seeds, formulas, backward, derived=derived)

    def _gradient_texts(self, terms: Mapping[str, Term], wanted: Sequence[str]) -> dict[str, str]:
        """Return the gradients of some parameters as texts."""
        seeds = seeds_of(list(terms), self.parameters, alone=True)
        slopes = gradients(terms, {each: Term(seed) for each, seed in seeds.items()}, wanted)
        return {each: str(term) for each, term in slopes.items()}

    def _for(self, args: Sequence[Any]) -> Fused:
        """Return the function with the gradients that it has for the dtypes of some arguments."""
        dtypes = tuple([_dtype_if_whole(arg) for arg in args])
        if not (self.derived and any(dtypes)):
            return self
        variant = self._variants.get(dtypes)
        if variant is None:
            variant = self._variants[dtypes] = copy.copy(self)
            wanted = [name for name, dtype in zip(self.parameters, dtypes, strict=True) if dtype is None]
            try:
                terms = self._read(self.kernel, self.name, [dtype or _FLOAT for dtype in dtypes])
                texts = self._gradient_texts(terms, wanted)
            except (KernelError, NotDifferentiableError, RecursionError, TypeError, ValueError, AttributeError):
                texts = {}
            variant.gradients, variant.formulas = texts, Formulas(self.name, texts)
        return variant

    def _read(self, kernel: Any, name: str, dtypes: Sequence[np.dtype[Any]]) -> dict[str, Term]:
        """Return the function's terms, by names of its outputs."""
        try:
            result = kernel.func(*map(Traced, map(Term, self.parameters), dtypes))
        except _WritesError:
            raise GraphError(
                f"{name} writes into an argument, which is not recorded: return what it computes instead"
            ) from None
        entries: Sequence[Any] = result if is_tuple(result) else (result,)
        names = ["out"] if len(entries) == 1 else [f"out{index}" for index in range(len(entries))]
        return dict(zip(names, map(_term, entries), strict=True))

    def __call__(self, *args: Any) -> Any:
        """Return the function's result as Tensors, recorded if an argument requires grad."""
        if len(args) != len(self.parameters):
            raise ArgumentError(f"{self.name}: expected {', '.join(self.parameters)}, got {len(args)} arguments")

        def launch(arrays: Sequence[Any]) -> Sequence[Any]:
            result = self.kernel(*arrays)
            return result if is_tuple(result) else (result,)

        return self._for(args).record(args, self.parameters, launch, {})

    def number(self, name: str, value: object, types: Mapping[str, np.dtype[Any]], result: np.dtype[Any]) -> Any:
        """Return a number as the function computes with it: a Python float beside float32 is one."""
        return np.float32(value) if isinstance(value, float) and result.itemsize <= 4 else value
