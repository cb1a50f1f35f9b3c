"""Parameters and buffers: tensors that a module registers when they are assigned to one of its attributes."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import TensorBase, describe, version_of, wrap
from lucid.autograd.engine.node import accumulator_of
from lucid.autograd.modes.decorating import check_bool
from lucid.backend.device import device_of
from lucid.backend.sharing import tensor_classes
from lucid.errors import DtypeError
from lucid.tensor import Tensor
from lucid.tensor.copying import rebuild

if TYPE_CHECKING:
    from typing import Self


def share(kind: type[Any], data: object, requires_grad: bool) -> Any:
    """Return a leaf of class `kind` on the memory of `data`."""
    if data is None:
        data = wrap(np.empty((0,), np.float32))
    if not isinstance(data, TensorBase):
        raise DtypeError(
            f"{kind.__name__}: data: expected a Tensor, got {type(data).__name__}: make one with lucid.tensor()"
        )
    if requires_grad and check_bool(requires_grad, "requires_grad") and data.array.dtype.kind not in "fcV":
        raise DtypeError(
            f"{kind.__name__}: only tensors of floating-point or complex dtype can require gradients, got "
            f"{describe(data)}: pass requires_grad=False, or convert it"
        )
    made: Any = object.__new__(kind)
    made.array = data.array
    made.version = version_of(data)
    made.origin = None
    made.edge = (accumulator_of(made), 0) if requires_grad else None
    return made


class Parameter(Tensor):
    """A tensor that a module trains: assigning it to an attribute registers it among ``module.parameters()``.

    Parameters
    ----------
    data : Tensor, optional
        The values; the parameter shares their memory and is a leaf of its own. Empty if left out.
    requires_grad : bool
        Whether backward computes its gradient.

    Raises
    ------
    TypeError
        If `data` is no tensor, or `requires_grad` is asked for integers.

    Examples
    --------
    >>> import lucid
    >>> from lucid import nn
    >>> nn.Parameter(lucid.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    def __new__(cls, data: object = None, requires_grad: bool = True) -> Self:
        """Return a leaf on the memory of `data`."""
        return share(cls, data, requires_grad)

    def __init__(self, data: object = None, requires_grad: bool = True) -> None: ...

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        if id(self) in memo:
            return memo[id(self)]
        made = rebuild(type(self), self.array.copy(), str(device_of(self.array)), self.requires_grad, {})
        memo[id(self)] = made
        for name, value in vars(self).items():
            setattr(made, name, copy.deepcopy(value, memo))
        return made


class Buffer(Tensor):
    """A tensor that a module keeps beside its parameters: assigning it registers it among ``module.buffers()``.

    Parameters
    ----------
    data : Tensor, optional
        The values; the buffer shares their memory.
    persistent : bool
        Whether it is part of the module's `state_dict`.

    Examples
    --------
    >>> import lucid
    >>> from lucid import nn
    >>> module = nn.Module()
    >>> module.mean = nn.Buffer(lucid.zeros(2))
    >>> list(module.state_dict())
    ['mean']
    """

    persistent: bool

    def __new__(cls, data: object = None, *, persistent: bool = True) -> Self:
        """Return a tensor on the memory of `data` that does not require grad."""
        made = share(cls, data, requires_grad=False)
        made.persistent = check_bool(persistent, "persistent")
        return made

    def __init__(self, data: object = None, *, persistent: bool = True) -> None: ...


tensor_classes += [Parameter, Buffer]
