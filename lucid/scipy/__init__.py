"""SciPy, differentiated as it stands: ``from lucid.scipy import ndimage, signal``.

Every function has SciPy's name, parameters and meaning. A call of which no operand requires grad is SciPy's own, or
CuPy's where an array is on a CUDA device, and gives plain arrays; else it is recorded, and gives an `ndarray` of
`lucid.numpy`, as functions there do. A function without a rule, or a parameter that a rule lacks, is refused by name
where something requires grad. ``docs/users/numpy.md`` lists the rules. Modules of SciPy's that are not here, as
``optimize``, are SciPy's own, which take plain arrays.

>>> import lucid
>>> from lucid import numpy as np
>>> from lucid.scipy import ndimage
>>> image = lucid.tensor(np.eye(5), requires_grad=True)
>>> np.sum(ndimage.gaussian_filter(image, sigma=1.0)[2]).backward()
>>> image.grad.shape
lucid.Size([5, 5])
"""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("scipy") is None:
    raise ModuleNotFoundError("lucid.scipy needs SciPy: install it with pip install 'lucid-cupy[scipy]'", name="scipy")

from lucid.numpy.border import names_of, wrapped
from lucid.scipy import fft, integrate, interpolate, linalg, ndimage, signal, sparse, special

__all__ = ["fft", "integrate", "interpolate", "linalg", "ndimage", "signal", "sparse", "special"]

__getattr__, __dir__ = names_of("scipy", globals(), wrapped)
