"""Differential equations: `scipy.integrate.odeint`, with a gradient that solves an equation backwards in time.

SciPy's solver chooses its steps by numbers, so that what is recorded is the solution and not its steps. Where L depends
on the solution y, ``a = dL/dy`` is carried back from each of the times to the one before by ``a' = -a df/dy``, beside y
itself and the sums of ``a df/dp`` for each parameter p. This is one more call of `odeint`, by which all orders follow.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid import numpy as lnp
from lucid.arguments import shown
from lucid.autograd.base import TensorBase, wrap
from lucid.autograd.function import Function
from lucid.errors import DeviceError, GraphError
from lucid.numpy.autograd import make_vjp
from lucid.numpy.border import any_recorded, array_on_device, plain
from lucid.scipy.rules.rule import Array, as_array, by_op, host_library, in_double, rule
from lucid.tensor.numpy_calls.operands import NumpyCallError, is_recorded
from lucid.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lucid.tensor import Tensor

# SciPy's own, of rtol and atol.
USUAL = 1.49012e-8
# By how many tolerances the way back may miss where it came from, and how often an interval is halved until it hits.
MISSED, HALVINGS = 1000.0, 16


class Equation(NamedTuple):
    """The equation ``y' = func(y, t, *args)``.

    Attributes
    ----------
    func : callable
    tfirst : bool
        Whether it takes the time first.
    form : TreeSpec
        Of its further arguments.
    constants : tuple
        Their leaves, with a `Place` where one is differentiated by.
    options : mapping
        Those of SciPy's solver.
    """

    func: Callable[..., Any]
    tfirst: bool
    form: TreeSpec
    constants: tuple[Any, ...]
    options: Mapping[str, Any]

    def args(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Return the further arguments, with values for those that are differentiated by."""
        remaining = iter(values)
        leaves = [next(remaining) if leaf is Place else leaf for leaf in self.constants]
        return tree_unflatten(leaves, self.form)

    def slope(self, y: Array, t: Array, *values: Array) -> Any:
        """Return y' as an array."""
        args = self.args(values)
        return lnp.atleast_1d(as_array(self.func(t, y, *args) if self.tfirst else self.func(y, t, *args)))

    def solved(self, y0: Array, t: Array, values: Sequence[Any], **options: object) -> Any:
        """Return SciPy's solution for plain arrays."""
        solver = host_library("integrate").odeint
        return solver(self.func, y0, t, self.args(values), tfirst=self.tfirst, **{**self.options, **options})

    def solution(self, y0: Array, t: Array, values: Sequence[Any]) -> Any:
        """Return y at each of the times, recorded if something is."""
        if any_recorded((y0, t, [*values])):
            return by_op(Solution.apply, self, y0, t, *values)
        return self.solved(y0, t, values)


class Place:
    """The place of a differentiated operand among constants."""


class Solution(Function):
    """The solution of an equation at some times, as a function of initial values, times and parameters."""

    @staticmethod
    def forward(ctx: Any, equation: Equation, y0: Tensor, t: Tensor, *values: Tensor) -> Any:
        """Return the solution by SciPy's solver."""
        y = wrap(equation.solved(y0.array, t.array, [value.array for value in values]))
        ctx.equation = equation
        ctx.save_for_backward(y, t, *values)
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Array) -> Any:
        """Return the gradients by all that is a tensor."""
        y, t, *values = [lnp.asarray(each) if is_recorded(each) else each.array for each in ctx.saved_tensors]
        (g,) = [lnp.asarray(each) if is_recorded(each) else each.array for each in grads]
        slopes = gradients(ctx.equation, y, t, values, g, of_times=ctx.needs_input_grad[2])
        return None, *[None if each is None else on_host(each) for each in slopes]


def on_host(value: Array) -> Any:
    """Return an array of the host as a tensor there, whatever the default device; a tensor as it is."""
    return value if isinstance(value, TensorBase) else wrap(np.asarray(value))


def gradients(
    equation: Equation, y: Array, t: Array, values: Sequence[Any], g: Array, *, of_times: bool
) -> tuple[Any, ...]:
    """Return the gradients by the start, by the times if they are asked for, and by each parameter."""
    a: Any = np.zeros(y.shape[1:])
    sums: list[Any] = [np.zeros(np.shape(plain(value))) for value in values]
    by_time: list[Any] = []
    for i in range(len(t) - 1, 0, -1):
        a = a + g[i]
        if of_times:
            by_time.append(lnp.sum(g[i] * equation.slope(y[i], t[i], *values)))
        a, shares = carried_back(equation, a, (y[i - 1], y[i]), (t[i - 1], t[i]), values, HALVINGS)
        sums = [total + share for total, share in zip(sums, shares, strict=True)]
    times = None
    if of_times and len(t):
        by_time.append(-lnp.sum(a * equation.slope(y[0], t[0], *values)))
        times = lnp.stack(by_time[::-1])
    return (a + g[0] if len(t) else a), times, *sums


def carried_back(
    equation: Equation, a: Array, ends: tuple[Any, Any], times: tuple[Any, Any], values: Sequence[Any], halvings: int
) -> tuple[Any, list[Any]]:
    """Return `a` at the first of two times of `a` at the second, and the increments of parameters' gradients between.

    Backwards in time an equation may be unstable that is stable forwards. Where y does not come back to where it was,
    the interval is halved.

    Raises
    ------
    GraphError
        If that does not help.
    """
    size, sizes = a.shape[0], [int(np.prod(np.shape(plain(value)))) for value in values]
    state: Any = None
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        # of steps that do not get there, which is seen by where they get
        warnings.simplefilter("ignore")
        if returns(equation, ends, times, values):
            start = lnp.concatenate([ends[1], a, np.zeros(sum(sizes))])
            back = lnp.stack([times[1], times[0]])
            state = augmented(equation, size, len(values)).solution(start, back, values)[1]
    if state is not None and is_near(equation, plain(state)[:size], ends):
        parts = np.cumsum([2 * size, *sizes])
        shares = [
            lnp.reshape(state[first:last], np.shape(plain(value)))
            for first, last, value in zip(parts[:-1], parts[1:], values, strict=True)
        ]
        return state[size : 2 * size], shares
    if not halvings:
        raise GraphError(
            f"scipy.integrate.odeint: between the times {plain(times[0])} and {plain(times[1])} the equation cannot be "
            "followed backwards, as its gradient has to be: it is too stiff there for the tolerances rtol and atol"
        )
    middle = (times[0] + times[1]) / 2
    between = equation.solution(ends[0], lnp.stack([times[0], middle]), values)[1]
    a, later = carried_back(equation, a, (between, ends[1]), (middle, times[1]), values, halvings - 1)
    a, earlier = carried_back(equation, a, (ends[0], between), (times[0], middle), values, halvings - 1)
    return a, [one + other for one, other in zip(later, earlier, strict=True)]


def augmented(equation: Equation, size: int, count: int) -> Equation:
    """Return the equation of y, of the gradient by it, and of the gradients by `count` parameters."""

    def rates(state: Array, t: Array, *values: Array) -> Any:
        y, a = state[:size], state[size : 2 * size]

        def slope_at(point: tuple[Any, list[Any]]) -> Any:
            return equation.slope(point[0], t, *point[1])

        vjp, slope = make_vjp(slope_at)((on_host(y), [*map(on_host, values)]))
        by_y, by_values = vjp(on_host(-a))
        return lnp.concatenate([slope, by_y, *[lnp.ravel(each) for each in by_values]])

    return Equation(rates, False, tree_flatten((0,) * count)[1], (Place,) * count, within(equation))


def within(equation: Equation) -> dict[str, Any]:
    """Return the options of the solver that hold for other equations too, of any size and backwards."""
    limits = ("hmax", "hmin", "mxstep", "mxordn", "mxords")
    tolerances = {name: tolerance(equation, name).min() for name in ("rtol", "atol")}
    return {**tolerances, **{name: equation.options[name] for name in limits if name in equation.options}}


def tolerance(equation: Equation, name: str) -> np.ndarray[Any, Any]:
    """Return a tolerance of the solver's, one or one for each component."""
    value = equation.options.get(name)
    return np.asarray(USUAL if value is None else value, float)


def returns(equation: Equation, ends: tuple[Any, Any], times: tuple[Any, Any], values: Sequence[Any]) -> bool:
    """Return whether y alone, without gradients, returns to its values: most failures show in that."""
    start, stop = plain(times[0]), plain(times[1])
    alone = equation._replace(options=within(equation))
    back = alone.solved(plain(ends[1]), np.stack([stop, start]), [plain(value) for value in values])
    return is_near(equation, back[1], ends)


def is_near(equation: Equation, computed: Array, ends: tuple[Any, Any]) -> bool:
    """Return whether y is near its value at the first end; true also if values there or later are infinite or NaN."""
    wanted, later = plain(ends[0]), plain(ends[1])
    if not (np.isfinite(wanted).all() and np.isfinite(later).all()):
        return True
    allowed = tolerance(equation, "atol") + tolerance(equation, "rtol") * abs(wanted)
    return bool((abs(computed - wanted) <= MISSED * allowed).all())


@rule(
    "integrate.odeint",
    "func y0 t args Dfun col_deriv full_output ml mu rtol atol h0 hmax hmin mxstep mxordn mxords tfirst",
)
def odeint(
    func: Callable[..., Any],
    y0: Array,
    t: Array,
    args: tuple[Any, ...] = (),
    full_output: int = 0,
    tfirst: bool = False,
    **options: Array,
) -> Any:
    """Return ``scipy.integrate.odeint``, with gradients by the start, the times and all arrays among `args`.

    The gradients are as exact as the solution, to `rtol` and `atol`.

    Raises
    ------
    NumpyCallError
        If the function depends on a tensor that requires grad and that is not among `args`.
    DeviceError
        If an array is on a CUDA device.
    """
    if not isinstance(args, tuple):
        raise NumpyCallError(f"scipy.integrate.odeint: args: expected a tuple, got {shown(args)}: give (args,)")
    leaves, form = tree_flatten(args)
    if array_on_device(plain([y0, t, *leaves])) is not None:
        raise DeviceError("the solver runs on the CPU, got an array on a CUDA device: give y0, t and args as x.cpu()")
    y0, t = in_double(y0, t)
    values = [leaf for leaf in leaves if is_recorded(leaf)]
    if wrong := [dtype for each in (y0, t, *values) if (dtype := plain(each).dtype).kind == "c"]:
        raise NumpyCallError(
            f"scipy.integrate.odeint: expected real numbers, got {wrong[0]}: give real and imaginary parts"
        )
    constants = tuple([Place if is_recorded(leaf) else leaf for leaf in leaves])
    equation = Equation(func, bool(tfirst), form, constants, options)
    y0 = lnp.atleast_1d(y0)
    y = equation.solution(y0, t, values)
    if t.size and is_recorded(equation.slope(*[plain(each) for each in (y0, t[0], *values)])):
        raise NumpyCallError(
            "scipy.integrate.odeint: the function depends on a tensor that requires grad and is not among its "
            "arguments, and gets no gradient so: give it in args"
        )
    if not full_output:
        return y
    _, told = equation.solved(plain(y0), plain(t), [plain(value) for value in values], full_output=full_output)
    return y, told
