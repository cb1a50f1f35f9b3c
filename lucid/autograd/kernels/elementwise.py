"""CuPy's ElementwiseKernel and ReductionKernel: their parameters, and the gradients found from their text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import is_tuple
from lucid.autograd.kernels.expressions import FLOATING, Term, assignments, names_in, parse, replaced
from lucid.autograd.kernels.formulas import Formulas, macros_of, working_dtype
from lucid.autograd.kernels.recording import KernelWithDerivative, no_derivative
from lucid.autograd.kernels.slopes import gradients
from lucid.base import gpu
from lucid.errors import ArgumentError, KernelError, NotDifferentiableError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["Elementwise", "Reduction"]


class _Parameters(KernelWithDerivative):
    """Base of both kinds: parameters with types, and letters for types of any dtype."""

    def __init__(self, kernel: Any, texts: Mapping[str, str], backward: Callable[..., Any] | None) -> None:
        parameters = {p.name: p for p in (*kernel.in_params, *kernel.out_params)}
        inputs, results = [p.name for p in kernel.in_params], [p.name for p in kernel.out_params]
        super().__init__(kernel, kernel.name, parameters, inputs, results, texts, backward)
        # of an ElementwiseKernel they are among the settings for its compiler
        self.options = tuple(kernel.options if hasattr(kernel, "options") else kernel.kwargs.get("options", ()))
        self.letters = frozenset(p.ctype for p in parameters.values() if p.dtype is None)
        if self.derived:
            floating = [p.name for p in kernel.in_params if p.dtype is None or p.dtype.kind in "fV"]
            try:
                texts = {name: str(term) for name, term in self.terms(floating).items()}
            except (KernelError, NotDifferentiableError, RecursionError) as error:
                raise no_derivative(self.name, error, inputs[0] if inputs else "x") from error
        raw = {p.name for p in parameters.values() if p.raw}
        self.formulas = Formulas(kernel.name, texts, kernel.preamble, self.options, types=self.letters)
        if raw & {*texts, *self.formulas.used(tuple(texts))}:
            raise KernelError(
                f"{kernel.name}: {', '.join(sorted(raw))} is a raw array, whose elements are read in any order, and "
                "no expression of one element gives a gradient: give a function, backward=..."
            )

    def terms(self, floating: Sequence[str]) -> dict[str, Term]:
        """Return the gradients of floating-point inputs, found from the text of the kernel."""
        raise NotImplementedError

    def floats(self, floating: Sequence[str]) -> set[str]:
        """Return the letter that stands for the type of any input with a gradient, if there is such."""
        kinds = {self.parameters[name].ctype for name in floating}
        return kinds if len(kinds) == 1 else set()

    def check_known(self, term: Term, known: Sequence[str]) -> None:
        """Raise `KernelError` if a name in a term is none of those, and no constant of the preprocessor's."""
        read = macros_of(self.kernel.preamble, self.options, known)
        unknown = [name for name in sorted(names_in(term) - {*known}) if name in read or not name.isupper()]
        if unknown:
            raise KernelError(f"{', '.join(unknown)} in {str(term)!r} is no parameter of the kernel, and no constant")

    def types(self, names: Sequence[str], arrays: Sequence[Any]) -> dict[str, np.dtype[Any]]:
        """Return the dtypes of the letters of types: by arrays, and by numbers for a letter without any."""
        dtypes: dict[str, np.dtype[Any]] = {}
        for of_numbers in (False, True):
            for name, array in zip(names, arrays, strict=True):
                parameter = self.parameters[name]
                if parameter.dtype is None and gpu.is_gpu_array(array) is not of_numbers:
                    dtype = np.asarray(array).dtype if of_numbers else array.dtype
                    dtypes.setdefault(parameter.ctype, dtype)
        return dtypes

    def number(self, name: str, value: Any, types: Mapping[str, np.dtype[Any]], result: np.dtype[Any]) -> Any:
        """Return a number in the dtype that the kernel gave it."""
        parameter = self.parameters[name]
        dtype = types[parameter.ctype] if parameter.dtype is None else parameter.dtype
        return working_dtype(dtype).type(value)

    def results_of(self, result: Any, arrays: Sequence[Any]) -> Sequence[Any]:
        """Return the arrays of the results of a launch with these arguments."""
        if len(arrays) > self.kernel.nin:
            return arrays[self.kernel.nin :]
        return result if is_tuple(result) else (result,)

    def names_of(self, args: Sequence[Any]) -> tuple[list[str], dict[str, int]]:
        """Return the names of a call's arguments, and the positions of those that are results."""
        names, nin = list(self.parameters), self.kernel.nin
        if len(args) not in {nin, len(names)}:
            raise ArgumentError(
                f"{self.name}: expected {nin} inputs ({', '.join(names[:nin])}), and behind them "
                f"{', '.join(names[nin:])} if they are to be written to, got {len(args)} arguments"
            )
        names = names[: len(args)]
        return names, {name: index for index, name in enumerate(names) if index >= nin}


class Elementwise(_Parameters):
    """An ElementwiseKernel that takes Tensors: ``f(x, y)``, or ``f(x, y, out)`` to write into a tensor."""

    def __call__(self, *args: object, **options: object) -> Any:
        """Return the outputs as Tensors, recorded if an input requires grad.

        Parameters
        ----------
        *args : Tensor, array or number
            The inputs, and outputs if they are to be written to.
        **options
            `size`, `block_size` and `stream` of the kernel's own call.
        """
        names, written = self.names_of(args)
        if unknown := sorted(options.keys() - {"size", "block_size", "stream"}):
            raise ArgumentError(
                f"{self.name}: got {', '.join(unknown)} by keyword: expected size, block_size or stream, and outputs "
                "by position behind the inputs"
            )
        if self.kernel.no_return and not written:
            raise ArgumentError(f"{self.name} returns nothing (no_return): pass its outputs behind the inputs")

        def launch(arrays: Sequence[Any]) -> Sequence[Any]:
            return self.results_of(self.kernel(*arrays, **options), arrays)

        return self.record(args, names, launch, written)

    def terms(self, floating: Sequence[str]) -> dict[str, Term]:
        """Return the gradients of the terms assigned to the outputs."""
        terms = assignments(self.kernel.operation, self.results, self.letters)
        for term in terms.values():
            self.check_known(term, self.inputs)
        by_result = {name: Term(seed) for name, seed in self.seeds.items()}
        return gradients(terms, by_result, floating, floats=self.floats(floating))


class Reduction(_Parameters):
    """A ReductionKernel that takes Tensors: ``f(x, axis=0, keepdims=True)``, and ``out=`` to write into a tensor."""

    def __call__(
        self, *args: Any, out: Any = None, axis: Any = None, keepdims: bool = False, stream: Any = None
    ) -> Any:
        """Return the output as a Tensor, recorded if an input requires grad.

        Parameters
        ----------
        *args : Tensor, array or number
            The inputs, and the output if it is to be written to.
        out : Tensor, optional
            The output, by keyword.
        axis, keepdims, stream
            As of the kernel's own call.
        """
        args = args if out is None else (*args, out)
        names, written = self.names_of(args)

        def launch(arrays: Sequence[Any]) -> Sequence[Any]:
            options: dict[str, Any] = {} if stream is None else {"stream": stream}
            return self.results_of(self.kernel(*arrays, axis=axis, keepdims=keepdims, **options), arrays)

        def kept(shape: tuple[int, ...]) -> tuple[int, ...]:
            axes = range(len(shape)) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, len(shape))
            return tuple([1 if dim in axes else size for dim, size in enumerate(shape)])

        return self.record(args, names, launch, written, kept=kept)

    def terms(self, floating: Sequence[str]) -> dict[str, Term]:
        """Return the gradients of a function of a sum of functions."""
        kernel, inputs = self.kernel, self.inputs
        if len(self.results) != 1:
            raise KernelError(f"it has the results {', '.join(self.results)}, and one is read")
        (result,) = self.results
        kind, of_result = kernel.reduce_type, self.parameters[result].ctype
        if kind is not None and kind not in FLOATING | self.floats(floating) | {of_result}:
            raise KernelError(f"it sums in {kind}, which is no floating-point type")
        if "a" in inputs or parse(kernel.reduce_expr) not in {parse("a + b"), parse("b + a")}:
            raise KernelError(f"the reduction {kernel.reduce_expr!r} is not read as the sum a + b")
        (after,) = assignments(kernel.post_map_expr, self.results, self.letters).values()
        self.check_known(after, ["a", *inputs])
        mapped = parse(kernel.map_expr, self.letters)
        self.check_known(mapped, inputs)
        if names_in(after) & set(floating):
            raise KernelError(f"{after} depends on the sum and on an input")
        of_sum = gradients({result: after}, {result: Term(self.seeds[result])}, ["a"])["a"]
        if "a" in names_in(of_sum):
            raise KernelError(f"the gradient of {after} needs the sum a, which is not kept")
        grads = gradients({"a": mapped}, {"a": Term("g ")}, floating, keep=False, floats=self.floats(floating))
        return {name: replaced(term, {Term("g "): of_sum}) for name, term in grads.items()}
