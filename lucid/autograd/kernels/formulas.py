"""Several expressions as one kernel on arrays that broadcast, recorded: its own derivative is found from them."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.autograd.base import TensorBase, wrap
from lucid.autograd.function import Function
from lucid.autograd.kernels.expressions import Term, parse, words_in
from lucid.autograd.kernels.slopes import gradients
from lucid.autograd.modes.reading import watching
from lucid.autograd.modes.state import intercepted, thread
from lucid.base import gpu
from lucid.cuda.launch.kernels import C_TYPES
from lucid.errors import KernelError, NotDifferentiableError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from lucid.base.arrays import Array

# asked once: it looks at CuPy's classes
array_maker = functools.cache(gpu.array_maker)

__all__ = ["Formulas", "Shapes", "computed_in", "macros_of", "seeds_of", "working_dtype"]

_COMPLEX = {np.dtype(np.complex64): "complex<float>", np.dtype(np.complex128): "complex<double>"}


def seeds_of(results: Sequence[str], taken: Collection[str], *, alone: bool) -> dict[str, str]:
    """Return the names of the results' gradients in expressions: ``g`` of one that is `alone`, or ``g_NAME``."""
    if alone and len(results) == 1 and "g" not in taken:
        return {results[0]: "g"}
    seeds = {name: f"g_{name}" for name in results}
    while not set(taken).isdisjoint(seeds.values()):
        seeds = {name: f"g{seed}" for name, seed in seeds.items()}
    return seeds


def working_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype for computing with elements of a dtype: of half types float32."""
    return np.dtype(np.float32) if dtype.itemsize == 2 and dtype.kind in "fV" else dtype


def computed_in(dtype: np.dtype[Any]) -> str:
    """Return the C++ type for computing with elements of a dtype: of half types float."""
    if dtype.kind == "c":
        return _COMPLEX[dtype]
    if dtype.kind == "u" and dtype.itemsize > 1:
        return f"unsigned {C_TYPES[np.dtype(f'i{dtype.itemsize}')]}"
    return C_TYPES.get(working_dtype(dtype), "")


def macros_of(preamble: str, options: Sequence[str], names: Collection[str]) -> set[str]:
    """Return the macros of a kernel's preamble and its compiler's options that stand for something of some names."""
    by_option = [f"#define {option[2:]}" for option in options if option.startswith("-D")]
    text = "\n".join([preamble.replace("\\\n", " "), *by_option])
    bodies = {name: words_in(body) for name, body in re.findall(r"#[ \t]*define[ \t]+(\w+)(.*)", text)}
    macros: set[str] = set()
    while more := {name for name, words in bodies.items() if name not in macros and words & {*names, *macros}}:
        macros |= more
    return macros


class Shapes(NamedTuple):
    """Form of formulas' results, and dtypes of the letters of types in them."""

    device: int
    shape: tuple[int, ...]
    dtypes: Mapping[str, np.dtype[Any]]  # by the name of the result
    types: Mapping[str, np.dtype[Any]]  # by letter


class Formulas:
    """Expressions by name, over shared names of their operands.

    Parameters
    ----------
    owner : str
        What errors call the kernel whose derivative it is.
    texts : mapping of str to str
        Expressions of CUDA C, by the name of what each gives.
    preamble : str
        What stands before the kernel: functions that the expressions call.
    options : tuple of str
        For the compiler.
    """

    def __init__(
        self,
        owner: str,
        texts: Mapping[str, str],
        preamble: str = "",
        options: tuple[str, ...] = (),
        *,
        types: frozenset[str] = frozenset(),
    ) -> None:
        self.owner = owner
        self.texts = texts
        self.types = types
        # what expressions may name beside the kernel's parameters
        self.words = words_in(preamble) | types
        self._words = {name: words_in(text) for name, text in texts.items()}
        self._preamble = preamble
        self._options = options
        self._kernels: dict[Any, Any] = {}
        self._used: dict[tuple[str, ...], set[str]] = {}
        self._next: dict[tuple[tuple[str, ...], tuple[str, ...]], Formulas] = {}

    def used(self, wanted: Sequence[str]) -> set[str]:
        """Return the names that stand in the expressions of some results."""
        key = tuple(wanted)
        words = self._used.get(key)
        if words is None:
            words = self._used[key] = {word for name in key for word in self._words[name]}
        return words

    def __call__(self, wanted: Sequence[str], values: Mapping[str, Any], form: Shapes) -> tuple[Any, ...]:
        """Return some of the results as tensors, recorded if a value requires grad.

        Parameters
        ----------
        wanted : sequence of str
            Names of results.
        values : mapping of str to Tensor or number
            All that the wanted expressions use, and more.
        form : Shapes
            Of the results.
        """
        names = sorted(name for name in self.used(wanted) if name in values)
        operands = [values[name] for name in names]
        if not (thread.state.recording or intercepted or watching):
            # nobody sees more of a backward that is not recorded than what comes out
            return self.run(wanted, names, operands, form)
        return KernelGradient.apply(*operands, (self, tuple(wanted), tuple(names), form))

    def run(self, wanted: Sequence[str], names: Sequence[str], values: Sequence[Any], form: Shapes) -> tuple[Any, ...]:
        """Return results of tensors and numbers as tensors that are in no graph."""
        arrays = [value.array if isinstance(value, TensorBase) else value for value in values]
        return tuple(map(wrap, gpu.run_on(form.device, self.launch, wanted, names, arrays, form)))

    def launch(self, wanted: Sequence[str], names: Sequence[str], values: Sequence[Any], form: Shapes) -> list[Array]:
        """Return arrays of results of arrays and numbers, on the current device."""
        make = array_maker()  # of the shape of an array that is there
        outs = [make(form.shape, form.dtypes[name]) for name in wanted]
        # of Python's numbers and NumPy's, which have none or one
        dtypes = [getattr(value, "dtype", None) or np.asarray(value).dtype for value in values]
        key = (*wanted, None, *names, *dtypes, *[form.dtypes[name] for name in wanted], *form.types.items())
        kernel = self._kernels.get(key)
        if kernel is None:
            kernel = self._kernels[key] = self._compiled(wanted, list(zip(names, dtypes, strict=True)), form)
        try:
            kernel(*values, *outs)
        except gpu.cupy().cuda.compiler.CompileException as error:
            texts = "; ".join(f"{name}: {self.texts[name]}" for name in wanted)
            raise KernelError(f"{self.owner}: the gradients ({texts}) do not compile: {error}") from error
        return outs

    def _compiled(self, wanted: Sequence[str], inputs: Sequence[tuple[str, np.dtype[Any]]], form: Shapes) -> Any:
        lines = [f"using {letter} = {computed_in(dtype)};" for letter, dtype in form.types.items()]
        for index, (name, dtype) in enumerate(inputs):
            lines.append(f"const {computed_in(dtype)} {name} = lucid_in{index};")
        for index, name in enumerate(wanted):
            cast = computed_in(form.dtypes[name])
            lines.append(f"lucid_out{index} = static_cast<{cast}>({self.texts[name]});")
        return gpu.cupy().ElementwiseKernel(
            ", ".join(f"{dtype.name} lucid_in{index}" for index, (_, dtype) in enumerate(inputs)),
            ", ".join(f"{form.dtypes[name].name} lucid_out{index}" for index, name in enumerate(wanted)),
            "\n".join(lines),
            "lucid_gradients",
            preamble=self._preamble,
            options=self._options,
        )

    def derivative(self, wanted: tuple[str, ...], needed: tuple[str, ...]) -> tuple[Formulas, dict[str, str]]:
        """Return the gradients of needed names in some results, and how those of the results are called in them.

        Raises
        ------
        NotDifferentiableError
            If an expression is not understood.
        """
        names = self.used(wanted)
        seeds = seeds_of(wanted, names, alone=False)
        key = wanted, needed
        if key not in self._next:
            try:
                if hidden := names & macros_of(self._preamble, self._options, needed):
                    raise KernelError(f"{', '.join(sorted(hidden))} is a macro that reads {' or '.join(needed)}")
                results = {name: parse(self.texts[name], self.types) for name in wanted}
                # a result has the name of the input whose gradient it is, which means another thing here
                terms = gradients(results, {name: Term(seed) for name, seed in seeds.items()}, needed, keep=False)
                texts = {name: str(term) for name, term in terms.items()}
            except (KernelError, NotDifferentiableError, RecursionError) as error:
                reason = "an expression is nested too deep" if isinstance(error, RecursionError) else error
                raise NotDifferentiableError(
                    f"{self.owner}: no second derivative is found, because {reason}: write that gradient in known "
                    "functions, or leave out create_graph=True"
                ) from error
            self._next[key] = Formulas(self.owner, texts, self._preamble, self._options, types=self.types)
        return self._next[key], seeds


class KernelGradient(Function):
    """One launch of formulas; its last argument names them."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        """Return the results, and keep the operands."""
        *values, (formulas, wanted, names, form) = args
        ctx.values = [None if isinstance(value, TensorBase) else value for value in values]
        ctx.set_materialize_grads(False)
        ctx.job = (formulas, wanted, names, form)
        ctx.save_for_backward(*[value if isinstance(value, TensorBase) else None for value in values])
        return formulas.run(wanted, names, values, form)

    @staticmethod
    def backward(ctx: Any, *grads: object) -> tuple[Any, ...]:
        """Return the gradients by the formulas that are found from the expressions."""
        formulas, wanted, names, form = ctx.job
        saved = ctx.saved_tensors
        values = {
            name: value if tensor is None else tensor
            for name, value, tensor in zip(names, ctx.values, saved, strict=True)
        }
        if any(dtype.kind == "c" for dtype in form.dtypes.values()):
            raise NotDifferentiableError(
                f"{formulas.owner}: second derivatives are found for real numbers alone: write a Function, whose "
                "backward is made of recorded operations"
            )
        received = {name: grad for name, grad in zip(wanted, grads, strict=True) if grad is not None}
        needed = tuple([name for name, needs in zip(names, ctx.needs_input_grad, strict=False) if needs])
        back, seeds = formulas.derivative(tuple(received), needed)
        values |= {seeds[name]: grad for name, grad in received.items()}
        dtypes = {name: values[name].array.dtype for name in needed}
        by_name = dict(zip(needed, back(needed, values, form._replace(dtypes=dtypes)), strict=True))
        return (*[by_name.get(name) for name in names], None)
