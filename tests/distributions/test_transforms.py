"""Transforms have inverses and the determinants of their derivatives; registries lead to what constraints hold for."""

from __future__ import annotations

import copy

import numpy as np
import pytest

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


def numbers(value):
    """Return float64 numbers on the device under test."""
    return lucid.tensor(np.array(value), dtype=lucid.float64, device=DEVICE)


SIMPLE = {
    "affine": lambda: AffineTransform(numbers(0.5), numbers([2.0, -0.5, 1.5])),
    "affine of events": lambda: AffineTransform(0.5, numbers([2.0, -0.5, 1.5]), event_dim=1),
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
    "distribution": lambda: distributions.CumulativeDistributionTransform(distributions.Gumbel(numbers(0.1), 2.0)),
    "exp": ExpTransform,
    "independent": lambda: distributions.IndependentTransform(ExpTransform(), 1),
    "inverse": lambda: ComposeTransform([ExpTransform(), distributions.SoftplusTransform().inv]),
    "power": lambda: ComposeTransform([ExpTransform(), distributions.PowerTransform(numbers([2.0, -0.5, 1.5]))]),
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
    x = numbers(rng.normal(size=3))
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
    if row != "stack":  # of each index its own
        assert found.shape == x.shape[: x.dim() - transform.domain.event_dim]
    assert found.sum().item() == pytest.approx(np.linalg.slogdet(matrix)[1], rel=1e-8)
    back = transform.inv.log_abs_det_jacobian(y, x)
    np.testing.assert_allclose(back.cpu().numpy(), -found.cpu().numpy(), rtol=1e-8)


@pytest.mark.parametrize("row", SIMPLE)
def test_a_batch_is_made_of_events(row, rng):
    """Of several events a transform and its determinant give what they give of each by itself."""
    transform = SIMPLE[row]()
    x = numbers(rng.normal(size=(2, 4, 3)))
    y = transform(x)
    found = transform.log_abs_det_jacobian(x, y)
    for place in np.ndindex(2, 4):
        np.testing.assert_allclose(y[place].tolist(), transform(x[place]).tolist(), rtol=1e-12)
        one = transform.log_abs_det_jacobian(x[place], y[place])
        if row != "stack":  # of each index its own, in the last dimension
            assert found.shape == (2, 4, *one.shape)
            np.testing.assert_allclose(found[place].tolist(), one.tolist(), rtol=1e-12, atol=1e-12)
    assert (transform.inv.with_cache(1)(y) - x).abs().max().item() < 1e-7


@pytest.mark.parametrize("row", SIMPLE)
def test_domain_and_codomain_are_where_there_is_a_way_back(row, rng):
    """What is in one is what comes back from the other, no more and no less, of the transform and of its inverse."""
    transform = SIMPLE[row]()
    x = numbers(rng.normal(size=3))
    for there, of, values in ((transform, x, "domain"), (transform.inv, transform(x), "codomain")):
        for step in (-3.0, 0.0, 3.0) if not row.startswith("chain") else (0.0,):  # which only says what its ends say
            at = of + step
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
    assert constraint.check(numbers(good)).tolist() == [True] * len(good)
    assert constraint.check(numbers(bad)).tolist() == [False] * len(bad)


@pytest.mark.parametrize("registry", [biject_to, transform_to])
@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=repr)
def test_registries(constraint, registry, rng):
    """The transform of a constraint gives what fits it, with a gradient, and leads back to what gives the same."""
    square = constraint.event_dim == 2 and constraint is not constraints.corr_cholesky
    x = numbers(rng.normal(size=(5, 3, 3) if square else (5, 3))).requires_grad_()
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


def test_equal_transforms():
    """Those of one kind with equal settings are equal, and have one hash; others are not."""
    pairs = [
        (ExpTransform(), ExpTransform(), True),
        (ExpTransform(), SigmoidTransform(), False),
        (AffineTransform(0.0, 1.0), AffineTransform(0.0, numbers(1.0)), True),
        (AffineTransform(0.0, 1.0), AffineTransform(0.0, 2.0), False),
        (ComposeTransform([ExpTransform()]), ComposeTransform([ExpTransform()]), True),
        (ComposeTransform([ExpTransform()]), ComposeTransform([]), False),
        (ExpTransform().inv, ExpTransform().inv, True),
        (distributions.PowerTransform(2.0), distributions.PowerTransform(numbers([2.0, 3.0])), False),
    ]
    for first, second, equal in pairs:
        assert (first == second) is equal
        if equal and not isinstance(first, AffineTransform):
            assert hash(first) == hash(second)


def test_shapes_of_transformed_distributions():
    """Events grow with what a transform takes and gives, and parameters of transforms widen the batch."""
    normal = distributions.Normal(numbers([0.0, 1.0]), numbers(1.0))
    wide = TransformedDistribution(normal, [AffineTransform(numbers([[0.0], [1.0], [2.0]]), 1.0)])
    assert (tuple(wide.batch_shape), tuple(wide.event_shape)) == ((3, 2), ())
    shares = TransformedDistribution(normal, [distributions.StickBreakingTransform()])
    assert (tuple(shares.batch_shape), tuple(shares.event_shape)) == ((), (3,))
    assert tuple(shares.expand((4,)).rsample((5,)).shape) == (5, 4, 3)
    assert tuple(shares.expand((4,)).log_prob(shares.sample()).shape) == (4,)
    turned = TransformedDistribution(distributions.Uniform(numbers(0.0), 1.0), [AffineTransform(0.0, -2.0)])
    np.testing.assert_allclose(turned.cdf(numbers(-0.5)).item(), 0.75)
    np.testing.assert_allclose(turned.icdf(numbers(0.75)).item(), -0.5)
    with pytest.raises(ShapeError, match="expected a base of at least 1 dimensions"):
        TransformedDistribution(distributions.Normal(0.0, 1.0), [distributions.StickBreakingTransform()])
    with pytest.raises(ArgumentError, match="transforms: expected a Transform or a list of them, got 3"):
        TransformedDistribution(normal, 3)


def test_triangles():
    """A vector becomes a triangle and again that vector, with each diagonal; other lengths are refused."""
    for diag in (-1, 0, 1):
        count = {-1: 3, 0: 6, 1: 8}[diag]
        vector = numbers(np.arange(count) + 1.0)
        matrix = distributions.utils.vec_to_tril_matrix(vector, diag)
        assert tuple(matrix.shape) == (3, 3)
        assert (distributions.utils.tril_matrix_to_vec(matrix, diag) == vector).all()
    with pytest.raises(ShapeError, match="as many elements as a triangle has, got 2"):
        distributions.utils.vec_to_tril_matrix(numbers([1.0, 2.0]))
    with pytest.raises(ShapeError, match="expected diag from -2 to 1, got 5"):
        distributions.utils.tril_matrix_to_vec(numbers([[1.0, 0.0], [0.0, 1.0]]), 5)
