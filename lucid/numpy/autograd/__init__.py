"""Derivatives of functions written in NumPy, under HIPS/autograd's names: ``from lucid.numpy.autograd import grad``.

Each takes a function and the position of the argument to differentiate by, `argnum`, 0 by default; a tuple or list of
positions gives a tuple of derivatives. The function gets recorded ndarrays for that argument, also inside of tuples,
lists and dictionaries, and what it returns and the derivatives are plain arrays and numbers; inside of a function that
is itself differentiated they are recorded. Where the result does not depend on the argument, derivatives are zeros.

All raise a `DtypeError`, which is a TypeError, for integers to differentiate by.
"""

from __future__ import annotations

from lucid.numpy.autograd.builtins import dict, isinstance, list, tuple, type
from lucid.numpy.autograd.extend import primitive
from lucid.numpy.autograd.gradients import (
    checkpoint,
    egrad,
    elementwise_grad,
    grad,
    grad_and_aux,
    grad_named,
    holomorphic_grad,
    multigrad_dict,
    value_and_grad,
)
from lucid.numpy.autograd.matrices import (
    hessian,
    hessian_tensor_product,
    hessian_vector_product,
    jacobian,
    tensor_jacobian_product,
    vector_jacobian_product,
)
from lucid.numpy.autograd.products import deriv, make_ggnvp, make_hvp, make_jvp, make_jvp_reversemode, make_vjp
from lucid.public import publish as _publish

__all__ = [
    "checkpoint", "deriv", "dict", "egrad", "elementwise_grad", "grad", "grad_and_aux", "grad_named", "hessian",
    "hessian_tensor_product", "hessian_vector_product", "holomorphic_grad", "isinstance", "jacobian", "list",
    "make_ggnvp", "make_hvp", "make_jvp", "make_jvp_reversemode", "make_vjp", "multigrad_dict", "primitive",
    "tensor_jacobian_product", "tuple", "type", "value_and_grad", "vector_jacobian_product",
]  # fmt: skip

_publish(globals())
