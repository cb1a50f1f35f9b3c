"""`Variable`, the wrapper of tensors in old PyTorch, and its door to the engine."""

from __future__ import annotations

from typing import Any

from lucid.autograd.base import TensorBase
from lucid.autograd.engine.node import as_leaf
from lucid.autograd.engine.running import queue_callback
from lucid.autograd.modes.decorating import check_bool
from lucid.autograd.recording.views import detached
from lucid.errors import HookTypeError
from lucid.public import publish as _publish


class ExecutionEngine:
    """The engine, as PyTorch's code reaches it: ``Variable._execution_engine``."""

    queue_callback = staticmethod(queue_callback)


class _VariableMeta(type):
    """Lets every tensor be an instance of `Variable`."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, TensorBase)


class Variable(metaclass=_VariableMeta):
    """An old name of a tensor: every tensor is an instance, and making one gives a tensor on the same memory.

    Parameters
    ----------
    data : Tensor
        The elements; its graph and its gradient are left behind.
    requires_grad : bool
        Whether ops on the new tensor are recorded.

    Raises
    ------
    TypeError
        If `data` is no tensor.

    Examples
    --------
    >>> import lucid
    >>> from lucid.autograd import Variable
    >>> x = Variable(lucid.ones(2), requires_grad=True)
    >>> x, isinstance(x, Variable)
    (tensor([1., 1.], requires_grad=True), True)
    """

    _execution_engine = ExecutionEngine()

    def __new__(cls, data: TensorBase, requires_grad: bool = False) -> Any:
        """Return the tensor."""
        if not isinstance(data, TensorBase):
            raise HookTypeError(
                f"Variable: data: expected a Tensor, got {type(data).__name__}: make one with lucid.tensor"
            )
        made = detached(data)
        return as_leaf(made) if requires_grad and check_bool(requires_grad, "requires_grad") else made


_publish(globals(), Variable="lucid.autograd")
