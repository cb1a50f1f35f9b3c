"""Parameters and buffers: tensors that a module registers when they are assigned to one of its attributes."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np

from lucid.autograd.base import TensorBase, describe, version_of, wrap
from lucid.autograd.engine.node import accumulator_of
from lucid.autograd.modes.decorating import check_bool
from lucid.base.arrays import copied
from lucid.base.device import device_of
from lucid.base.sharing import tensor_classes
from lucid.errors import DtypeError, SettingError
from lucid.ops.creation.filling import empty
from lucid.tensor import Tensor
from lucid.tensor.copying import rebuild


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
        made = rebuild(type(self), copied(self.array), str(device_of(self.array)), self.requires_grad, {})
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


class UninitializedTensorMixin(Tensor):
    """The base of parameters and buffers of a shape that is not known yet: they have a dtype, a device, no elements.

    Converting and moving their module converts and moves them; every op, and whatever asks for elements or sizes,
    raises a SettingError.
    """

    cls_to_become: type[Any] = Tensor
    # no elements, of the dtype and on the device; a tensor's own slot is covered until there are some
    blank: Tensor

    @property
    def array(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Raise a SettingError: there are no elements."""
        raise SettingError(
            f"a module has not been called yet, and its {type(self).__name__} has no shape and no elements: call it "
            "with a batch before anything counts, changes, saves or computes with its parameters and buffers"
        )

    @array.setter
    def array(self, value: Any) -> None:
        vars(self)["blank"] = wrap(value)

    @property
    def dtype(self) -> Any:
        """The type that the elements will have."""
        return self.blank.dtype

    @property
    def device(self) -> Any:
        """The device that will hold the elements."""
        return self.blank.device

    @property
    def is_cuda(self) -> bool:
        """Whether the elements will be on a CUDA device."""
        return self.blank.is_cuda

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become an ordinary parameter, or tensor, of this shape, with whatever elements are there.

        Parameters
        ----------
        shape : int or sequence of int
        device, dtype : optional
            Others than it has.
        """
        made: Any = empty(
            shape, dtype=self.dtype if dtype is None else dtype, device=self.device if device is None else device
        )
        vars(self).pop("blank")
        self.__class__ = self.cls_to_become  # pyright: ignore[reportAttributeAccessIssue]
        whole: Any = self
        whole.data, whole.version = made, version_of(made)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Return the tensor after setting whether backward will compute its gradient."""
        self.edge = (accumulator_of(self), 0) if check_bool(requires_grad, "requires_grad") else None
        return self

    def detach(self) -> Self:
        """Return the tensor itself: there is nothing that it could share."""
        return self

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        kind, arguments = self.__reduce_ex__(2)
        return memo.setdefault(id(self), kind(*arguments))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self.requires_grad, str(self.device), self.dtype)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter without a shape until its lazy module is first called: `materialize` makes it a `Parameter`.

    Parameters
    ----------
    requires_grad : bool
        Whether backward will compute its gradient.
    device, dtype : optional
        What it will be on and of; the defaults if left out.

    Examples
    --------
    >>> from lucid import nn
    >>> weight = nn.UninitializedParameter()
    >>> weight
    <UninitializedParameter>
    >>> weight.materialize((2, 3))
    >>> weight.shape
    lucid.Size([2, 3])
    """

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Self:
        """Return a leaf without elements."""
        return share(cls, empty(0, device=device, dtype=dtype), check_bool(requires_grad, "requires_grad"))

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> None: ...


class UninitializedBuffer(UninitializedTensorMixin):
    """A buffer without a shape until its lazy module is first called: `materialize` makes it a `Tensor`.

    Parameters
    ----------
    requires_grad : bool
        Whether backward will compute its gradient.
    device, dtype : optional
        What it will be on and of; the defaults if left out.
    persistent : bool
        Whether it is part of the module's `state_dict`.

    Examples
    --------
    >>> from lucid import nn
    >>> nn.UninitializedBuffer()
    <UninitializedBuffer>
    """

    persistent: bool

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> Self:
        """Return a tensor without elements."""
        made = share(cls, empty(0, device=device, dtype=dtype), check_bool(requires_grad, "requires_grad"))
        made.persistent = check_bool(persistent, "persistent")
        return made

    def __init__(
        self, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> None: ...


def is_lazy(param: object) -> bool:
    """Return whether something is a parameter or buffer without elements."""
    return isinstance(param, UninitializedTensorMixin)


tensor_classes += [Parameter, Buffer]
