"""Gradients checked against finite differences: `gradcheck`, and `gradgradcheck` for second derivatives."""

from __future__ import annotations

import itertools
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import TensorBase, describe, wrap
from lucid.autograd.functions import grad
from lucid.autograd.mode import enable_grad
from lucid.autograd.node import accumulator_of
from lucid.autograd.views import live_edge
from lucid.backend.arrays import namespace, on, to_device
from lucid.backend.device import CPU, device_of
from lucid.errors import LucidError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# Jacobians of up to this many elements are compared element by element unless the caller decides.
SMALL_JACOBIAN = 10_000


class GradcheckError(LucidError, RuntimeError):
    """A gradient differs from the finite differences of the function, or backward is not deterministic."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    fast_mode: bool | None = None,
) -> bool:
    """Return whether backward of `func` gives its Jacobian, as (f(x + eps) - f(x - eps)) / (2 eps) finds it.

    Parameters
    ----------
    func : callable
        Takes `inputs`, returns a tensor or a sequence of values of which the tensors that require grad are checked.
    inputs : Tensor or sequence
        The arguments. Those tensors that require grad are checked, and moved in place by `eps` meanwhile; they should
        be float64 or complex128, since differences of lower precisions are mostly rounding.
    eps : float
        How far an element is moved, in both directions; a complex one also along the imaginary axis.
    atol, rtol : float
        An element passes if ``|backward - difference| <= atol + rtol * |difference|``.
    raise_exception : bool
        Whether a failure raises instead of giving False.
    nondet_tol : float
        The largest difference between two backward passes that is still called deterministic.
    check_undefined_grad : bool
        Whether to check, for several outputs, that one without a gradient counts as one with a gradient of zeros.
    fast_mode : bool, optional
        False compares the Jacobian element by element; True compares the slope along one random direction, weighted
        by random gradients of the outputs. By default the first for small Jacobians, the second for large ones.

    Returns
    -------
    bool
        True if all gradients pass.

    Raises
    ------
    GradcheckError
        If one does not, naming output, input, the worst element and both its values.
    ValueError
        If no input requires grad, or one lies in overlapping or read-only memory and so cannot be moved.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([0.5, 2.0], dtype=lucid.float64, requires_grad=True)
    >>> lucid.autograd.gradcheck(lambda x: x * x, x)
    True
    >>> lucid.autograd.gradcheck(lambda x: x * x.detach(), x, raise_exception=False)
    False
    """
    arguments = _sequence(inputs)
    moved = _checked_inputs(arguments)
    try:
        with enable_grad():
            check = _Check(func, arguments, moved, eps, atol, rtol)
            check.deterministic(nondet_tol)
            if check_undefined_grad:
                check.undefined_gradients()
            size = sum(x.array.size for _, x in moved) * sum(out.array.size for _, out in check.outputs)
            if fast_mode or (fast_mode is None and size > SMALL_JACOBIAN):
                check.slopes()
            else:
                check.jacobians()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    fast_mode: bool | None = None,
) -> bool:
    """Return whether the gradients of `func` have the gradients that finite differences of them give.

    Parameters
    ----------
    func : callable
        As for :func:`gradcheck`; its derivatives must be differentiable.
    inputs : Tensor or sequence
        As for :func:`gradcheck`.
    grad_outputs : Tensor or sequence of Tensor, optional
        The gradients of the outputs that require grad; random if left out. They are checked as inputs too.
    eps, atol, rtol, raise_exception, nondet_tol, check_undefined_grad, fast_mode
        As for :func:`gradcheck`.

    Returns
    -------
    bool
        True if all second derivatives pass.

    Raises
    ------
    GradcheckError
        If one does not.
    ValueError
        As for :func:`gradcheck`.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([0.5, 2.0], dtype=lucid.float64, requires_grad=True)
    >>> lucid.autograd.gradgradcheck(lambda x: x * x * x, x)
    True
    """
    arguments = _sequence(inputs)
    moved = _checked_inputs(arguments)
    with enable_grad():
        outputs = _differentiable(func(*arguments))
    if grad_outputs is None:
        rng = np.random.default_rng(0)
        upstream = tuple(_leaf(_random(rng, out.array), like=out.array) for _, out in outputs)
    else:
        upstream = tuple(
            g if live_edge(g) is not None else _leaf(g.array, like=g.array) for g in _sequence(grad_outputs)
        )
    count = len(arguments)
    wanted = [place for place, _ in moved]

    def gradients(*values: Any) -> tuple[Any, ...]:
        roots = [out for _, out in _differentiable(func(*values[:count]))]
        found = grad(roots, [values[place] for place in wanted], values[count:], create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(
        gradients,
        (*arguments, *upstream),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        fast_mode=fast_mode,
    )


class _Check:
    """One function at one point, its outputs there, and what they are compared by.

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
        self.result = func(*arguments)
        self.outputs = _differentiable(self.result)

    def values(self) -> list[Any]:
        """Return copies of the outputs of `func` for the inputs as they now are."""
        result = self.func(*self.arguments)
        if not self.outputs:
            parts = [part for part in _sequence(result) if isinstance(part, TensorBase)]
        else:
            results = _sequence(result)
            parts = [results[place] for place, _ in self.outputs]
        return [_numbers(part.array) for part in parts]

    def backward(self, upstream: Sequence[Any]) -> list[Any]:
        """Return the gradient of each input for one upstream gradient, or None, for each output."""
        used = [(out, u) for (_, out), u in zip(self.outputs, upstream, strict=True) if u is not None]
        found = grad(
            [out for out, _ in used],
            [x for _, x in self.moved],
            [wrap(_like(u, out.array)) for out, u in used],
            retain_graph=True,
            allow_unused=True,
        )
        return [
            np.zeros(x.array.shape, _wide(x.array)) if g is None else _numbers(g.array)
            for (_, x), g in zip(self.moved, found, strict=True)
        ]

    def random_upstream(self) -> list[Any]:
        """Return a random gradient for each output."""
        return [_random(self.rng, out.array) for _, out in self.outputs]

    def deterministic(self, tolerance: float) -> None:
        """Raise unless two backward passes agree."""
        if not self.outputs:
            return
        upstream = self.random_upstream()
        for (place, _), one, other in zip(self.moved, self.backward(upstream), self.backward(upstream), strict=True):
            off = float(np.abs(one - other).max(initial=0.0))
            if off > tolerance:
                raise GradcheckError(
                    f"backward is not reentrant: two passes with the same gradients give input {place} gradients that "
                    f"differ by {off}; pass nondet_tol to allow it"
                )

    def undefined_gradients(self) -> None:
        """Raise unless an output without a gradient counts as one with zeros."""
        if len(self.outputs) < 2:
            return
        upstream = self.random_upstream()
        for kept, (output, _) in enumerate(self.outputs):
            alone = self.backward([u if k == kept else None for k, u in enumerate(upstream)])
            zeros = self.backward([u if k == kept else np.zeros_like(u) for k, u in enumerate(upstream)])
            for (place, _), one, other in zip(self.moved, alone, zeros, strict=True):
                if not np.allclose(one, other, self.rtol, self.atol):
                    raise GradcheckError(
                        f"backward with a gradient for output {output} only gives input {place} another gradient than "
                        "with zeros for the other outputs: its backward must take None for zeros"
                    )

    def slopes(self) -> None:
        """Raise unless, along a random direction for each input, finite differences and backward agree."""
        upstream = self.random_upstream()
        grads = self.backward(upstream) if self.outputs else [None] * len(self.moved)
        for (place, x), g in zip(self.moved, grads, strict=True):
            direction = _random(self.rng, x.array)
            direction /= max(1.0, float(np.linalg.norm(direction)))
            start = _numbers(x.array)
            results: list[list[Any]] = []
            try:
                for sign in (1, -1):
                    x.array[...] = _like(start + sign * self.eps * direction, x.array)
                    results.append(self.values())
            finally:
                x.array[...] = _like(start, x.array)
            if not self.outputs:
                upstream = [_random(self.rng, part) for part in results[0]]
            numerical = sum(
                _inner(u, (high - low) / (2 * self.eps)) for u, high, low in zip(upstream, *results, strict=True)
            )
            analytical = 0.0 if g is None else _inner(g, direction)
            size = sum(float(np.linalg.norm(u)) for u in upstream)
            if abs(numerical - analytical) > self.atol * max(1.0, size) + self.rtol * abs(numerical):
                raise GradcheckError(
                    f"the slope along a random direction of input {place} ({describe(x)}) differs: numerical "
                    f"{numerical}, analytical {analytical}; fast_mode=False says which elements"
                )

    def jacobians(self) -> None:
        """Raise unless each element of each Jacobian agrees."""
        numerical = [list(self.differences(x)) for _, x in self.moved]
        for k, (output, out) in enumerate(self.outputs):
            units = (1.0, 1j) if out.array.dtype.kind == "c" else (1.0,)
            for index, unit in itertools.product(np.ndindex(out.array.shape), units):
                one_hot: Any = np.zeros(out.array.shape, _wide(out.array))
                one_hot[index] = unit
                upstream: list[Any] = [None] * len(self.outputs)
                upstream[k] = one_hot
                for (place, x), g, steps in zip(self.moved, self.backward(upstream), numerical, strict=True):
                    expected = np.zeros(x.array.shape, _wide(x.array))
                    for at, axis, slopes in steps:
                        expected[at] += axis * np.real(np.conj(unit) * slopes[k][index])
                    self.compare(g, expected, f"output {output}, element {list(index)}", place, x)
        if not self.outputs:
            for (place, x), steps in zip(self.moved, numerical, strict=True):
                for at, _, slopes in steps:
                    if any(np.abs(slope).max(initial=0.0) > self.atol for slope in slopes):
                        raise GradcheckError(
                            f"no output requires grad, and yet element {list(at)} of input {place} ({describe(x)}) "
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

    def compare(self, analytical: Any, numerical: Any, where: str, place: int, x: TensorBase) -> None:
        """Raise unless a row of a Jacobian agrees, naming its worst element."""
        excess = np.abs(analytical - numerical) - (self.atol + self.rtol * np.abs(numerical))
        # written so that NaN fails
        if not np.all(excess <= 0):
            worst = np.unravel_index(int(np.argmax(np.where(np.isnan(excess), np.inf, excess))), excess.shape)
            element = tuple(int(i) for i in worst)
            raise GradcheckError(
                f"Jacobian mismatch for {where}, with respect to input {place} ({describe(x)}), element "
                f"{list(element)}: numerical {numerical[element]}, analytical {analytical[element]}\n"
                f"numerical: {numerical}\nanalytical: {analytical}"
            )


def _sequence(values: Any) -> tuple[Any, ...]:
    return tuple(values) if isinstance(values, tuple | list) else (values,)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _differentiable(result: Any) -> list[tuple[int, TensorBase]]:
    """Return the outputs that require grad, each with its place."""
    return [
        (place, part)
        for place, part in enumerate(_sequence(result))
        if isinstance(part, TensorBase) and live_edge(part) is not None
    ]


def _checked_inputs(arguments: tuple[Any, ...]) -> list[tuple[int, TensorBase]]:
    """Return the inputs that require grad, each with its place."""
    moved = _differentiable(arguments)
    if not moved:
        raise ValueError("gradcheck expects at least one input that requires grad, and got none")
    for place, x in moved:
        array = x.array
        if array.dtype not in (np.float64, np.complex128):
            warnings.warn(
                f"gradcheck: input {place} has {describe(x)}; finite differences need float64 or complex128, and will "
                "likely fail in lower precision",
                UserWarning,
                stacklevel=3,
            )
        repeated = any(stride == 0 and size > 1 for stride, size in zip(array.strides, array.shape, strict=True))
        if repeated or not getattr(array.flags, "writeable", True):
            raise ValueError(
                f"gradcheck: input {place} ({describe(x)}) lies in overlapping or read-only memory (expand), so that "
                "its elements cannot be moved one by one: pass a contiguous copy, made by clone()"
            )
    return moved


def _wide(array: Any) -> Any:
    return np.complex128 if array.dtype.kind == "c" else np.float64


def _numbers(array: Any) -> Any:
    """Return a copy of an array on the host, in double precision."""
    return np.array(to_device(array, CPU), dtype=_wide(array))


def _like(values: Any, array: Any) -> Any:
    """Return values from the host in the dtype and on the device of `array`."""
    return to_device(np.asarray(values).astype(array.dtype), device_of(array))


def _random(rng: np.random.Generator, array: Any) -> Any:
    noise: Any = np.empty(array.shape, _wide(array))
    noise.real = rng.standard_normal(array.shape)
    if array.dtype.kind == "c":
        noise.imag = rng.standard_normal(array.shape)
    return noise


def _leaf(values: Any, *, like: Any) -> Any:
    """Return a tensor that requires grad, in memory of its own."""
    with on(like):
        tensor = wrap(namespace(like).array(_like(values, like) if isinstance(values, np.ndarray) else values))
    tensor.edge = (accumulator_of(tensor), 0)
    return tensor


def _inner(a: Any, b: Any) -> float:
    return float(np.sum(a.real * b.real + a.imag * b.imag))
