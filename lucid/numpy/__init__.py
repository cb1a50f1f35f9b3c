"""NumPy, differentiated as it stands: ``import lucid.numpy as np``.

Every function, constant and dtype has NumPy's name, parameters and meaning. A call of which no operand requires grad is
NumPy's own, or CuPy's where an array is on a CUDA device, and gives plain arrays; else it is recorded, and gives an
`ndarray`, a Tensor with NumPy's methods. Operands may be arrays, Tensors, numbers and nested lists of them.

- `lucid.numpy.autograd` differentiates functions: ``grad(f)(x)``.
- What is created lies on the CPU, or where `device` or the default device of `lucid.set_default_device` says.
- `out` and `where` of functions and ufuncs are refused where something requires grad, and so is each function that has
  no rule; ``docs/numpy.md`` lists the rules.

>>> import lucid
>>> import lucid.numpy as np
>>> x = lucid.tensor([0.5, 1.0], dtype=lucid.float64, requires_grad=True)
>>> y = np.sum(np.sin(x) ** 2)
>>> y.backward()
>>> np.allclose(x.grad, np.sin([1.0, 2.0]))
True
"""

from __future__ import annotations

from typing import Any

import numpy as _np

from lucid.numpy import fft, linalg, random
from lucid.numpy.arrays import ndarray
from lucid.numpy.border import wrapped as _wrapped
from lucid.numpy.creation import CREATED as _CREATED
from lucid.numpy.creation import creating as _creating
from lucid.numpy.joining import c_, r_

newaxis = None


def __getattr__(name: str) -> Any:
    if name == "autograd":
        from importlib import import_module  # noqa: PLC0415 - it stands on `lucid.func`, which few need

        return import_module("lucid.numpy.autograd")
    try:
        value = getattr(_np, name)
    except AttributeError:
        raise AttributeError(
            f"module 'lucid.numpy' has no attribute {name!r}, nor has numpy {_np.__version__}"
        ) from None
    if name in _CREATED:
        value = _creating(name, value)
    elif callable(value) and not isinstance(value, type):
        value = _wrapped(name, value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_np)})
