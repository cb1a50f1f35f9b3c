"""Special functions by SciPy's names, beside the standard: ``scipy.special`` looks here for those of Tensors.

>>> import lucid
>>> from lucid.array_api import special
>>> special.ndtr(lucid.tensor([0.0]))
tensor([0.5000])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.tensor.numpy_calls.special import FUNCTIONS, SPECIAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.tensor import Tensor

_KNOWN = {**SPECIAL, **FUNCTIONS}


def __getattr__(name: str) -> Callable[..., Tensor]:
    if name not in _KNOWN:
        raise AttributeError(f"module 'lucid.array_api.special' has no attribute {name!r}")
    return _KNOWN[name]


def __dir__() -> list[str]:
    return sorted(_KNOWN)
