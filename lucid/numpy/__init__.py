"""NumPy, differentiated as it stands: ``import lucid.numpy as np``.

Every function, constant and dtype has NumPy's name, parameters and meaning. A call of which no operand requires grad is
NumPy's own, or CuPy's where an array is on a CUDA device, and gives plain arrays; else it is recorded, and gives an
`ndarray`, a Tensor with NumPy's methods. Operands may be arrays, Tensors, numbers and nested lists of them.

- `lucid.numpy.autograd` differentiates functions: ``grad(f)(x)``.
- ``np.zeros_like(x)`` and ``np.zeros(n, like=x)`` of a recorded `x` can be filled with what requires grad; so can all
  that is made inside of `lucid.autograd.graph.allow_mutation_on_saved_tensors`.
- What is created lies on the CPU, or where `device` or the default device of `lucid.set_default_device` says.
- `out` and `where` of functions and ufuncs are refused where something requires grad, and so is each function that has
  no rule; ``docs/users/numpy.md`` lists the rules.

>>> import lucid
>>> import lucid.numpy as np
>>> x = lucid.tensor([0.5, 1.0], dtype=lucid.float64, requires_grad=True)
>>> y = np.sum(np.sin(x) ** 2)
>>> y.backward()
>>> np.allclose(x.grad, np.sin([1.0, 2.0]))
True
"""

from __future__ import annotations

from lucid.autograd.base import registered as _registered
from lucid.numpy import autograd, fft, lib, linalg, random, testing, typing
from lucid.numpy.arrays import ndarray
from lucid.numpy.border import names_of as _names_of
from lucid.numpy.creation import creating as _creating
from lucid.numpy.joining import c_, make_diagonal, mgrid, ogrid, r_
from lucid.numpy.lib import scimath as emath
from lucid.numpy.lib.vectorize import vectorize

__all__ = [
    "autograd", "c_", "emath", "fft", "lib", "linalg", "make_diagonal", "mgrid", "ndarray", "ogrid", "r_", "random",
    "testing", "typing", "vectorize",
]  # fmt: skip

_registered.arrays = (ndarray,)
__getattr__, __dir__ = _names_of("", globals(), _creating)
