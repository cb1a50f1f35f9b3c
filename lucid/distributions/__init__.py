"""Random variables by PyTorch's names: draws, log probabilities, entropies and divergences, with gradients.

Parameters broadcast against each other to `batch_shape`, and `sample(sample_shape)` draws a tensor of shape
``sample_shape + batch_shape``. Numbers stand for tensors of the default dtype. On the CPU parameters and values are
looked at, unless `validate_args` is False; on CUDA, where that waits for the device, only if it is True.
"""

from __future__ import annotations

from lucid.distributions.bernoulli import Bernoulli
from lucid.distributions.binomial import Binomial
from lucid.distributions.categorical import Categorical
from lucid.distributions.distribution import Distribution
from lucid.distributions.divergence import kl_divergence
from lucid.distributions.normal import Normal
from lucid.distributions.uniform import Uniform

__all__ = ["Bernoulli", "Binomial", "Categorical", "Distribution", "Normal", "Uniform", "kl_divergence"]
