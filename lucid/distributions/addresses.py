"""The modules in which PyTorch has its distributions, with what is in them here."""

from __future__ import annotations

import sys
from types import ModuleType

__all__ = ["MODULES", "register"]

# By PyTorch's module: what is in it, all of it in `lucid.distributions` or in the place that is written behind.
MODULES = {
    "bernoulli": "Bernoulli", "beta": "Beta", "binomial": "Binomial", "categorical": "Categorical", "cauchy": "Cauchy",
    "chi2": "Chi2", "continuous_bernoulli": "ContinuousBernoulli", "dirichlet": "Dirichlet",
    "exp_family": "ExponentialFamily", "exponential": "Exponential", "fishersnedecor": "FisherSnedecor",
    "gamma": "Gamma", "generalized_pareto": "GeneralizedPareto", "geometric": "Geometric", "gumbel": "Gumbel",
    "half_cauchy": "HalfCauchy", "half_normal": "HalfNormal", "independent": "Independent",
    "inverse_gamma": "InverseGamma", "kumaraswamy": "Kumaraswamy", "laplace": "Laplace",
    "lkj_cholesky": "LKJCholesky", "log_normal": "LogNormal", "logistic_normal": "LogisticNormal",
    "lowrank_multivariate_normal": "LowRankMultivariateNormal", "mixture_same_family": "MixtureSameFamily",
    "multinomial": "Multinomial", "multivariate_normal": "MultivariateNormal",
    "negative_binomial": "NegativeBinomial", "normal": "Normal",
    "one_hot_categorical": "OneHotCategorical OneHotCategoricalStraightThrough", "pareto": "Pareto",
    "poisson": "Poisson", "relaxed_bernoulli": "RelaxedBernoulli LogitRelaxedBernoulli=relaxed",
    "relaxed_categorical": "RelaxedOneHotCategorical ExpRelaxedCategorical=relaxed", "studentT": "StudentT",
    "transformed_distribution": "TransformedDistribution", "uniform": "Uniform", "von_mises": "VonMises",
    "weibull": "Weibull", "wishart": "Wishart",
}  # fmt: skip


def register(package: dict[str, object]) -> None:
    """Let the import of each of these modules find it, and the package have it."""
    for name, entries in MODULES.items():
        path = f"lucid.distributions.{name}"
        module = ModuleType(path, "PyTorch's address of what is in `lucid.distributions`.")
        names = [entry.partition("=") for entry in entries.split()]
        for kind, _, place in names:
            found = vars(sys.modules[f"lucid.distributions.families.{place}"]) if place else package
            setattr(module, kind, found[kind])
        vars(module)["__all__"] = [kind for kind, _, _ in names]
        package[name] = sys.modules[path] = module
