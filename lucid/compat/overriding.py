"""PyTorch's protocol for classes that take over functions, not followed by lucid: `lucid.overrides`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from lucid.autograd.base import TensorBase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

F = TypeVar("F")


def has_torch_function(relevant_args: Iterable[Any]) -> bool:  # noqa: ARG001
    """Return False: no class takes over.

    Examples
    --------
    >>> from lucid.overrides import has_torch_function
    >>> has_torch_function(([1.0],))
    False
    """
    return False


def has_torch_function_unary(arg: Any) -> bool:  # noqa: ARG001
    """Return False, as `has_torch_function` of one argument."""
    return False


def has_torch_function_variadic(*args: Any) -> bool:  # noqa: ARG001
    """Return False, as `has_torch_function` of several arguments."""
    return False


def handle_torch_function(
    public_api: Callable[..., Any],
    relevant_args: Iterable[Any],  # noqa: ARG001
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Return ``public_api(*args, **kwargs)``: nothing takes over.

    Examples
    --------
    >>> from lucid.overrides import handle_torch_function
    >>> handle_torch_function(abs, (), -2)
    2
    """
    return public_api(*args, **kwargs)


def wrap_torch_function(dispatcher: Callable[..., Any]) -> Callable[[F], F]:  # noqa: ARG001
    """Return a decorator that returns its function as it is.

    Examples
    --------
    >>> from lucid.overrides import wrap_torch_function
    >>> wrap_torch_function(lambda x: (x,))(abs) is abs
    True
    """
    return lambda function: function


def is_tensor_like(inp: object) -> bool:
    """Return whether an object is a tensor.

    Examples
    --------
    >>> import lucid
    >>> lucid.overrides.is_tensor_like(lucid.ones(1)), lucid.overrides.is_tensor_like([1.0])
    (True, False)
    """
    return isinstance(inp, TensorBase)
