"""Each argument of each rule by itself: recorded, it has its gradient or is refused, and a wrong word is refused."""

import copy
import functools
import inspect
import warnings

import numpy as np

import lucid
from lucid import numpy as lnp
from lucid.errors import NotDifferentiableError
from lucid.tensor.numpy_calls.definition import parameters_of
from lucid.tensor.numpy_calls.operands import any_recorded
from lucid.tensor.numpy_calls.protocols import name_of
from lucid.tensor.numpy_calls.table import RULES
from tests.tensor.numpy_calls.samples import OPERANDS
from tests.tensor.numpy_calls.test_odd_operands import alike, outcome
from tests.tensor.numpy_calls.test_rules import GONE, ROWS, evaluated, leaf_of, plain

STEP = 1e-6
WITHOUT_SLOPE = {"histogram": 0}
"""Edges of bins go with the array, and docs/users/numpy.md says that they are not recorded by it."""


VECTORS = {"linalg.eig", "linalg.eigh", "linalg.svd"}
"""Whose matrices have vectors of either sign."""


def is_free(name, args, kwargs):
    """Return whether NumPy does not say some numbers of a result."""
    return name == "empty_like" or "empty" in [x for x in (*args, *kwargs.values()) if isinstance(x, str)]


class Noting:
    """A module of NumPy's, or a ufunc, which notes each call of a function that has a rule."""

    def __init__(self, of, calls, path=()):
        self.of, self.calls, self.path = of, calls, path

    def __getattr__(self, name):
        value = getattr(self.of, name)
        if inspect.ismodule(value) or f"{name}.accumulate" in RULES:
            return Noting(value, self.calls, (*self.path, name))
        if not callable(value) or isinstance(value, type | np.ufunc):
            return value

        def call(*args, **kwargs):
            path = (*self.path, name)
            rule = ".".join(path) if ".".join(path) in RULES else name_of(value)
            if rule in RULES:
                self.calls.append((rule, value, path, *copy.deepcopy((args, kwargs))))
            return value(*args, **kwargs)

        return call

    def __call__(self, *args, **kwargs):
        return self.of(*args, **kwargs)


def noted(rng):
    """Return the calls of functions that have a rule in all rows of the table."""
    calls = []
    for _, call in ROWS:
        evaluated(call, Noting(np, calls), {key: draw(rng) for key, draw in OPERANDS.items()})
    assert {name for name, *_ in calls} == RULES.keys() - GONE
    return calls


def parts(value, place):
    """Yield the places of floats and arrays of them in nested lists and tuples."""
    if isinstance(value, list | tuple):
        for k, each in enumerate(value):
            yield from parts(each, (*place, k))
    elif isinstance(value, float | complex | np.ndarray | np.generic) and np.asarray(value).dtype.kind in "fc":
        yield place


def replaced(value, place, new):
    """Return nested lists and tuples with another value at a place."""
    if not place:
        return new(value)
    made = [replaced(each, place[1:], new) if k == place[0] else each for k, each in enumerate(value)]
    return made if isinstance(value, list) else tuple(made)


def at(module, path):
    """Return the function at a path of names."""
    return functools.reduce(getattr, path, module)


def recorded_in(value):
    """Return nested lists and tuples with the arrays of floats recorded."""
    if type(value) in {list, tuple}:
        return type(value)([recorded_in(each) for each in value])
    return lnp.asarray(leaf_of(value)) * 1.0 if type(value) is np.ndarray and value.dtype.kind in "fc" else value


def result_of(call, module, place, new):
    """Return what a call gives with another value of one argument, as a list of arrays."""
    path, args, kwargs = copy.deepcopy(call[2:])
    key, *rest = place
    if isinstance(key, str):
        kwargs[key] = replaced(kwargs[key], rest, new)
    else:
        args = replaced(args, place, new)
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        result = at(module, path)(*args, **kwargs)
    if result is None:  # what it has written into
        result = next(iter([*args, *kwargs.values()]))
    return list(result) if isinstance(result, list | tuple) else [result]


def slopes_of(call, place, value, rng):
    """Return along a random direction of an argument NumPy's slope of a random sum of results, and the recorded one.

    The latter is the TypeError with which the call is refused.
    """
    # zeros of arrays stay, as they are trimmed
    direction = rng.standard_normal(np.shape(value)) * ((np.asarray(value) != 0) | (np.ndim(value) == 0))
    middle = result_of(call, np, place, lambda v: v)
    single = any(np.asarray(each).dtype.char in "fF" for each in middle)
    step = 1e-2 if single else STEP
    ends = [result_of(call, np, place, lambda v, h=h: v + h * direction) for h in (step, -step)]
    counted = [np.isfinite(each) & ((np.ndim(each) < 2) | (call[0] not in VECTORS)) for each in middle]
    weights = [np.where(each, rng.standard_normal(each.shape), 0.0) for each in counted]

    def total(results, xp):
        return [xp.sum(w * xp.real(xp.where(w == 0, 0, x))) for w, x in zip(weights, results, strict=True)]

    slope = (sum(total(ends[0], np)) - sum(total(ends[1], np))) / (2 * step)
    leaf = leaf_of(np.asarray(value))
    try:
        recorded = sum(total(result_of(call, lnp, place, lambda _: lnp.asarray(leaf) * 1.0), lnp))
        if not isinstance(recorded, lucid.Tensor):
            return slope, 0.0, single
        recorded.backward()
    except (TypeError, NotDifferentiableError) as error:
        return slope, error, single
    return slope, np.sum(np.real(plain(leaf.grad) * direction)), single


def test_each_argument_is_recorded_or_refused(rng):
    """An argument that changes the result, recorded alone, gets its gradient, or the call is refused by a TypeError.

    Every float, array of floats, and entry of a list in every call of the table has its turn.
    """
    wrong, recorded, refused = [], set(), set()
    for call in noted(rng):
        name, _, _, args, kwargs = call
        for place in [*parts(args, ()), *(each for key, x in kwargs.items() for each in parts(x, (key,)))]:
            if place[0] == WITHOUT_SLOPE.get(name) or is_free(name, args, kwargs):
                continue
            value = args if isinstance(place[0], int) else kwargs
            for key in place:
                value = value[key]
            slope, own, single = slopes_of(call, place, value, rng)
            if isinstance(own, Exception):
                refused.add((name, place[0]))
                continue
            recorded.add((name, place[0]))
            if not np.isclose(own, slope, rtol=1e-1 if single else 1e-3, atol=1e-1 if single else 1e-4):
                wrong.append(f"{name}{place} {single}: {own}, {slope}")
    assert not wrong, "\n".join(wrong)
    assert len(recorded) > 150
    assert {("cov", "aweights"), ("polyint", "k"), ("pad", "end_values"), ("sum", "initial")} <= recorded - refused
    assert {("unwrap", "period"), ("quantile", 1), ("linalg.pinv", "rcond")} <= refused


WORDS = {"dtype", "kind", "mode", "norm", "ord", "order", "p"}
"""Parameters that may be words, of which the default is none in some functions."""


def test_a_misspelt_word_is_refused_where_numpy_refuses_it(rng):
    """Each parameter of each rule that takes words refuses another one, by an error of the kind that NumPy raises."""
    wrong, tried = [], set()
    for name, function, path, args, kwargs in noted(rng):
        known = parameters_of(function)
        if known is None or not any_recorded(recorded_in(args)):  # none of C are known before NumPy 2.4
            continue
        for key in RULES[name].names:
            if (name, key) in tried or not (key in WORDS or isinstance(known.defaults.get(key), str)):
                continue
            tried.add((name, key))
            given = inspect.signature(function).bind(*args, **kwargs)
            given.arguments[key] = "zz"
            expected, made = (
                outcome("f(*args, **kwargs)", None, {"f": f, "args": operands, "kwargs": given.kwargs})
                for f, operands in ((function, given.args), (at(lnp, path), recorded_in(given.args)))
            )
            if isinstance(expected, Exception) and not alike(made, expected):
                wrong.append(f"{name}({key}='zz'): {expected!r}, {made!r}")
    assert not wrong, "\n".join(wrong)
    assert {("reshape", "order"), ("take", "mode"), ("trim_zeros", "trim"), ("meshgrid", "indexing")} <= tried


REFUSED = """
np.cov(v, fweights=[1.5, 2, 1, 1]) | np.cov(v, fweights=[1, 2]) | np.polyint(v, 3, [c, 1.0]) | np.polyint(v, -1)
np.polyint(x) | np.gradient(v, [1.0, 2.0]) | np.gradient(x, v) | np.gradient(x, v, v) | np.gradient(v, edge_order=3)
np.gradient(x, x, axis=0) | np.average(x, (0, 1), W) | np.average(x, (0, 1), p.T) | np.average(x, 0, W[:1])
np.interp(v, u, u, period=0) | np.interp(c, x, x) | np.interp(c, v[:0], v[:0]) | np.linspace(v, 1, -2)
np.linspace(v, 1, 3.0) | np.logspace(v, 1, -2) | np.geomspace(p, 1, 2.0) | np.meshgrid(v, v, indexing="ab")
np.take(x, [5], mode="ab") | np.take(x, [5], mode=7) | np.trim_zeros(v, "q")
np.trim_zeros(v, "") | np.ravel(x, order="Z") | np.reshape(x, -1, order="K") | np.copy(x, order="Z")
np.array(x, order="Z") | np.bincount([1], v[:1], -1) | np.bincount([1], v[:1], 2.0) | np.rollaxis(s, 0, -4)
np.rollaxis(s, 0, 4) | np.asarray(v, dtype="f4", copy=False) | np.array(v, dtype="f4", copy=False)
np.array([v, v], copy=False) | np.asarray([c, c], copy=False) | np.var(x, ddof=1, correction=1)
np.nanstd(x, ddof=2, correction=0) | np.std(x, ddof=1, correction=1) | np.clip(x, 0, 1, min=0)
np.clip(x, a_min=0) | np.clip(x, a_max=c) | np.clip(x, 0, max=1) | np.pad(v[:0], 1, "mean") | np.pad(v, 1.5)
np.pad(x[:, :0], ((0, 0), (1, 0)), "linear_ramp") | np.sort(v, kind="zz") | np.sort(v, kind="stable", stable=True)
np.split(v, 1.5) | np.broadcast_to(v, -1) | np.broadcast_to(v, (-1, 4)) | np.linalg.tensorinv(m, 0)
np.histogram(x, 3, weights=p.reshape(4, 3)) | np.quantile(x, 1.5) | np.percentile(x, [-1, 50])
np.piecewise(x, x < 0, [-1, 1]) | np.piecewise(v, [v < 0, v > 0], [1]) | x[:, :2].reshape(-1, order="K")
np.linalg.qr(m, "zz") | np.vander(v, 2.0) | np.nanvar(x, ddof="zz")
np.linalg.pinv(m, 0.1, rtol=0.1) | np.linalg.pinv(m, 0.1, rtol=None) | np.reshape(x.T, -1, copy=False)
np.reshape(x, -1, order="F", copy=False) | x.T.reshape(-1, copy=False) | np.add(x, 1, dtype=int)
np.add(x, True, dtype=bool) | np.sqrt(x, dtype=int) | np.sin(x * 1j, dtype="f8") | np.absolute(x * 1j, dtype="f4")
np.add(x.astype("f4"), y, dtype="f4", casting="safe") | np.add(x, y, dtype="f4", casting="safe")
np.concatenate([x, y], dtype="f4", casting="safe") | np.stack([x, y], dtype="f4", casting="safe")
np.hstack([x, y], dtype="f4", casting="safe") | np.einsum("i,i", v, v, dtype=int, casting="same_kind")
np.einsum("i,i", v, v.astype("f4"), casting="no") | np.einsum("i,i", v, v, casting="zz")
"""
GIVEN = """
np.clip(x, 0, None) | np.clip(x, None, None) | np.clip(x, min=0) | np.clip(x, a_min=0, a_max=c) | x.clip(0)
x.clip(max=1) | x.clip(0, max=c) | np.take(x, [-20, 50], mode=0) | np.take(x, [-20, 50], 1, mode=1)
np.take(x, [-1], mode=2) | np.reshape(x.T, -1, "F", copy=False) | np.reshape(x.T, -1, "A", copy=False)
np.absolute(x * 1j, dtype="f8") | np.add(x, 1.5, dtype="f4") | np.add(x.astype("f4"), 1.5, dtype="f4", casting="safe")
np.ldexp(x.astype("f4"), [1, 2, 3, 4], dtype="f4") | np.power(x, 2, dtype="f4")
np.add(x, y, dtype="c16", casting="safe")
np.add(x.astype("f4"), y, casting="safe") | np.multiply(2, x, dtype="f4")
np.linalg.pinv((x[:, :1] * v).astype("f4"), rtol=None) | np.linalg.pinv(np.stack([m, m.T]), [1e-10, 0.3])
np.linalg.pinv(m, np.array(0.3)) | np.stack([x, y], dtype="c16", casting="safe")
np.asarray(x, copy=False) | np.array(x, copy=None, dtype="f4") | np.astype(x, "f4", copy=False)
np.linspace(v, 1, 1, retstep=True) | np.linspace(v, 1, 0, False, retstep=True) | np.linspace(v, 1, 3, retstep=True)
np.ravel(x, order="f") | np.reshape(x, (4, 3), order="f") | np.reshape(x, -1, order=None) | np.rollaxis(s, 0, -3)
np.rollaxis(s, 0, 3) | np.trim_zeros(v, "FB") | np.pad(v[:0], 0, "mean")
np.pad(x, 1, "linear_ramp", end_values=p[0, :2])
np.linalg.cond(m * 0) | np.linalg.cond(m * [[[1]], [[0]]]) | np.linalg.cond(m * 0, 1)
np.piecewise(v, v < 0, [-1, 1]) | np.piecewise(c, c < 0, [-1, np.exp]) | np.gradient(x, [1, 2, 4], axis=0)
np.gradient(x, np.array([0, 2, 1], np.uint8), axis=0)
np.gradient(x, np.array([0, 2, 3]), axis=0) | np.gradient(v, u, edge_order=2) | np.gradient(x, 2.0, u)
np.float_power(-x * np.inf, 0.5) | np.float_power(x, 2) | np.float_power(2, x) | np.power(-x * np.inf, 0.5)
np.average(s, (2, 0), np.moveaxis(s, 0, 2)[0] * 0 + 1) | np.linalg.lstsq(x.T, v, 2.0)[0] | np.unwrap(v, period=1)
np.cov(x, fweights=[1.0, 2.0, 1.0, 3.0]) | np.cov(x, aweights=[c * 0 + 1, 2.0, 1.0, 0.5], fweights=[1, 2, 1, 3])
"""


def test_what_numpy_refuses_of_the_values_of_arguments(rng):
    """Each call of `REFUSED` raises NumPy's kind of error, and each of `GIVEN`, beside these, has NumPy's results."""
    values = {key: draw(rng) for key, draw in OPERANDS.items()}
    operands = {key: lnp.asarray(leaf_of(x)) if key.islower() else x for key, x in values.items()}
    for text, is_refused in ((REFUSED, True), (GIVEN, False)):
        for call in (call.strip() for line in text.strip().splitlines() for call in line.split("|")):
            expected, made = outcome(call, np, values), outcome(call, lnp, operands)
            assert isinstance(expected, Exception) == is_refused, call
            assert alike(made, expected, 1e-6), (call, expected, made)
