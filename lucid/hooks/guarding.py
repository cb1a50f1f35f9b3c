"""The first number that is not finite, and where it came from."""

from __future__ import annotations

from cmath import isfinite
from functools import partial
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase
from lucid.autograd.engine.retain import register_hook
from lucid.autograd.hooks.structure import map_leaves
from lucid.autograd.modes.state import no_grad, thread
from lucid.autograd.recording.views import live_edge
from lucid.errors import LucidError
from lucid.hooks.points import points
from lucid.hooks.scoping import scope

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lucid.nn.module.module import Module


class NotFiniteError(LucidError, FloatingPointError, RuntimeError):
    """A module took finite numbers and returned others, or a gradient that came to it was not finite.

    Attributes
    ----------
    path : str
        Of the module in its model.
    what : {"output", "gradient"}
        Which of its values.
    """

    def __init__(self, message: str, path: str, what: str) -> None:
        super().__init__(message)
        self.path = path
        self.what = what

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0], self.path, self.what)


class guard(scope):
    """A block that stops at the first output or gradient of a module with NaN or infinity, and names the module.

    Parameters
    ----------
    model : Module
        What is watched.
    pattern : str or iterable of str
        Which of its modules, as `points` reads it; by default all.
    backward : bool
        Whether the gradients of their outputs are looked at, too; the default.

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

    def __init__(self, model: Module, pattern: str | Iterable[str] = "**", *, backward: bool = True) -> None:
        super().__init__()
        self._modules = points(model, pattern)
        self._backward = backward

    def _begin(self) -> None:
        for path, module in self._modules.items():
            module.register_forward_hook(self._hook(path))

    def _hook(self, path: str) -> Any:
        backward = self._backward

        def hook(module: Module, _: tuple[Any, ...], output: Any) -> None:
            where = f"{path or 'the model'} ({type(module).__name__})"

            def look(tensor: Any) -> None:
                if not isinstance(tensor, TensorBase):
                    return
                check(tensor, path, "output", where)
                if backward and live_edge(tensor) is not None:
                    register_hook(tensor, partial(check, path=path, what="gradient", where=f"the output of {where}"))

            map_leaves(output, look)

        return hook


def check(tensor: Any, path: str, what: str, where: str) -> None:
    """Raise NotFiniteError unless all numbers of a tensor are finite."""
    array = tensor.array
    # a sum is finite only if all its terms are, and takes one pass over them; it may overflow, too
    if array.dtype.kind in "biu" or not array.size or isfinite(complex(thread.state.quiet(array.sum))):
        return
    with no_grad():
        finite = tensor.detach().isfinite()
        if bool(finite.all()):
            return
        nan = int(tensor.detach().isnan().sum())
        infinite = tensor.numel() - int(finite.sum()) - nan
        made = "" if tensor.grad_fn is None else f" made by {tensor.grad_fn.name()},"
        others = tensor.detach()[finite]
        extent = (
            f"; the others reach from {others.min().item():.4g} to {others.max().item():.4g}"
            if (others.numel() and not tensor.is_complex())
            else ""
        )
        raise NotFiniteError(
            f"{what} of {where},{made} of shape {tuple(tensor.shape)}: {nan} NaN and {infinite} infinite of "
            f"{tensor.numel()} numbers{extent}",
            path,
            what,
        )
