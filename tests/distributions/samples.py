"""Each family of distributions: how it is made of arrays, which they are, and values that it can draw."""

from __future__ import annotations

import numpy as np

import lucid
from tests.device import DEVICE

A, B = np.array([[0.4], [2.5]]), np.array([0.7, 1.0, 3.0])
PLACE = np.array([[0.3], [-2.0]])
P = np.array([[0.2, 0.7, 0.5], [0.9, 0.05, 0.45]])
LOGITS = np.array([[0.5, -1.0, 2.0], [0.0, 3.0, -2.0]])
SHARES = np.array([[0.2, 0.3, 0.5], [0.7, 0.1, 0.2]])
FACTOR = np.array(
    [[[1.5, 0.0, 0.0], [0.3, 0.7, 0.0], [-0.5, 0.2, 2.0]], [[0.5, 0.0, 0.0], [1.3, 1.7, 0.0], [0.1, 0.9, 0.6]]]
)
COVARIANCE = FACTOR @ FACTOR.transpose(0, 2, 1)
VECTOR = np.array([[0.3, -1.0, 2.0], [1.0, 0.0, -0.5]])
WIDE = np.array([[1.0, 0.2], [-0.5, 0.7], [0.3, 0.1]])
CORRELATED = np.linalg.cholesky(np.array([[1.0, 0.3, -0.2], [0.3, 1.0, 0.5], [-0.2, 0.5, 1.0]]))
ABOVE = np.array([0.25, 1.3, 4.0])
INSIDE = np.array([0.1, 0.5, 0.85])
COUNTS = np.array([0.0, 1.0, 4.0])


def of(value, dtype=lucid.float64, **settings):
    """Return a tensor on the device that is tested."""
    return lucid.tensor(value, dtype=dtype, device=DEVICE, **settings)


# by name: what makes it of the module of distributions and its parameters, these, and values
FAMILIES = {
    "Bernoulli": (lambda d, p: d.Bernoulli(p), (P,), np.array([0.0, 1.0, 1.0])),
    "Bernoulli, logits": (lambda d, a: d.Bernoulli(logits=a), (LOGITS,), np.array([0.0, 1.0, 1.0])),
    "Beta": (lambda d, a, b: d.Beta(a, b), (A, B), INSIDE),
    "Binomial": (lambda d, p: d.Binomial(4, p), (P,), COUNTS),
    "Binomial, logits": (lambda d, a: d.Binomial(4, logits=a), (LOGITS,), COUNTS),
    "Categorical": (lambda d, p: d.Categorical(p), (P,), np.array([2, 0])),
    "Categorical, logits": (lambda d, a: d.Categorical(logits=a), (LOGITS,), np.array([2, 0])),
    "Cauchy": (lambda d, a, b: d.Cauchy(a, b), (PLACE, B), np.array([0.1, -3.0, 2.0])),
    "Chi2": (lambda d, a: d.Chi2(a), (B,), ABOVE),
    "ContinuousBernoulli": (lambda d, p: d.ContinuousBernoulli(p), (P + 0.02,), INSIDE),
    "ContinuousBernoulli, logits": (lambda d, a: d.ContinuousBernoulli(logits=a), (LOGITS + 0.1,), INSIDE),
    "Dirichlet": (lambda d, a: d.Dirichlet(a), (A * B,), SHARES),
    "Exponential": (lambda d, a: d.Exponential(a), (B,), ABOVE),
    "FisherSnedecor": (lambda d, a, b: d.FisherSnedecor(a, b), (A * 2, B * 3), ABOVE),
    "Gamma": (lambda d, a, b: d.Gamma(a, b), (A, B), ABOVE),
    "GeneralizedPareto": (
        lambda d, a, b, c: d.GeneralizedPareto(a, b, c),
        (PLACE, B, np.array([0.3, 0.2, -0.1])),
        np.array([0.5, 1.3, 4.0]),
    ),
    "Geometric": (lambda d, p: d.Geometric(p), (P,), COUNTS),
    "Geometric, logits": (lambda d, a: d.Geometric(logits=a), (LOGITS,), COUNTS),
    "Gumbel": (lambda d, a, b: d.Gumbel(a, b), (PLACE, B), np.array([0.1, -1.0, 2.0])),
    "HalfCauchy": (lambda d, b: d.HalfCauchy(b), (B,), ABOVE),
    "HalfNormal": (lambda d, b: d.HalfNormal(b), (B,), ABOVE),
    "Independent": (lambda d, a, b: d.Independent(d.Normal(a, b), 1), (PLACE, B), VECTOR),
    "InverseGamma": (lambda d, a, b: d.InverseGamma(a, b), (A, B), ABOVE),
    "Kumaraswamy": (lambda d, a, b: d.Kumaraswamy(a, b), (A, B), INSIDE),
    "LKJCholesky": (lambda d, a: d.LKJCholesky(3, a), (np.array([0.5, 2.0]),), CORRELATED),
    "Laplace": (lambda d, a, b: d.Laplace(a, b), (PLACE, B), np.array([0.1, -3.0, 2.0])),
    "LogNormal": (lambda d, a, b: d.LogNormal(a, b), (PLACE, B), ABOVE),
    "LogisticNormal": (lambda d, a, b: d.LogisticNormal(a, b), (PLACE, B[:2]), SHARES),
    "LowRankMultivariateNormal": (
        lambda d, a, w, b: d.LowRankMultivariateNormal(a, w, b),
        (VECTOR, WIDE, B),
        np.array([0.5, 0.1, 1.0]),
    ),
    "MixtureSameFamily": (
        lambda d, p, a, b: d.MixtureSameFamily(d.Categorical(p), d.Normal(a, b)),
        (SHARES, PLACE, B),
        np.array([0.5, -1.0]),
    ),
    "MixtureSameFamily, vectors": (
        lambda d, p, a, f: d.MixtureSameFamily(d.Categorical(p), d.MultivariateNormal(a, scale_tril=f.tril())),
        (SHARES[0, :2] / 0.5, VECTOR, FACTOR),
        VECTOR[::-1].copy(),
    ),
    "Multinomial": (lambda d, p: d.Multinomial(5, p), (SHARES,), np.array([1.0, 0.0, 4.0])),
    "Multinomial, logits": (lambda d, a: d.Multinomial(5, logits=a), (LOGITS,), np.array([1.0, 0.0, 4.0])),
    "MultivariateNormal": (
        lambda d, a, c: d.MultivariateNormal(a, covariance_matrix=c + c.mT),
        (VECTOR, COVARIANCE),
        np.array([0.5, 0.1, 1.0]),
    ),
    "MultivariateNormal, precision": (
        lambda d, a, c: d.MultivariateNormal(a, precision_matrix=c + c.mT),
        (VECTOR[0], COVARIANCE),
        np.array([[[0.5, 0.1, 1.0]], [[0.0, 2.0, 1.0]]]),
    ),
    "MultivariateNormal, factor": (
        lambda d, a, f: d.MultivariateNormal(a, scale_tril=f.tril()),
        (VECTOR, FACTOR[0]),
        np.array([[[0.5, 0.1, 1.0]], [[0.0, 2.0, 1.0]]]),
    ),
    "NegativeBinomial": (lambda d, a, p: d.NegativeBinomial(a, p), (A, P), COUNTS),
    "NegativeBinomial, logits": (lambda d, a, b: d.NegativeBinomial(a, logits=b), (A, LOGITS), COUNTS),
    "Normal": (lambda d, a, b: d.Normal(a, b), (PLACE, B), np.array([0.1, -3.0, 2.0])),
    "OneHotCategorical": (lambda d, p: d.OneHotCategorical(p), (P,), np.array([0.0, 1.0, 0.0])),
    "OneHotCategorical, logits": (lambda d, a: d.OneHotCategorical(logits=a), (LOGITS,), np.array([0.0, 1.0, 0.0])),
    "OneHotCategoricalStraightThrough": (
        lambda d, p: d.OneHotCategoricalStraightThrough(p),
        (P,),
        np.array([0.0, 1.0, 0.0]),
    ),
    "Pareto": (lambda d, a, b: d.Pareto(a, b), (np.array([[0.2], [0.1]]), np.array([0.7, 1.5, 4.5])), ABOVE),
    "Poisson": (lambda d, a: d.Poisson(a), (B,), COUNTS),
    "RelaxedBernoulli": (lambda d, a, p: d.RelaxedBernoulli(a, p), (np.array(0.7), P), INSIDE),
    "RelaxedBernoulli, logits": (lambda d, a, b: d.RelaxedBernoulli(a, logits=b), (np.array(0.7), LOGITS), INSIDE),
    "RelaxedOneHotCategorical": (lambda d, a, p: d.RelaxedOneHotCategorical(a, p), (np.array(0.7), P), SHARES),
    "RelaxedOneHotCategorical, logits": (
        lambda d, a, b: d.RelaxedOneHotCategorical(a, logits=b),
        (np.array(0.7), LOGITS),
        SHARES,
    ),
    "StudentT": (
        lambda d, f, a, b: d.StudentT(f, a, b),
        (np.array([0.5, 1.5, 4.0]), PLACE, B),
        np.array([0.1, -3.0, 2.0]),
    ),
    "TransformedDistribution": (
        lambda d, a, b: d.TransformedDistribution(
            d.Normal(a, b), [d.AffineTransform(0.5, -2.0), d.SigmoidTransform(), d.PowerTransform(2.0)]
        ),
        (PLACE, B),
        INSIDE,
    ),
    "TransformedDistribution, vectors": (
        lambda d, a, b: d.TransformedDistribution(
            d.Normal(a, b), [d.StickBreakingTransform(), d.AffineTransform(0.0, 1.0)]
        ),
        (PLACE, B[:2]),
        SHARES,
    ),
    "Uniform": (lambda d, a, b: d.Uniform(a, a + b), (PLACE, B + 3), np.array([0.5, 0.8, 1.0])),
    "VonMises": (lambda d, a, b: d.VonMises(a, b), (PLACE, np.array([0.3, 4.0, 300.0])), np.array([0.1, -3.0, 2.0])),
    "Weibull": (lambda d, a, b: d.Weibull(a, b), (A, B), ABOVE),
    "Wishart": (
        lambda d, a, c: d.Wishart(a, covariance_matrix=c + c.mT),
        (np.array([2.5, 5.0]), COVARIANCE),
        COVARIANCE[0] + np.eye(3),
    ),
    "Wishart, precision": (
        lambda d, a, c: d.Wishart(a, precision_matrix=c + c.mT),
        (np.array([2.5, 5.0]), COVARIANCE),
        COVARIANCE[0] + np.eye(3),
    ),
    "Wishart, factor": (
        lambda d, a, f: d.Wishart(a, scale_tril=f.tril()),
        (np.array([2.5, 5.0]), FACTOR),
        COVARIANCE[0] + np.eye(3),
    ),
}

DIGAMMA = {"Beta", "Chi2", "Dirichlet", "Gamma", "InverseGamma", "Kumaraswamy", "StudentT", "Wishart"}
"""Those whose entropies and divergences have a digamma: its derivative is right to about 1e-9 in PyTorch."""
