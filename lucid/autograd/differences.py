"""One function at one point: its derivatives by finite differences, and those by backward."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import TensorBase, describe, wrap
from lucid.autograd.entry import grad
from lucid.autograd.function import Function
from lucid.autograd.recording.views import live_edge
from lucid.base.arrays import to_device
from lucid.base.device import CPU, device_of
from lucid.errors import LucidError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class GradcheckError(LucidError, RuntimeError):
    """A gradient differs from the finite differences of the function, or backward is not deterministic."""


class OutputsChangedError(LucidError, AssertionError):
    """A function gives outputs of other shapes or dtypes when its inputs are moved: it has no derivative there."""


class _Undefined(Function):
    """The identity with None as its gradient."""

    @staticmethod
    def forward(ctx: Any, x: TensorBase) -> Any:
        return wrap(x.array)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> None:
        return None


class Point:
    """One function at one point, its outputs there, and the settings of comparisons.

    Complex numbers stand for two real ones. The gradient g of a real L is ``dL/dx + i dL/dy``; and an upstream
    gradient u asks for the gradient of ``L = Re(conj(u) f)``, so that u = 1 gives the real part of f and u = i the
    imaginary one.
    """

    def __init__(
        self,
        func: Callable[..., Any],
        arguments: tuple[Any, ...],
        moved: list[tuple[int, TensorBase]],
        eps: float,
        atol: float,
        rtol: float,
    ) -> None:
        self.func = func
        self.arguments = arguments
        self.moved = moved
        self.eps, self.atol, self.rtol = eps, atol, rtol
        self.rng = np.random.default_rng(0)
        result = func(*arguments)
        self.outputs = differentiable(result)
        # those whose values are compared: where none requires grad, all must stay as they are
        self.watched = self.outputs or [
            (number, part) for number, part in enumerate(sequence(result)) if isinstance(part, TensorBase)
        ]

    def values(self) -> list[Any]:
        """Return copies of the outputs of `func` for the inputs as they now are.

        Raises
        ------
        OutputsChangedError
            If one has another shape or dtype than where the inputs had not been moved.
        """
        results = sequence(self.func(*self.arguments))
        copies: list[Any] = []
        for number, out in self.watched:
            part: Any = results[number] if number < len(results) else None
            if not isinstance(part, TensorBase):
                raise OutputsChangedError(
                    f"output {number}: expected func to return as many tensors when inputs are moved"
                )
            before, after = out.array, part.array
            if (before.shape, before.dtype) != (after.shape, after.dtype):
                what = "shape" if before.shape != after.shape else "dtype"
                raise OutputsChangedError(
                    f"output {number}: expected func to return outputs with the same {what} when inputs are perturbed "
                    f"by {self.eps}, got {describe(part)} instead of {describe(out)}: check it at other points"
                )
            copies.append(numbers(after))
        return copies

    def gradients(self, outputs: list[Any], upstream: list[Any]) -> Any:
        """Return the gradient of each input, or None, for arrays of upstream gradients."""
        inputs = [x for _, x in self.moved]
        return grad(outputs, inputs, list(map(wrap, upstream)), retain_graph=True, allow_unused=True)

    def backward(self, upstream: Sequence[Any]) -> list[Any]:
        """Return the gradient of each input for one upstream gradient, or None, for each output."""
        used = [(out, u) for (_, out), u in zip(self.outputs, upstream, strict=True) if u is not None]
        grads = self.gradients([out for out, _ in used], [like(u, out.array) for out, u in used])
        return [
            np.zeros(x.array.shape, wide(x.array)) if g is None else numbers(g.array)
            for (_, x), g in zip(self.moved, grads, strict=True)
        ]

    def random_upstream(self) -> list[Any]:
        """Return a random gradient for each output."""
        return [random(self.rng, out.array) for _, out in self.outputs]

    def deterministic(self, tolerance: float) -> None:
        """Raise unless two backward passes agree."""
        if not self.outputs:
            return
        upstream = self.random_upstream()
        for (number, _), one, other in zip(self.moved, self.backward(upstream), self.backward(upstream), strict=True):
            # NaN and infinity in both of them are no difference, in one of them they are
            apart = (one != other) & ~(np.isnan(one) & np.isnan(other))
            off = float(np.abs(one[apart] - other[apart]).max(initial=0.0))
            if not off <= tolerance:
                raise GradcheckError(
                    f"backward is not reentrant: two passes with the same gradients give input {number} gradients that "
                    f"differ by {off}; pass nondet_tol to allow it"
                )

    def undefined_gradients(self) -> None:
        """Raise unless an output without a gradient counts as one with zeros."""
        if self.outputs:
            self.no_gradients()
        if len(self.outputs) < 2:
            return
        upstream = self.random_upstream()
        for kept, (output, _) in enumerate(self.outputs):
            alone = self.backward([u if k == kept else None for k, u in enumerate(upstream)])
            zeros = self.backward([u if k == kept else np.zeros_like(u) for k, u in enumerate(upstream)])
            for (number, _), one, other in zip(self.moved, alone, zeros, strict=True):
                if not np.allclose(one, other, self.rtol, self.atol, equal_nan=True):
                    raise GradcheckError(
                        f"backward with a gradient for output {output} only gives input {number} another gradient than "
                        "with zeros for the other outputs: its backward must take None for zeros"
                    )

    def no_gradients(self) -> None:
        """Raise unless backward takes None for the gradient of every output, and makes None or zeros of it."""
        must = "its backward must take None for zeros"
        try:
            zeros = [like(np.zeros(out.array.shape), out.array) for _, out in self.outputs]
            grads = self.gradients([_Undefined.apply(out) for _, out in self.outputs], zeros)
        except Exception as error:
            raise GradcheckError(f"backward raised {error!r} where no output has a gradient: {must}") from error
        for (number, _), g in zip(self.moved, grads, strict=True):
            if g is not None and numbers(g.array).any():
                raise GradcheckError(
                    f"backward gives input {number} a gradient where no output has one: expected None or zeros; {must}"
                )

    def slopes(self) -> None:
        """Raise unless, along a random direction for each input, finite differences and backward agree."""
        upstream = self.random_upstream()
        grads = self.backward(upstream) if self.outputs else [None] * len(self.moved)
        for (number, x), g in zip(self.moved, grads, strict=True):
            direction = random(self.rng, x.array)
            direction /= max(1.0, float(np.linalg.norm(direction)))
            start = numbers(x.array)
            results: list[list[Any]] = []
            try:
                for sign in (1, -1):
                    x.array[...] = like(start + sign * self.eps * direction, x.array)
                    results.append(self.values())
            finally:
                x.array[...] = like(start, x.array)
            if not self.outputs:
                upstream = [random(self.rng, part) for part in results[0]]
            numerical = sum(
                inner(u, (high - low) / (2 * self.eps)) for u, high, low in zip(upstream, *results, strict=True)
            )
            analytical = 0.0 if g is None else inner(g, direction)
            size = sum(float(np.linalg.norm(u)) for u in upstream)
            # written so that NaN fails, here and below
            if not abs(numerical - analytical) <= self.atol * max(1.0, size) + self.rtol * abs(numerical):
                raise GradcheckError(
                    f"the slope along a random direction of input {number} ({describe(x)}) differs: numerical "
                    f"{numerical}, analytical {analytical}; fast_mode=False says which elements"
                )

    def jacobians(self) -> None:
        """Raise unless each element of each Jacobian agrees."""
        numerical = [list(self.differences(x)) for _, x in self.moved]
        for k, (output, out) in enumerate(self.outputs):
            units = (1.0, 1j) if out.array.dtype.kind == "c" else (1.0,)
            for index, unit in itertools.product(np.ndindex(out.array.shape), units):
                one_hot: Any = np.zeros(out.array.shape, wide(out.array))
                one_hot[index] = unit
                upstream: list[Any] = [None] * len(self.outputs)
                upstream[k] = one_hot
                for (number, x), g, steps in zip(self.moved, self.backward(upstream), numerical, strict=True):
                    expected = np.zeros(x.array.shape, wide(x.array))
                    for at, axis, slopes in steps:
                        expected[at] += axis * np.real(np.conj(unit) * slopes[k][index])
                    self.compare(g, expected, f"output {output}, element {list(index)}", number, x)
        if not self.outputs:
            for (number, x), steps in zip(self.moved, numerical, strict=True):
                for at, _, slopes in steps:
                    if not all(np.abs(slope).max(initial=0.0) <= self.atol for slope in slopes):
                        raise GradcheckError(
                            f"no output requires grad, and yet element {list(at)} of input {number} ({describe(x)}) "
                            "changes the outputs: the numerical gradient is expected to be zero"
                        )

    def differences(self, x: TensorBase) -> Iterator[tuple[tuple[int, ...], complex, list[Any]]]:
        """Yield, for each element of an input and each of its axes, its index, the axis, and each output's slope."""
        array = x.array
        axes = (1.0, 1j) if array.dtype.kind == "c" else (1.0,)
        for index in np.ndindex(array.shape):
            start = array[index].item()
            for axis in axes:
                try:
                    array[index] = start + axis * self.eps
                    high = self.values()
                    array[index] = start - axis * self.eps
                    low = self.values()
                finally:
                    array[index] = start
                yield index, axis, [(up - down) / (2 * self.eps) for up, down in zip(high, low, strict=True)]

    def compare(self, analytical: Any, numerical: Any, where: str, number: int, x: TensorBase) -> None:
        """Raise unless a row of a Jacobian agrees, naming its worst element."""
        excess = np.abs(analytical - numerical) - (self.atol + self.rtol * np.abs(numerical))
        if not np.all(excess <= 0):
            worst = np.unravel_index(int(np.argmax(np.where(np.isnan(excess), np.inf, excess))), excess.shape)
            element = tuple(int(i) for i in worst)
            raise GradcheckError(
                f"Jacobian mismatch for {where}, with respect to input {number} ({describe(x)}), element "
                f"{list(element)}: numerical {numerical[element]}, analytical {analytical[element]}\n"
                f"numerical: {numerical}\nanalytical: {analytical}"
            )


def sequence(values: Any) -> tuple[Any, ...]:
    """Return a function's arguments or results as a tuple."""
    return tuple(values) if isinstance(values, tuple | list) else (values,)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def differentiable(result: Any) -> list[tuple[int, TensorBase]]:
    """Return the outputs that require grad, each with its number."""
    return [
        (number, part)
        for number, part in enumerate(sequence(result))
        if isinstance(part, TensorBase) and live_edge(part) is not None
    ]


def wide(array: Any) -> Any:
    """Return the dtype of double precision for comparisons of an array."""
    return np.complex128 if array.dtype.kind == "c" else np.float64


def numbers(array: Any) -> Any:
    """Return a copy of an array on the host, in double precision."""
    return np.array(to_device(array, CPU), dtype=wide(array))


def like(values: Any, array: Any) -> Any:
    """Return values from the host in the dtype and on the device of `array`."""
    return to_device(np.asarray(values).astype(array.dtype), device_of(array))


def random(rng: np.random.Generator, array: Any) -> Any:
    """Return standard normal numbers in the shape of `array`, complex for a complex one."""
    noise: Any = np.empty(array.shape, wide(array))
    noise.real = rng.standard_normal(array.shape)
    if array.dtype.kind == "c":
        noise.imag = rng.standard_normal(array.shape)
    return noise


def inner(a: Any, b: Any) -> float:
    """Return the inner product of two arrays, a complex number counting as two real ones."""
    return float(np.sum(a.real * b.real + a.imag * b.imag))
