"""Functions made by `cupy.fuse`: called with terms instead of arrays they give their formulas."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import is_tuple
from lucid.autograd.kernels.expressions import Term, number, parse, put
from lucid.autograd.kernels.formulas import Formulas, seeds_of
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
    "absolute": "abs(a)", "fabs": "abs(a)", "maximum": "max(a, b)", "minimum": "min(a, b)", "fmax": "max(a, b)",
    "fmin": "min(a, b)", "greater": "a > b", "less": "a < b", "greater_equal": "a >= b", "less_equal": "a <= b",
    "equal": "a == b", "not_equal": "a != b", "logical_and": "a && b", "logical_or": "a || b", "logical_not": "!a",
    "where": "a ? b : c", "arctan2": "atan2(a, b)", "hypot": "hypot(a, b)",
    **{f"arc{name}": f"a{name}(a)" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
}  # fmt: skip


class _WritesError(Exception):
    """The function writes into an argument."""


class Traced(np.lib.mixins.NDArrayOperatorsMixin):
    """Stand-in for an array while a function is read; its operators and CuPy's ufuncs give others."""

    def __init__(self, term: Term) -> None:
        self.term = term

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
        parts = [_term(each) for each in inputs]
        text = _UFUNCS.get(name, f"{name}({', '.join('abc'[: len(parts)])})")
        return Traced(put(parse(text), dict(zip(map(Term, "abc"), parts, strict=False))))

    def astype(self, dtype: Any, **_: object) -> Traced:
        """Return itself: a condition stays one, and a floating-point number is computed with."""
        if np.dtype(dtype).kind in "iu":
            raise KernelError(f"astype({np.dtype(dtype).name}) is not read")
        return self

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


class Fused(KernelWithDerivative):
    """A function of `cupy.fuse` that takes Tensors: ``f(x, y)``."""

    def __init__(self, kernel: Any, texts: Mapping[str, str], backward: Callable[..., Any] | None) -> None:
        self.parameters = list(inspect.signature(kernel.func).parameters)
        name: str = kernel.name or "fused"
        if not name.isidentifier():
            raise KernelError(f"{name}: CuPy compiles no function of this name: use def, or cupy.fuse(kernel_name='f')")
        derived = not texts and backward is None
        results = ["out"]
        try:
            terms = self._read(kernel, name)
            results = list(terms)
            seeds = seeds_of(results, self.parameters, alone=True)
            if derived:
                gained = gradients(terms, {each: Term(seed) for each, seed in seeds.items()}, self.parameters)
                texts = {each: str(term) for each, term in gained.items()}
        except (KernelError, NotDifferentiableError, RecursionError, TypeError, AttributeError) as error:
            if derived:
                raise no_derivative(name, error, self.parameters[0] if self.parameters else "x") from error
        seeds = seeds_of(results, self.parameters, alone=True)
        formulas = Formulas(name, texts)
        super().__init__(kernel, name, self.parameters, results, seeds, formulas, backward, derived=derived)

    def _read(self, kernel: Any, name: str) -> dict[str, Term]:
        """Return the function's terms, by names of its outputs."""
        try:
            result = kernel.func(*[Traced(Term(each)) for each in self.parameters])
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

        return self.record(args, self.parameters, launch, {})

    def number(self, name: str, value: object, types: Mapping[str, np.dtype[Any]], result: np.dtype[Any]) -> Any:
        """Return a number as the function computes with it: a Python float beside float32 is one."""
        return np.float32(value) if isinstance(value, float) and result.itemsize <= 4 else value
