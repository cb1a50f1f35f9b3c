"""Graph methods of a tensor: backward, hooks, and leaving the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.autograd import entry
from lucid.autograd.engine import retain
from lucid.autograd.recording.views import detached
from lucid.errors import InplaceError
from lucid.ops.base.promotion import array_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.autograd.hooks.handle import RemovableHandle
    from lucid.tensor import Tensor


def backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Add the gradient of this tensor, times `gradient`, to the `.grad` of every leaf that it was computed from.

    Parameters
    ----------
    gradient : Tensor, optional
        The upstream gradient, of this tensor's shape; may be left out where it has one element, and is 1 then.
    retain_graph : bool, optional
        Whether the graph can run again; by default as `create_graph`.
    create_graph : bool
        Whether the pass is recorded, so that the gradients can be differentiated.
    inputs : Tensor or sequence of Tensor, optional
        Gradients are accumulated for these only.

    Raises
    ------
    GraphError
        If this tensor does not require grad, has several elements and no `gradient` is given, or its graph was freed.
    ShapeError
        If `gradient` has another shape.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).backward(lucid.tensor([1.0, 10.0]))
    >>> x.grad
    tensor([ 2., 40.])
    """
    entry.backward(self, gradient, retain_graph, create_graph, inputs)


def register_hook(
    self: Tensor, hook: Callable[..., Tensor | None], *, every_step: bool = False, with_context: bool = False
) -> RemovableHandle:
    """Return the handle of ``hook(grad)``, called with this tensor's gradient in each backward pass; it may replace it.

    The hook is called once in each pass, with the gradient of that pass summed over all uses of the tensor. A leaf's
    `.grad` still holds its old value then; what the last hook returns is what is added to it. For any other tensor it
    is what flows on.

    Parameters
    ----------
    hook : callable
        Returns None, or a tensor of the gradient's shape, dtype and device that replaces it for all that follows,
        later hooks included. It runs with grad mode off, on under ``create_graph=True``.
    every_step : bool
        Whether each replay of a captured step calls it; see `lucid.cuda.graphed_step`.
    with_context : bool
        Whether it is called ``hook(grad, context)``, with a `lucid.hooks.HookContext`.

    Returns
    -------
    lucid.autograd.RemovableHandle
        ``handle.remove()``, ``handle()`` or the end of ``with handle:`` takes the hook off.

    Raises
    ------
    RuntimeError
        If this tensor does not require grad.
    TypeError
        If `hook` cannot be called.

    Notes
    -----
    A hook stays with the value that it was registered on: after an in-place op it still sees the gradient of the old
    value. It is not copied by `clone`, `detach` or `copy.deepcopy`.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([1.0, 2.0], requires_grad=True)
    >>> handle = x.register_hook(lambda grad: grad * 10)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([20., 40.])
    >>> handle.remove()
    """
    return retain.register_hook(self, hook, every_step=every_step, with_context=with_context)


def register_post_accumulate_grad_hook(
    self: Tensor, hook: Callable[..., None], *, every_step: bool = False, with_context: bool = False
) -> RemovableHandle:
    """Return the handle of ``hook(tensor)``, called after a backward pass has updated this leaf's `.grad`.

    Parameters
    ----------
    hook : callable
        Gets this tensor, must return None, and may change or drop its `.grad`, which is as before, and may be None,
        where the pass brought no gradient.
    every_step : bool
        As for `register_hook`.
    with_context : bool
        Whether it is called ``hook(tensor, context)``, with a `lucid.hooks.HookContext`.

    Returns
    -------
    lucid.autograd.RemovableHandle

    Raises
    ------
    RuntimeError
        If this tensor does not require grad or is no leaf.
    TypeError
        If `hook` cannot be called.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([1.0], requires_grad=True)
    >>> def step(leaf):
    ...     leaf.data -= 0.1 * leaf.grad
    ...     leaf.grad = None
    >>> handle = x.register_post_accumulate_grad_hook(step)
    >>> (x * 3).backward()
    >>> x
    tensor([0.7000], requires_grad=True)
    """
    return retain.register_post_accumulate_grad_hook(self, hook, every_step=every_step, with_context=with_context)


def retain_grad(self: Tensor) -> None:
    """Let backward keep this tensor's gradient in its `.grad` although it is no leaf.

    The gradient is kept as all tensor hooks have left it, and follows in-place ops to the newest value. On a leaf this
    does nothing.

    Raises
    ------
    GraphError
        If this tensor does not require grad.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([3.0], requires_grad=True)
    >>> y = x * 2
    >>> y.retain_grad()
    >>> (y * y).backward()
    >>> y.grad
    tensor([12.])
    """
    retain.retain_grad(self)


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Return this tensor after setting its `requires_grad`.

    Raises
    ------
    GraphError
        If it is switched off for a tensor that is no leaf.
    DtypeError
        If it is switched on for integers or bools.

    Examples
    --------
    >>> import lucid
    >>> lucid.ones(2).requires_grad_()
    tensor([1., 1.], requires_grad=True)
    """
    self.requires_grad = requires_grad
    return self


def detach(self: Tensor) -> Tensor:
    """Return a tensor on the same memory that is in no graph; in-place changes of either are counted for both.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.ones(2, requires_grad=True)
    >>> x.detach().requires_grad
    False
    """
    array_of(self)
    return detached(self)


def detach_(self: Tensor) -> Tensor:
    """Return this tensor after taking it out of its graph: it becomes a leaf that does not require grad.

    Raises
    ------
    InplaceError
        If it is a view: its base stays in the graph, or may come into one. Use `detach` then.

    Notes
    -----
    What has been computed from it keeps its position in the graph, and its gradient.

    Examples
    --------
    >>> import lucid
    >>> y = lucid.ones(2, requires_grad=True) * 2
    >>> y.detach_().is_leaf
    True
    """
    if self.origin is not None:
        raise InplaceError(
            "detach_: a view cannot be detached in place, as its base is in a graph or may come into one: use detach()"
        )
    self.edge = None
    return self
