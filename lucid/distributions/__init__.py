"""Random variables by PyTorch's names: draws, log probabilities, entropies and divergences, with gradients.

Parameters broadcast against each other to `batch_shape`, one draw has the shape `event_shape`, and
``sample(sample_shape)`` draws a tensor of shape ``sample_shape + batch_shape + event_shape``. Numbers stand for tensors
of the default dtype, or of that of a tensor beside them. What each class says of itself are its density and the range
of its parameters; its properties and methods are those of `Distribution`, and one that has no formula raises a
NotImplementedError. Draws come from lucid's generators: after one seed they are the same on each device.

On the CPU parameters and values are looked at by `constraints`, unless `validate_args` is False; on CUDA, where that
waits for the device, only if it is True. `transforms`, `transform_to` and `biject_to` lead to constrained values, and
`kl` has the divergences.
"""

from __future__ import annotations

from contextlib import suppress as _suppress
from importlib import import_module as _import_module

from lucid.distributions import constraint_registry, constraints, kl, transforms, utils
from lucid.distributions.constraint_registry import biject_to, transform_to
from lucid.distributions.distribution import Distribution, ExponentialFamily
from lucid.distributions.divergences import crossed as _crossed  # noqa: F401  # pyright: ignore[reportUnusedImport]
from lucid.distributions.divergences import same as _same  # noqa: F401  # pyright: ignore[reportUnusedImport]
from lucid.distributions.families.bounded import ContinuousBernoulli, Kumaraswamy, Uniform
from lucid.distributions.families.categorical import (
    Categorical,
    Multinomial,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from lucid.distributions.families.composed import Independent, TransformedDistribution
from lucid.distributions.families.exponential import Exponential, GeneralizedPareto, Pareto, Weibull
from lucid.distributions.families.gamma import Beta, Chi2, Dirichlet, FisherSnedecor, Gamma, InverseGamma, StudentT
from lucid.distributions.families.location import Cauchy, Gumbel, HalfCauchy, Laplace, VonMises
from lucid.distributions.families.matrices import LKJCholesky, Wishart
from lucid.distributions.families.mixture import MixtureSameFamily
from lucid.distributions.families.multivariate import LowRankMultivariateNormal, MultivariateNormal
from lucid.distributions.families.normal import HalfNormal, LogNormal, Normal
from lucid.distributions.families.relaxed import LogisticNormal, RelaxedBernoulli, RelaxedOneHotCategorical
from lucid.distributions.families.trials import Bernoulli, Binomial, Geometric, NegativeBinomial, Poisson
from lucid.distributions.kl import kl_divergence, register_kl
from lucid.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from lucid.public import publish as _publish
from lucid.settings.distributions import DISTRIBUTIONS as _DISTRIBUTIONS
from lucid.settings.documents import document as _document

__all__ = [
    "AbsTransform", "AffineTransform", "Bernoulli", "Beta", "Binomial", "CatTransform", "Categorical", "Cauchy", "Chi2",
    "ComposeTransform", "ContinuousBernoulli", "CorrCholeskyTransform", "CumulativeDistributionTransform", "Dirichlet",
    "Distribution", "ExpTransform", "Exponential", "ExponentialFamily", "FisherSnedecor", "Gamma", "GeneralizedPareto",
    "Geometric", "Gumbel", "HalfCauchy", "HalfNormal", "Independent", "IndependentTransform", "InverseGamma",
    "Kumaraswamy", "LKJCholesky", "Laplace", "LogNormal", "LogisticNormal", "LowRankMultivariateNormal",
    "LowerCholeskyTransform", "MixtureSameFamily", "Multinomial", "MultivariateNormal", "NegativeBinomial", "Normal",
    "OneHotCategorical", "OneHotCategoricalStraightThrough", "Pareto", "Poisson", "PositiveDefiniteTransform",
    "PowerTransform", "RelaxedBernoulli", "RelaxedOneHotCategorical", "ReshapeTransform", "SigmoidTransform",
    "SoftmaxTransform", "SoftplusTransform", "StackTransform", "StickBreakingTransform", "StudentT", "TanhTransform",
    "Transform", "TransformedDistribution", "Uniform", "VonMises", "Weibull", "Wishart", "biject_to",
    "constraint_registry", "constraints", "identity_transform", "kl", "kl_divergence", "register_kl", "transform_to",
    "transforms", "utils",
]  # fmt: skip


def __getattr__(name: str) -> object:
    # PyTorch's modules of families, which `lucid.compat.addresses` makes
    if not name.startswith("_"):
        with _suppress(ModuleNotFoundError):
            return _import_module(f"lucid.distributions.{name}")
    raise AttributeError(f"module 'lucid.distributions' has no attribute {name!r}")


_publish(globals())
_document(__all__, globals(), _DISTRIBUTIONS)
