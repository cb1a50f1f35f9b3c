"""Transforms, constraints and their registries are PyTorch's: values, inverses, determinants, gradients, shapes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import lucid
from tests.device import DEVICE
from tests.distributions.samples import CORRELATED, COVARIANCE, FACTOR, SHARES

X = np.array([[0.3, -1.0, 2.0], [1.5, 0.0, -0.5]])
M = np.array([[[0.3, -1.0, 2.0], [1.5, 0.1, -0.5], [0.2, 0.7, -0.9]]])
TRANSFORMS = {
    "Abs": (lambda d, t: d.AbsTransform(), X),
    "Affine": (lambda d, t: d.AffineTransform(t([0.5, 1.0, -1.0]), t([2.0, -0.5, 1.0])), X),
    "Affine, numbers": (lambda d, t: d.AffineTransform(0.5, -2.0), X),
    "Affine, events": (lambda d, t: d.AffineTransform(0.5, t([2.0, -0.5, 1.0]), event_dim=1), X),
    "Cat": (lambda d, t: d.CatTransform([d.ExpTransform(), d.AffineTransform(1.0, 3.0)], dim=1, lengths=[1, 2]), X),
    "Cat, events": (
        lambda d, t: d.CatTransform(
            [d.AffineTransform(0.0, 2.0, 1), d.IndependentTransform(d.ExpTransform(), 1)], dim=0
        ),
        X,
    ),
    "Compose": (lambda d, t: d.ComposeTransform([d.AffineTransform(0.0, 0.5), d.TanhTransform(), d.ExpTransform()]), X),
    "Compose, events": (lambda d, t: d.ComposeTransform([d.ExpTransform(), d.StickBreakingTransform()]), X),
    "Compose, none": (lambda d, t: d.identity_transform, X),
    "CorrCholesky": (lambda d, t: d.CorrCholeskyTransform(), X),
    "CumulativeDistribution": (lambda d, t: d.CumulativeDistributionTransform(d.Normal(t(0.5), t(2.0))), X),
    "Exp": (lambda d, t: d.ExpTransform(), X),
    "Exp, inverse": (lambda d, t: d.ExpTransform().inv, abs(X) + 0.1),
    "Independent": (lambda d, t: d.IndependentTransform(d.ExpTransform(), 1), X),
    "LowerCholesky": (lambda d, t: d.LowerCholeskyTransform(), M),
    "PositiveDefinite": (lambda d, t: d.PositiveDefiniteTransform(), M),
    "Power": (lambda d, t: d.PowerTransform(t([2.0, -0.5, 3.0])), abs(X) + 0.1),
    "Reshape": (lambda d, t: d.ReshapeTransform((3,), (1, 3, 1)), X),
    "Sigmoid": (lambda d, t: d.SigmoidTransform(), X),
    "Softmax": (lambda d, t: d.SoftmaxTransform(), X),
    "Softplus": (lambda d, t: d.SoftplusTransform(), X),
    "Stack": (lambda d, t: d.StackTransform([d.ExpTransform(), d.AffineTransform(1.0, 3.0)], dim=0), X),
    "StickBreaking": (lambda d, t: d.StickBreakingTransform(), X),
    "Tanh": (lambda d, t: d.TanhTransform(), X),
}


def asked(library, row):
    """Return what a transform says of some x, as arrays and other values."""
    make, array = TRANSFORMS[row]
    where = DEVICE if library is lucid else "cpu"
    tensor = lambda value: library.tensor(np.array(value), device=where)
    transform = make(library.distributions, tensor)
    x = library.tensor(array, device=where, requires_grad=True)
    y = transform(x)
    back = transform.inv(y.detach())
    found = [y, back]
    try:
        found.append(transform.log_abs_det_jacobian(x, y))
    except NotImplementedError:
        found.append(None)
    total = sum(each.sum() for each in found if each is not None)
    (grad,) = library.autograd.grad(total, [x])
    try:
        sign = transform.sign
        sign = sign.cpu().numpy().tolist() if hasattr(sign, "cpu") else sign
    except NotImplementedError:
        sign = None
    rest = [
        sign, transform.bijective, tuple(transform.forward_shape(array.shape)), tuple(transform.inverse_shape(y.shape)),
        transform.domain.event_dim, transform.codomain.event_dim, repr(transform).replace("lucid", "torch"),
        transform == make(library.distributions, tensor),
    ]  # fmt: skip
    return [None if each is None else each.detach().cpu().numpy() for each in (*found, grad)], rest


@pytest.mark.parametrize("row", TRANSFORMS)
def test_transform(row):
    """Value, inverse, determinant and gradient; sign, shapes and what it shows."""
    (ours, our_rest), (theirs, their_rest) = asked(lucid, row), asked(torch, row)
    for a, b in zip(ours, theirs, strict=True):
        assert (a is None) == (b is None)
        if b is not None:
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)
    assert our_rest[:-1] == their_rest[:-1]
    # those of one setting are equal; PyTorch compares but some of them by what they are
    assert our_rest[-1] or not their_rest[-1]


CONSTRAINTS = {
    "boolean": (lambda c, t: c.boolean, np.array([0.0, 1.0, 0.5])),
    "cat": (lambda c, t: c.cat([c.real, c.positive], dim=-1, lengths=[1, 2]), X),
    "corr_cholesky": (lambda c, t: c.corr_cholesky, np.stack([CORRELATED, CORRELATED * 2])),
    "greater_than": (lambda c, t: c.greater_than(t([0.0, 1.0, 2.0])), X),
    "greater_than_eq": (lambda c, t: c.greater_than_eq(0.0), X),
    "half_open_interval": (lambda c, t: c.half_open_interval(-1.0, 2.0), X),
    "independent": (lambda c, t: c.independent(c.positive, 1), abs(X) * np.array([[1.0], [-1.0]])),
    "integer_interval": (lambda c, t: c.integer_interval(0, 1), X),
    "interval": (lambda c, t: c.interval(t(-1.0), t([0.0, 1.0, 2.0])), X),
    "less_than": (lambda c, t: c.less_than(1.0), X),
    "lower_cholesky": (lambda c, t: c.lower_cholesky, np.stack([*FACTOR, -FACTOR[0], M[0]])),
    "lower_triangular": (lambda c, t: c.lower_triangular, np.stack([*FACTOR, -FACTOR[0], M[0]])),
    "mixture": (lambda c, t: c.MixtureSameFamilyConstraint(c.interval(t([-2.0, 0.0]), 2.0)), X),
    "multinomial": (lambda c, t: c.multinomial(2), np.array([[1.0, 1.0], [2.0, 1.0], [-1.0, 1.0]])),
    "nonnegative": (lambda c, t: c.nonnegative, X),
    "nonnegative_integer": (lambda c, t: c.nonnegative_integer, X),
    "one_hot": (lambda c, t: c.one_hot, np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.5]])),
    "positive": (lambda c, t: c.positive, X),
    "positive_definite": (lambda c, t: c.positive_definite, np.stack([*COVARIANCE, -COVARIANCE[0]])),
    "positive_integer": (lambda c, t: c.positive_integer, X),
    "positive_semidefinite": (lambda c, t: c.positive_semidefinite, np.stack([*COVARIANCE, -COVARIANCE[0]])),
    "real": (lambda c, t: c.real, np.array([1.0, np.nan, np.inf])),
    "real_vector": (lambda c, t: c.real_vector, np.array([[1.0, np.nan], [0.0, 1.0]])),
    "simplex": (lambda c, t: c.simplex, np.stack([*SHARES, SHARES[0] * 2, SHARES[0] - 0.1])),
    "square": (lambda c, t: c.square, M),
    "stack": (lambda c, t: c.stack([c.real, c.positive], dim=0), X),
    "symmetric": (lambda c, t: c.symmetric, np.stack([*COVARIANCE, M[0]])),
    "unit_interval": (lambda c, t: c.unit_interval, X),
}


@pytest.mark.parametrize("row", CONSTRAINTS)
def test_constraint(row):
    """Which values fit, and which transform leads there."""
    make, array = CONSTRAINTS[row]
    said = []
    for library in (lucid, torch):
        where = DEVICE if library is lucid else "cpu"
        d = library.distributions
        constraint = make(d.constraints, lambda value: library.tensor(np.array(value), device=where))
        met = constraint.check(library.tensor(array, device=where))
        said.append(
            [met.cpu().numpy().tolist(), constraint.is_discrete, constraint.event_dim, type(constraint).__name__]
        )
        x = library.tensor(M[0][:2] if "definite" not in row and "lower" not in row else M[0], device=where)
        for registry in (d.transform_to, d.biject_to):
            try:
                transform = registry(constraint)
                y = transform(x)
            except NotImplementedError:
                said[-1].append(None)
                continue
            said[-1] += [
                type(transform).__name__,
                *(np.round(each.cpu().numpy(), 9).tolist() for each in (y, transform.inv(y))),
            ]
    assert said[0] == said[1]


WRONG = {
    "cache": lambda d, t: d.ExpTransform(cache_size=2),
    "reshape": lambda d, t: d.ReshapeTransform((2,), (3,)),
    "no transform": lambda d, t: d.TransformedDistribution(d.Normal(0.0, 1.0), 3),
    "no dimension": lambda d, t: d.TransformedDistribution(d.Normal(0.0, 1.0), d.StickBreakingTransform()),
    "independent": lambda d, t: d.Independent(d.Normal(0.0, 1.0), 1),
    "mixture of normals": lambda d, t: d.MixtureSameFamily(d.Normal(0.0, 1.0), d.Normal(0.0, 1.0)),
    "components": lambda d, t: d.MixtureSameFamily(d.Categorical(t([1.0] * 3)), d.Normal(t([0.0] * 2), 1.0)),
    "no matrix": lambda d, t: d.MultivariateNormal(t([0.0, 0.0])),
    "two matrices": lambda d, t: d.MultivariateNormal(t([0.0]), t([[1.0]]), t([[1.0]])),
    "not definite": lambda d, t: d.MultivariateNormal(t([0.0, 0.0]), t([[1.0, 2.0], [2.0, 1.0]])),
    "not a vector": lambda d, t: d.MultivariateNormal(t(0.0), t([[1.0]])),
    "low df": lambda d, t: d.Wishart(t(1.0), t([[1.0, 0.0], [0.0, 1.0]])),
    "one dimension": lambda d, t: d.LKJCholesky(1),
    "scale": lambda d, t: d.Normal(0.0, -1.0),
    "bounds": lambda d, t: d.Uniform(1.0, 0.0),
    "probs": lambda d, t: d.Bernoulli(1.5),
    "both": lambda d, t: d.Bernoulli(0.5, 0.5),
    "neither": lambda d, t: d.RelaxedBernoulli(t(1.0)),
    "rate": lambda d, t: d.Poisson(-1.0),
    "df of Chi2": lambda d, t: d.Chi2(-1.0),
    "scale of LogNormal": lambda d, t: d.LogNormal(0.0, -1.0),
    "scale of HalfNormal": lambda d, t: d.HalfNormal(-1.0),
    "value": lambda d, t: d.Exponential(1.0).log_prob(t(-1.0)),
    "shape": lambda d, t: d.Normal(t([0.0] * 3), 1.0).log_prob(t([0.0] * 2)),
    "event": lambda d, t: d.Dirichlet(t([1.0] * 3)).log_prob(t([0.5, 0.5])),
    "no tensor": lambda d, t: d.Normal(0.0, 1.0).log_prob(1.0),
    "count": lambda d, t: d.Multinomial(t([2.0, 3.0]), t([0.5, 0.5])),
    "dependent": lambda d, t: d.constraints.dependent.check(t(0.0)),
    "statically": lambda d, t: d.constraints.dependent.event_dim,
    "no registry": lambda d, t: d.biject_to(d.constraints.boolean),
    "enumerated": lambda d, t: d.Normal(0.0, 1.0).enumerate_support(),
    "counts": lambda d, t: d.Binomial(t([2.0, 3.0]), t(0.5)).enumerate_support(),
    "rsample": lambda d, t: d.Poisson(1.0).rsample(),
    "no cdf": lambda d, t: d.Beta(1.0, 1.0).cdf(t(0.5)),
    "cdf of vectors": lambda d, t: d.MixtureSameFamily(
        d.Categorical(t([1.0])), d.Independent(d.Normal(t([[0.0]]), 1.0), 1)
    ).cdf(t([0.0])),
    "parameter": lambda d, t: d.Normal("a", 1.0),
    "matrix to vector": lambda d, t: d.utils.tril_matrix_to_vec(t([[1.0]]), 3),
    "vector to matrix": lambda d, t: d.utils.vec_to_tril_matrix(t([1.0, 2.0])),
    "no divergence": lambda d, t: d.kl_divergence(d.Normal(0.0, 1.0), d.Cauchy(0.0, 1.0)),
    "register": lambda d, t: d.register_kl(3, 4),
}


@pytest.mark.cpu("values are looked at on the CPU")
@pytest.mark.parametrize("row", WRONG)
def test_errors(row):
    """What PyTorch refuses is refused, with an error of its kind."""
    with pytest.raises((ValueError, NotImplementedError, RuntimeError, AssertionError, TypeError)) as theirs:
        WRONG[row](torch.distributions, torch.tensor)
    with pytest.raises(theirs.type if theirs.type is not torch.linalg.LinAlgError else ValueError):
        WRONG[row](lucid.distributions, lucid.tensor)
