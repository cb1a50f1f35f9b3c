"""The first number that is not finite, and its origin."""

from __future__ import annotations

import weakref
from cmath import isfinite
from functools import partial
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import INFERENCE, TensorBase, version_of, wrap
from lucid.autograd.engine.node import AccumulateGrad, Node, sequences
from lucid.autograd.hooks.functions import Call, FunctionHook, outputs_of
from lucid.autograd.hooks.registration import Caller
from lucid.autograd.hooks.structure import map_leaves
from lucid.autograd.modes.state import no_grad, thread
from lucid.autograd.recording.views import recorded_since
from lucid.base.capture import capture_of_this_thread
from lucid.errors import CaptureError, LucidError
from lucid.hooks.points import called
from lucid.hooks.watching import watching

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lucid.nn.module.module import Module


class NotFiniteError(LucidError, FloatingPointError, RuntimeError):
    """A module took finite numbers and returned others, or a gradient that came to it was not finite.

    Attributes
    ----------
    path : str
        Of the module in its model.
    what : {"output", "gradient", "op"}
        Which of its values; ``"op"`` where an op inside was looked at.
    """

    def __init__(self, message: str, path: str, what: str) -> None:
        super().__init__(message)
        self.path = path
        self.what = what

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0], self.path, self.what)


class guard(watching):
    """A block that stops at the first output or gradient of a module with NaN or infinity, and names the module.

    Parameters
    ----------
    model : Module
        What is watched.
    pattern : str or iterable of str
        Which of its modules, as `points` reads it; by default all.
    backward : bool
        Whether the gradients of their outputs are looked at, too; the default.
    ops : bool
        Whether each op is looked at, in its forward and its backward, inside of modules and outside: the error then
        names the op that makes such numbers of finite ones, the line where it stands, and what it was given. One that
        is given an infinite number, as ``masked_fill(mask, -inf)``, makes none.

    Raises
    ------
    NotFiniteError
        In the block: with the module's path and class, the op that made the tensor, and how many of its numbers are NaN
        and infinite, the smallest and the largest of the others.
    SettingError
        If a pattern matches no module.

    Notes
    -----
    Each look waits for the device; in a step that is captured as a CUDA graph there is none, which raises an error.

    Examples
    --------
    >>> import lucid
    >>> from lucid import hooks, nn
    >>> model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    >>> with lucid.no_grad():
    ...     _ = model[0].bias.fill_(float("inf"))
    >>> with hooks.guard(model):
    ...     try:
    ...         model(lucid.zeros(1, 2))
    ...     except hooks.NotFiniteError as error:
    ...         print(error)
    output of 0 (Linear), made by LinearBackward0, of shape (1, 2): 0 NaN and 2 infinite of 2 numbers
    """

    def __init__(
        self, model: Module, pattern: str | Iterable[str] = "**", *, backward: bool = True, ops: bool = False
    ) -> None:
        super().__init__(called(model, pattern))
        self._backward = backward
        self._last: tuple[Callable[[], Any], int] = (lambda: None), 0
        self._ops = Ops(self._innermost, backward=backward) if ops else None

    def _begin(self) -> None:
        for path, module in self._modules.items():
            module.register_forward_hook(self._hook(path))
        if self._ops is not None:
            super()._begin()

    def _call_begins(self, path: str, module: Module) -> str:
        return path

    def _hook(self, path: str) -> Any:
        where = f"{path or 'the model'} ({type(self._modules[path]).__name__})"
        of_gradient = partial(check, path=path, what="gradient", where=f"the output of {where}")

        def look(tensor: Any) -> None:
            if not isinstance(tensor, TensorBase):
                return
            counter, (last, version) = version_of(tensor), self._last
            if counter is not INFERENCE:
                if last() is tensor and counter[0] == version:
                    return  # what a module only hands on has been looked at
                self._last = weakref.ref(tensor), counter[0]
            check(tensor, path, "output", where)
            if self._backward:
                self._hook_gradient(tensor, of_gradient)

        def hook(_module: Module, _args: tuple[Any, ...], output: Any) -> None:
            look(output) if isinstance(output, TensorBase) else map_leaves(output, look)

        return hook


class Ops(FunctionHook):
    """Looks at the result of each op, and knows the source lines of those that were recorded."""

    def __init__(self, innermost: Callable[[], str | None], *, backward: bool) -> None:
        super().__init__()
        self._innermost = innermost
        if not backward:
            self.phases = ("forward",)
        self._recorded: weakref.WeakKeyDictionary[Node, tuple[str, Caller]] = weakref.WeakKeyDictionary()

    def before(self, call: Call) -> None:
        """Look at operands that the op is about to change."""
        call.data[self] = next(sequences), operands_of(call) if call.name.endswith("_") else None

    def after(self, call: Call, output: Any) -> None:
        """Raise if an op makes numbers that are not finite of others that are."""
        node = call.node
        if isinstance(node, AccumulateGrad):
            return
        first, before = call.data.pop(self)
        outputs = outputs_of(output)
        here = (self._innermost() or "", Caller()) if node is None else self._recorded.get(node)
        path, caller = here or ("", None)
        if here is not None:
            for each in recorded_since(outputs, first):
                self._recorded.setdefault(each, here)
        bad = next((x for x in outputs if isinstance(x, TensorBase) and not all_finite(x)), None)
        operands = None if bad is None else operands_of(call) if before is None else before
        if not operands:
            return  # what was not finite before is told where it came from
        where = f"{call.name}{f' in {path}' if path else ''}"
        where += ", of an op that was recorded outside of the block" if caller is None else f" at {caller}"
        what = "op" if node is None else "gradient"
        raise NotFiniteError(f"{where} gives {numbers_of(bad)}. It got numbers {operands}", path, what)


def operands_of(call: Call) -> str:
    """Return an op's operands in words; nothing if some of them are not finite."""
    tensors: list[Any] = [x for x in call.inputs if isinstance(x, TensorBase)]
    numbers = [x for x in (*call.inputs, *call.settings.values()) if isinstance(x, float | complex)]
    # what fills with minus infinity on purpose, as a mask of attention does, is given it
    if not all(map(isfinite, numbers)) or not all(map(all_finite, tensors)):
        return ""
    with no_grad():
        return "; ".join(f"{extent_of(x.detach())}, of shape {tuple(x.shape)}" for x in tensors) or "none"


def all_finite(tensor: TensorBase) -> bool:
    """Return whether all numbers of a tensor are finite."""
    array = tensor.array
    if capture_of_this_thread() is not None:
        raise CaptureError(
            "hooks.guard: a look at numbers waits for the device, and cannot be captured: leave the block before the "
            "step is captured, or guard the same step without a graph"
        )
    # a sum is finite only if all its terms are, and takes one pass over them; it may overflow, too
    if array.dtype.kind in "biu" or not array.size or isfinite(complex(thread.state.quiet(array.sum))):
        return True
    with no_grad():
        return bool(wrap(array).isfinite().all())


def extent_of(tensor: Any) -> str:
    """Return in words the range of a tensor's numbers."""
    if not tensor.numel() or tensor.is_complex():
        return "nothing" if not tensor.numel() else "complex numbers"
    return f"from {tensor.min().item():.4g} to {tensor.max().item():.4g}"


def numbers_of(tensor: Any) -> str:
    """Return in words how many numbers of a tensor are not finite, and the range of the others."""
    with no_grad():
        tensor = tensor.detach()
        finite = tensor.isfinite()
        nan = int(tensor.isnan().sum())
        infinite = tensor.numel() - int(finite.sum()) - nan
        others = tensor[finite]
        extent = f"; the others reach {extent_of(others)}" if others.numel() and not tensor.is_complex() else ""
        return f"{nan} NaN and {infinite} infinite of {tensor.numel()} numbers{extent}"


def check(tensor: Any, path: str, what: str, where: str) -> None:
    """Raise NotFiniteError unless all numbers of a tensor are finite."""
    if not all_finite(tensor):
        made = "" if tensor.grad_fn is None else f" made by {tensor.grad_fn.name()},"
        text = f"{what} of {where},{made} of shape {tuple(tensor.shape)}: {numbers_of(tensor)}"
        raise NotFiniteError(text, path, what)
