"""Transforms have inverses and the determinants of their derivatives; registries lead to what constraints hold for."""

from __future__ import annotations

import copy
import inspect
import math

import numpy as np
import pytest
import scipy.stats

import lucid
from lucid import distributions
from lucid.autograd.functional import jacobian
from lucid.distributions import (
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    SigmoidTransform,
    StackTransform,
    TanhTransform,
    TransformedDistribution,
    biject_to,
    constraints,
    transform_to,
)
from lucid.errors import ArgumentError, SettingError, ShapeError
from tests.device import DEVICE
from tests.distributions.samples import of


@pytest.mark.parametrize("count", [-1, 0.5, "a"])
def test_numbers_of_dimensions(count):
    """They are 0 or more: of fewer all dimensions were summed up."""
    for name, make in (
        (
            "IndependentTransform: reinterpreted_batch_ndims",
            lambda: distributions.IndependentTransform(ExpTransform(), count),
        ),
        ("AffineTransform: event_dim", lambda: AffineTransform(0.0, 2.0, event_dim=count)),
    ):
        with pytest.raises(SettingError, match=f"{name}: expected a whole number from 0 on, got"):
            make()


SIMPLE = {
    "affine": lambda: AffineTransform(of(0.5), of([2.0, -0.5, 1.5])),
    "affine of events": lambda: AffineTransform(0.5, of([2.0, -0.5, 1.5]), event_dim=1),
    "cat": lambda: distributions.CatTransform([ExpTransform(), AffineTransform(1.0, 3.0)], dim=-1, lengths=[1, 2]),
    "chain": lambda: ComposeTransform([AffineTransform(0.0, 0.5), SigmoidTransform(), AffineTransform(-1.0, 3.0)]),
    "chain to shares": lambda: ComposeTransform([AffineTransform(0.0, 0.5), distributions.StickBreakingTransform()]),
    "chain to wider events": lambda: ComposeTransform(
        [ExpTransform(), distributions.ReshapeTransform((3,), (3, 1)), AffineTransform(0.5, -2.0)]
    ),
    "chain there and back": lambda: ComposeTransform(
        [
            distributions.ReshapeTransform((3,), (1, 3)),
            SigmoidTransform(),
            distributions.ReshapeTransform((1, 3), (3,)),
            AffineTransform(0.5, -2.0),
        ]
    ),
    "correlations": distributions.CorrCholeskyTransform,
    "distribution": lambda: distributions.CumulativeDistributionTransform(distributions.Gumbel(of(0.1), 2.0)),
    "exp": ExpTransform,
    "independent": lambda: distributions.IndependentTransform(ExpTransform(), 1),
    "inverse": lambda: ComposeTransform([ExpTransform(), distributions.SoftplusTransform().inv]),
    "power": lambda: ComposeTransform([ExpTransform(), distributions.PowerTransform(of([2.0, -0.5, 1.5]))]),
    "reshape": lambda: distributions.ReshapeTransform((3,), (3, 1)),
    "sigmoid": SigmoidTransform,
    "softplus": distributions.SoftplusTransform,
    "stack": lambda: StackTransform([ExpTransform(), AffineTransform(1.0, 3.0), TanhTransform()], dim=-1),
    "stick breaking": distributions.StickBreakingTransform,
    "tanh": TanhTransform,
}


@pytest.mark.parametrize("cache_size", [0, 1])
@pytest.mark.parametrize("row", SIMPLE)
def test_inverse_and_determinant(row, cache_size, rng):
    """What a transform gives leads back, and its determinant is that of the derivative, with or without a cache."""
    transform = SIMPLE[row]().with_cache(cache_size)
    x = of(rng.normal(size=3))
    y = transform(x)
    assert transform.codomain.check(y).all()
    np.testing.assert_allclose(transform.inv(y).cpu().numpy(), x.cpu().numpy(), rtol=1e-8)
    assert transform.inv.inv is transform
    assert transform == transform
    assert tuple(transform.forward_shape(x.shape)) == tuple(y.shape)
    assert tuple(transform.inverse_shape(y.shape)) == tuple(x.shape)
    # rows of a triangle and shares depend on each other: as many of them as there are numbers are looked at
    flat = {
        "correlations": lambda x: distributions.utils.tril_matrix_to_vec(SIMPLE[row]()(x), diag=-1),
        "stick breaking": lambda x: SIMPLE[row]()(x)[:-1],
        "chain to shares": lambda x: SIMPLE[row]()(x)[:-1],
    }.get(row, lambda x: SIMPLE[row]()(x).flatten())
    matrix = jacobian(flat, x).cpu().numpy()
    found = transform.log_abs_det_jacobian(x, y)
    assert found.shape == x.shape[: x.dim() - transform.domain.event_dim]
    assert found.sum().item() == pytest.approx(np.linalg.slogdet(matrix)[1], rel=1e-8)
    back = transform.inv.log_abs_det_jacobian(y, x)
    np.testing.assert_allclose(back.cpu().numpy(), -found.cpu().numpy(), rtol=1e-8)


@pytest.mark.parametrize("row", SIMPLE)
def test_a_batch_is_made_of_events(row, rng):
    """Of several events a transform and its determinant give what they give of each by itself."""
    transform = SIMPLE[row]()
    x = of(rng.normal(size=(2, 4, 3)))
    y = transform(x)
    found = transform.log_abs_det_jacobian(x, y)
    for place in np.ndindex(2, 4):
        np.testing.assert_allclose(y[place].tolist(), transform(x[place]).tolist(), rtol=1e-12)
        one = transform.log_abs_det_jacobian(x[place], y[place])
        assert found.shape == (2, 4, *one.shape)
        np.testing.assert_allclose(found[place].tolist(), one.tolist(), rtol=1e-12, atol=1e-12)
    assert (transform.inv.with_cache(1)(y) - x).abs().max().item() < 1e-7


def shares(x):
    """Return the shares that sticks break into by lucid's formula, and their determinant, with NumPy."""
    to_come = np.arange(x.shape[-1], 0, -1)
    part = 1 / (1 + np.exp(np.log(to_come) - x))
    left = np.concatenate([np.ones((*x.shape[:-1], 1)), np.cumprod(1 - part, -1)], -1)
    y = np.concatenate([part, np.ones((*x.shape[:-1], 1))], -1) * left
    return y, np.log(part * (1 - part) * left[..., :-1]).sum(-1)


Sticks = distributions.StickBreakingTransform
# by row: the transform, the shape of x, the pieces of x and y, whether they are stacked, and where
PIECES = {
    "cat": (lambda: distributions.CatTransform([Sticks(), Sticks()], -1, [2, 3]), (4, 5), -1),
    "cat of a batch": (lambda: distributions.CatTransform([Sticks(), Sticks()], -2, [1, 3]), (5, 4, 2), -2),
    "cat from the start": (lambda: distributions.CatTransform([Sticks(), Sticks()], 0, [2, 3]), (5,), 0),
    "stack": (lambda: StackTransform([Sticks(), Sticks()], -2), (3, 2, 4), -2),
    "stack of columns": (lambda: StackTransform([Sticks(), Sticks()], -1), (3, 4, 2), -1),
    "stack of a batch": (lambda: StackTransform([Sticks(), Sticks()], 0), (2, 3, 4), 0),
}


@pytest.mark.parametrize("row", PIECES)
def test_pieces_that_change_their_size(row, rng):
    """Shapes, values, inverse and determinants are those of the pieces, added up within an event."""
    make, shape, dim = PIECES[row]
    transform, array = make(), rng.normal(size=shape)
    if row.startswith("cat"):
        pieces = [shares(piece) for piece in np.split(array, np.cumsum(transform.lengths)[:-1], dim)]
        wanted = np.concatenate([y for y, _ in pieces], dim)
        logs = pieces[0][1] + pieces[1][1] if dim != -2 else np.concatenate([log for _, log in pieces], -1)
    else:
        pieces = [shares(piece) for piece in np.moveaxis(array, dim, 0)]
        wanted = np.stack([y for y, _ in pieces], dim)
        logs = pieces[0][1] + pieces[1][1] if dim < 0 else np.stack([log for _, log in pieces])
    x = of(array)
    y = transform(x)
    np.testing.assert_allclose(y.cpu().numpy(), wanted, rtol=1e-12)
    np.testing.assert_allclose(transform.inv(y).cpu().numpy(), array, rtol=1e-9)
    assert (tuple(transform.forward_shape(shape)), tuple(transform.inverse_shape(wanted.shape))) == (y.shape, shape)
    np.testing.assert_allclose(transform.log_abs_det_jacobian(x, y).cpu().numpy(), logs, rtol=1e-10)
    assert logs.shape == shape[: len(shape) - transform.domain.event_dim]
    if dim < 0:
        normal = distributions.Normal(of(np.zeros(shape)), 1.0)
        found = TransformedDistribution(normal, transform)
        assert found.event_shape == y.shape[y.dim() - transform.codomain.event_dim :]
        assert transform.codomain.check(found.sample()).all()
        density = normal.log_prob(x).sum(tuple(range(-transform.domain.event_dim, 0))).cpu().numpy() - logs
        np.testing.assert_allclose(found.log_prob(y).cpu().numpy(), density, rtol=1e-9)


def test_pieces_lead_to_their_constraints(rng):
    """A bijection to pieces that are shares has one number less for each; sizes that cannot be are refused."""
    for constraint, shape in (
        (constraints.cat([constraints.simplex] * 2, -1, [2, 3]), (4, 3)),
        (constraints.stack([constraints.simplex] * 2, -2), (4, 2, 3)),
    ):
        transform = biject_to(constraint)
        y = transform(of(rng.normal(size=shape)))
        assert constraint.check(y).tolist() == [True] * 4
        assert transform.log_abs_det_jacobian(transform.inv(y), y).shape == (4,)
    for transform in (distributions.CatTransform([ExpTransform()], 1), StackTransform([ExpTransform()], 1)):
        with pytest.raises(ShapeError, match=r"expected a shape with a dimension 1, got \(1,\)"):
            transform.forward_shape((1,))
    for kind in (distributions.CatTransform, StackTransform):
        with pytest.raises(SettingError, match="tseq: expected one transform or more, got none"):
            kind([])


def test_values_of_size_one_are_of_all_of_an_event():
    """A density at a value that broadcasts along an event has the determinant of each element."""
    base = distributions.Independent(distributions.Normal(of([0.0, 0.5, 1.0]), 1.0), 1)
    found = TransformedDistribution(base, ExpTransform())
    wide = sum(distributions.LogNormal(of(loc), 1.0).log_prob(of(2.0)).item() for loc in (0.0, 0.5, 1.0))
    assert found.log_prob(of([2.0])).item() == pytest.approx(wide, rel=1e-12)
    assert found.log_prob(of([[2.0], [2.0]])).tolist() == pytest.approx([wide, wide], rel=1e-12)


def test_transforms_are_ones_own():
    """A list that is changed later changes no distribution, and a tuple is as good as a list."""
    given = [ExpTransform()]
    found = TransformedDistribution(distributions.Normal(of(0.0), 1.0), given)
    before = found.log_prob(of(2.0)).item()
    given.append(ExpTransform())
    assert found.log_prob(of(2.0)).item() == before
    assert TransformedDistribution(distributions.Normal(of(0.0), 1.0), (ExpTransform(),)).transforms == given[:1]
    with pytest.raises(ArgumentError, match=r"parts: expected a list of transforms, got one; write \[transform\]"):
        ComposeTransform(ExpTransform())


@pytest.mark.parametrize("dtype", [lucid.float32, lucid.float64])
def test_powers_far_from_one(dtype):
    """Densities of powers are finite, with their slopes, where x or y is beyond the dtype."""
    of = lambda value: lucid.tensor(value, dtype=dtype, device=DEVICE)
    rel = 1e-5 if dtype == lucid.float32 else 1e-12
    values = [1e-20, 1e20, 1e25]
    found = distributions.InverseGamma(of(0.1), of(1.0)).log_prob(of(values)).tolist()
    assert found == pytest.approx(scipy.stats.invgamma(0.1).logpdf(values).tolist(), rel=rel)
    for k, at in ((50.0, 1e-7), (10.0, 1e-4), (0.02, 2.0), (1.0, 3.0)):
        x = of(at).requires_grad_()
        value = distributions.Weibull(of(1.0), of(k)).log_prob(x)
        assert value.item() == pytest.approx(scipy.stats.weibull_min(k).logpdf(at), rel=rel)
        (slope,) = lucid.autograd.grad(value, x)
        assert slope.item() == pytest.approx((k - 1) / at - k * at ** (k - 1), rel=10 * rel)
    for exponent in (0.01, 100.0):
        x = of(1e3)
        transform = distributions.PowerTransform(exponent)
        wanted = math.log(exponent) + (exponent - 1) * math.log(1e3)
        assert transform.log_abs_det_jacobian(x, transform(x)).item() == pytest.approx(wanted, rel=rel)


@pytest.mark.parametrize("kind", [distributions.StickBreakingTransform, distributions.CorrCholeskyTransform])
def test_far_numbers_come_back(kind):
    """Of numbers far from 0 nothing is lost in float32: values, inverses and determinants are those of float64."""
    array = np.array([6.0, -8.0, 10.0, 12.0, 4.0, -14.0])
    transform, x = kind(), lucid.tensor(array, dtype=lucid.float32, device=DEVICE)
    y = transform(x)
    assert transform.codomain.check(y).all()
    np.testing.assert_allclose(transform.inv(y).cpu().numpy(), array, rtol=1e-5)
    if kind is distributions.StickBreakingTransform:
        wanted, log = shares(array)
    else:
        # with the tangents in longer numbers, as 1 - tanh(x)**2 has few digits
        t, s = np.tanh(array.astype(np.longdouble)), 1 / np.cosh(array.astype(np.longdouble))
        wanted = np.eye(4, dtype=np.longdouble)
        wanted[1, :2] = t[0], s[0]
        wanted[2, :3] = t[1], s[1] * t[2], s[1] * s[2]
        wanted[3] = t[3], s[3] * t[4], s[3] * s[4] * t[5], s[3] * s[4] * s[5]
        log = (np.log(s) * [2, 3, 2, 4, 3, 2]).sum()
    np.testing.assert_allclose(y.cpu().numpy(), wanted.astype(float), rtol=2e-5)
    assert transform.log_abs_det_jacobian(x, y).item() == pytest.approx(float(log), rel=1e-6)


def test_densities_of_uneven_shares():
    """Draws of which one share has nearly all have the density of the normal numbers that they are made of."""
    loc, x = np.array([20.0, 0.0]), np.array([[20.5, 0.25], [18.5, -1.5]])
    found = distributions.LogisticNormal(lucid.tensor(loc, dtype=lucid.float32, device=DEVICE), 1.0)
    y, _ = shares(x)
    z = x - np.log([2, 1])
    log = (-np.logaddexp(0, -z) - [2, 1] * np.logaddexp(0, z)).sum(-1)
    at = lucid.tensor(y, dtype=lucid.float32, device=DEVICE)
    np.testing.assert_allclose(found.transforms[0].inv(at).cpu().numpy(), x, rtol=1e-5)
    wanted = scipy.stats.norm(loc, 1).logpdf(x).sum(-1) - log
    np.testing.assert_allclose(found.log_prob(at).cpu().numpy(), wanted, rtol=1e-5)


def test_too_few_dimensions():
    """Transforms of vectors say how many dimensions they take."""
    for transform in (Sticks(), distributions.SoftmaxTransform(), distributions.CorrCholeskyTransform()):
        name = type(transform).__name__
        with pytest.raises(ShapeError, match=f"{name}: expected 1 dimensions or more"):
            transform(of(1.0))
        with pytest.raises(ShapeError, match=f"{name}: expected . dimensions or more"):
            transform.inv(of(1.0))


def test_what_is_the_same_as_of_another_says_so_in_its_own_words():
    """`help` has the meaning of a sign that is read of another transform, and of the shape before a softmax."""
    sign = inspect.getdoc(distributions.Transform.sign)
    assert "rises" in sign
    for kind in (distributions.IndependentTransform, type(ExpTransform().inv)):
        assert inspect.getdoc(kind.sign) == sign
    for name in ("forward_shape", "inverse_shape"):
        wanted = inspect.getdoc(getattr(distributions.Transform, name))
        assert inspect.getdoc(getattr(distributions.SoftmaxTransform, name)) == wanted


@pytest.mark.parametrize("row", SIMPLE)
def test_domain_and_codomain_are_where_there_is_a_way_back(row, rng):
    """What is in one is what comes back from the other, no more and no less, of the transform and of its inverse."""
    transform = SIMPLE[row]()
    x = of(rng.normal(size=3))
    for there, start, values in ((transform, x, "domain"), (transform.inv, transform(x), "codomain")):
        for step in (-3.0, 0.0, 3.0) if not row.startswith("chain") else (0.0,):  # which only says what its ends say
            at = start + step
            try:
                back = there.inv(there(at)).cpu().numpy()
            except SettingError:  # of a distribution that looks at what it is asked about
                back = np.full(at.shape, np.nan)
            same = np.isclose(back, at.cpu().numpy(), rtol=1e-6, atol=1e-6)
            found = getattr(transform, values).check(at).cpu().numpy()
            assert (found == same.reshape(*found.shape, -1).all(-1)).all(), (values, step)


CONSTRAINTS = [
    constraints.real, constraints.real_vector, constraints.positive, constraints.nonnegative,
    constraints.greater_than(2.0), constraints.greater_than_eq(-1.0), constraints.less_than(3.0),
    constraints.unit_interval, constraints.interval(-1.0, 4.0), constraints.half_open_interval(1.0, 2.0),
    constraints.simplex, constraints.corr_cholesky, constraints.lower_cholesky, constraints.positive_definite,
    constraints.positive_semidefinite, constraints.cat([constraints.positive, constraints.real], -1, [1, 2]),
    constraints.stack([constraints.positive, constraints.real, constraints.unit_interval], -1),
    constraints.independent(constraints.positive, 1),
]  # fmt: skip

# by constraint: values that fit it, and others, at and beside each bound
BOUNDS = [
    (constraints.boolean, [0, 1], [0.5, 2, -1]),
    (constraints.real, [-np.inf, 0, np.inf], [np.nan]),
    (constraints.positive, [1e-300, np.inf], [0, -1]),
    (constraints.nonnegative, [0, 1], [-1e-300]),
    (constraints.greater_than(2.0), [2.1], [2, 1]),
    (constraints.greater_than_eq(2.0), [2], [1.9]),
    (constraints.less_than(2.0), [1.9], [2, 3]),
    (constraints.unit_interval, [0, 1], [-0.1, 1.1]),
    (constraints.interval(1.0, 2.0), [1, 2], [0.9, 2.1]),
    (constraints.half_open_interval(1.0, 2.0), [1, 1.9], [0.9, 2]),
    (constraints.nonnegative_integer, [0, 3], [-1, 0.5]),
    (constraints.positive_integer, [1, 3], [0, 1.5]),
    (constraints.integer_interval(1, 3), [1, 3], [0, 4, 1.5]),
    (constraints.one_hot, [[0, 1], [1, 0]], [[0, 0], [1, 1], [0.5, 0.5]]),
    (constraints.simplex, [[0, 1], [0.5, 0.5]], [[0.5, 0.4], [0.5, 0.6], [-0.5, 1.5]]),
    (constraints.multinomial(3), [[1, 2], [0, 0]], [[2, 2], [-1, 2]]),
]


@pytest.mark.parametrize(("constraint", "good", "bad"), BOUNDS, ids=[repr(row[0]) for row in BOUNDS])
def test_which_bounds_belong_to_it(constraint, good, bad):
    """A constraint holds for its bounds where its name says so, and for nothing beyond them."""
    assert constraint.check(of(good)).tolist() == [True] * len(good)
    assert constraint.check(of(bad)).tolist() == [False] * len(bad)


@pytest.mark.parametrize("registry", [biject_to, transform_to])
@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=repr)
def test_registries(constraint, registry, rng):
    """The transform of a constraint gives what fits it, with a gradient, and leads back to what gives the same."""
    square = constraint.event_dim == 2 and constraint is not constraints.corr_cholesky
    x = of(rng.normal(size=(5, 3, 3) if square else (5, 3))).requires_grad_()
    try:
        transform = registry(constraint)
    except NotImplementedError:
        assert registry is biject_to
        assert square
        return
    y = transform(x)
    assert constraint.check(y).all()
    again = transform(transform.inv(y))
    np.testing.assert_allclose(again.detach().cpu().numpy(), y.detach().cpu().numpy(), rtol=1e-7, atol=1e-9)
    y.square().sum().backward()
    assert x.grad.isfinite().all()
    if registry is biject_to:
        assert transform.bijective


def test_registry_of_ones_own():
    """A class of constraints gets a transform by `register`, as a decorator or not; others are refused."""

    class Even(constraints.Constraint):
        pass

    registry = distributions.constraint_registry.ConstraintRegistry()
    registry.register(Even, lambda constraint: ExpTransform())
    assert isinstance(registry(Even()), ExpTransform)

    @registry.register(constraints.real)
    def identity(constraint):
        return distributions.identity_transform

    assert registry(constraints.real) is distributions.identity_transform
    with pytest.raises(NotImplementedError, match="no transform to Even"):
        biject_to(Even())
    with pytest.raises(ArgumentError, match="expected a Constraint or a class of them, got 3"):
        registry.register(3, identity)


def test_a_cache_keeps_what_rounding_loses():
    """With it the inverse of the last y is the very x that gave it, so that a large one keeps its density."""
    x = lucid.tensor(30.0, device=DEVICE)
    kept, lost = TanhTransform(cache_size=1), TanhTransform()
    assert kept.inv(kept(x)) is x
    assert lost.inv(lost(x)).isinf()
    squashed = TransformedDistribution(distributions.Normal(lucid.tensor(20.0, device=DEVICE), 1.0), [kept])
    draw = squashed.rsample()
    assert squashed.log_prob(draw).isfinite()
    assert copy.deepcopy(kept)(x) == kept(x)
    with pytest.raises(SettingError, match="expected a cache_size of 0 or 1, got 2"):
        ExpTransform(cache_size=2)


SETTINGS = {
    "itself": lambda loc: AffineTransform(loc, 2.0),
    "of a base": lambda loc: distributions.IndependentTransform(AffineTransform(loc, 2.0), 1),
    "of an inverse": lambda loc: distributions.IndependentTransform(AffineTransform(-loc / 2, 0.5).inv, 1),
    "of pieces": lambda loc: distributions.CatTransform([AffineTransform(loc, 2.0), AffineTransform(loc, 2.0)]),
    "of a chain": lambda loc: ComposeTransform([AffineTransform(loc, 1.0), AffineTransform(0 * loc, 2.0)]),
}


@pytest.mark.parametrize("row", [row for row in SETTINGS if row not in {"of an inverse", "of a chain"}])
def test_a_cache_is_as_new(row):
    """What is kept is what would be computed: after a change in place of x, y or a setting it is computed anew."""
    loc, x = of(1.0), of([3.0, 5.0])
    transform = SETTINGS[row](loc).with_cache(1)
    y = transform(x)
    assert transform.inv(y) is x
    assert transform(x) is y
    loc.add_(4.0)
    assert transform(x).tolist() == [11.0, 15.0]
    assert transform.inv(y).tolist() == [1.0, 3.0]
    loc.sub_(4.0)
    y = transform(x)
    y.add_(2.0)
    assert transform.inv(y).tolist() == [4.0, 6.0]
    x.add_(1.0)
    assert transform(x).tolist() == [9.0, 13.0]


@pytest.mark.parametrize("mode", [lucid.no_grad, lucid.inference_mode])
@pytest.mark.parametrize("row", SETTINGS)
def test_a_cache_has_the_graph_of_its_reader(row, mode):
    """A value met without a graph before has its gradients afterwards, and the other way round the cache serves."""
    loc, v = of(1.0).requires_grad_(), of([3.0, 5.0])
    for cache_size in (0, 1):
        transform = SETTINGS[row](loc).with_cache(cache_size)
        made = TransformedDistribution(distributions.Normal(of([0.0, 0.0]), 1.0), [transform])
        with mode():
            before = made.log_prob(v)
        after = made.log_prob(v)
        assert (before.requires_grad, after.requires_grad) == (False, True)
        (slope,) = lucid.autograd.grad(after.sum(), loc)
        # x is (v - loc) / 2, of the chain v / 2 - loc
        wanted = sum(v_ / 2 - 1 if row == "of a chain" else (v_ - 1) / 4 for v_ in (3.0, 5.0))
        assert slope.item() == pytest.approx(wanted, rel=1e-12)
    squash = TanhTransform(cache_size=1)
    x = of(30.0).requires_grad_()
    y = squash(x)
    with mode():
        assert squash.inv(y) is x
        draw = squash(x.detach())
        assert squash.inv(draw).item() == 30.0
    if mode is lucid.no_grad:
        assert squash.inv(draw).item() == 30.0


def test_equal_transforms():
    """Those of one kind with equal settings are equal, and have one hash; others are not."""
    pairs = [
        (ExpTransform(), ExpTransform(), True),
        (ExpTransform(), SigmoidTransform(), False),
        (AffineTransform(0.0, 1.0), AffineTransform(0.0, of(1.0)), True),
        (AffineTransform(0.0, 1.0), AffineTransform(0.0, 2.0), False),
        (ComposeTransform([ExpTransform()]), ComposeTransform([ExpTransform()]), True),
        (ComposeTransform([ExpTransform()]), ComposeTransform([]), False),
        (ExpTransform().inv, ExpTransform().inv, True),
        (distributions.PowerTransform(2.0), distributions.PowerTransform(of([2.0, 3.0])), False),
        (AffineTransform(0.0, of([2.0, 2.0])), AffineTransform(0.0, of([2.0, 2.0, 2.0])), False),
        (AffineTransform(0.0, of([2.0])), AffineTransform(0.0, of([2.0, 2.0, 2.0])), True),
    ]
    for first, second, equal in pairs:
        assert (first == second) is equal
        if equal and not isinstance(first, AffineTransform):
            assert hash(first) == hash(second)


def test_shapes_of_transformed_distributions():
    """Events grow with what a transform takes and gives, and parameters of transforms widen the batch."""
    normal = distributions.Normal(of([0.0, 1.0]), of(1.0))
    wide = TransformedDistribution(normal, [AffineTransform(of([[0.0], [1.0], [2.0]]), 1.0)])
    assert (tuple(wide.batch_shape), tuple(wide.event_shape)) == ((3, 2), ())
    shares = TransformedDistribution(normal, [distributions.StickBreakingTransform()])
    assert (tuple(shares.batch_shape), tuple(shares.event_shape)) == ((), (3,))
    assert tuple(shares.expand((4,)).rsample((5,)).shape) == (5, 4, 3)
    assert tuple(shares.expand((4,)).log_prob(shares.sample()).shape) == (4,)
    turned = TransformedDistribution(distributions.Uniform(of(0.0), 1.0), [AffineTransform(0.0, -2.0)])
    np.testing.assert_allclose(turned.cdf(of(-0.5)).item(), 0.75)
    np.testing.assert_allclose(turned.icdf(of(0.75)).item(), -0.5)
    with pytest.raises(ShapeError, match="expected a base of at least 1 dimensions"):
        TransformedDistribution(distributions.Normal(0.0, 1.0), [distributions.StickBreakingTransform()])
    with pytest.raises(ArgumentError, match="transforms: expected a Transform or a list of them, got 3"):
        TransformedDistribution(normal, 3)
