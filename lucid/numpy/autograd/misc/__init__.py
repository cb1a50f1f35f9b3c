"""Tools built on derivatives: flat vectors of nested parameters, optimizers, fixed points."""

from lucid.numpy.autograd.misc.flatten import flatten

__all__ = ["flatten"]
