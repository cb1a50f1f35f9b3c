"""Activations and gradients, kept by the paths of modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.arguments import among, unfit
from lucid.autograd.base import TensorBase
from lucid.autograd.engine.running import current_graph_task_id
from lucid.autograd.hooks.structure import map_leaves
from lucid.errors import SettingError
from lucid.hooks.captured import Captured, Key
from lucid.hooks.points import called
from lucid.hooks.scoping import tool
from lucid.hooks.taps import Listener
from lucid.nn.hooking.calling import StopForward
from lucid.nn.hooking.own_output import Beginning

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from lucid.nn.module.module import Module

WHAT = ("input", "kwargs", "output", "grad")


class AllKept(StopForward):
    """All that a `capture` asked for is there."""

    def __init__(self, asked_by: capture) -> None:
        super().__init__()
        self.asked_by = asked_by


class capture(tool):
    """A block that keeps inputs and outputs of modules, and the gradients of their outputs.

    Parameters
    ----------
    model : Module, optional
        What is looked into; with None only taps are kept.
    pattern : str or iterable of str
        Which modules, as `points` reads it; by default all of them.
    what : str or iterable of {"input", "kwargs", "output", "grad"}
        ``"input"`` is the tuple of positional arguments after the forward pre-hooks, ``"kwargs"`` the dictionary of the
        others, ``"output"`` what the module returns after the forward hooks that were there before, ``"grad"`` the
        gradient of that, from the last backward pass in the block that brings one: of a module that returns several
        tensors, a tuple, with None for one that gets none. Where the module returns a tensor that it was given, or
        keeps, the caller gets a view for that: other uses of the tensor do not count. By default the output.
    taps : str or iterable of str
        Which taps, by patterns as of file names; each is kept as an output, and its gradient where that is asked for.
    detach : bool
        Whether tensors are kept without their graphs, the default; they then stay as they were where the program
        changes its own in place. Kept with their graphs they can be differentiated by.
    device, dtype : optional
        Where kept tensors are moved, and what those of floating point are cast to.
    stop_at : str, optional
        The path of a module: what would come after its first call is not computed, and the block that called the model
        ends there. Its gradients can not be kept.
    folder : path, optional
        Where values are written as they come, a safetensors file each, so that none stays in memory; a new or empty
        folder, which is made. `Captured.load` reads it in another process.

    Returns
    -------
    Captured
        By ``as``; filled while the block runs, and good after it.

    Raises
    ------
    SettingError
        If a pattern matches no module, or a setting has no meaning; nothing is registered then.

    Warns
    -----
    UserWarning
        At the end of a block in which no tap has matched a pattern of `taps` other than ``"*"``, with the nearest
        names; not where the block raises.

    Notes
    -----
    In a step that is captured as a CUDA graph the hooks run when that is captured, as all do; see docs/users/speed.md.

    Examples
    --------
    >>> import lucid
    >>> from lucid import hooks, nn
    >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    >>> with hooks.capture(model, "[02]", what=("output", "grad")) as kept:
    ...     model(lucid.ones(4, 2)).sum().backward()
    >>> kept["0", "output"].shape, kept["2", "grad"].tolist()
    (lucid.Size([4, 3]), [[1.0], [1.0], [1.0], [1.0]])
    """

    def __init__(
        self,
        model: Module | None = None,
        pattern: str | Iterable[str] = "**",
        what: str | Iterable[str] = "output",
        *,
        taps: str | Iterable[str] = (),
        detach: bool = True,
        device: Any = None,
        dtype: Any = None,
        stop_at: str | None = None,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__()
        self._what = (what,) if isinstance(what, str) else tuple(what)
        for each in self._what:
            if not among(each, set(WHAT)):
                raise SettingError(f"capture: what: expected some of {WHAT}, got {each!r}")
        self._taps = (taps,) if isinstance(taps, str) else tuple(taps)
        if model is None and not self._taps:
            raise SettingError("capture: expected a model, or taps=, got neither")
        self._modules = {} if model is None else called(model, pattern)
        self._last: Module | None = None
        if stop_at is not None:
            if model is None or type(stop_at) is not str:
                raise unfit(stop_at, "the path of a module of a model", "stop_at")
            if "grad" in self._what:
                raise SettingError("capture: stop_at: a forward that ends early has no gradients; leave one out")
            self._last = next(iter(called(model, stop_at).values()))
        self._how = {"detach": detach, "device": device, "dtype": dtype}
        self._listener = Listener("capture", self._taps, self._tapped)
        if folder is not None and not detach:
            raise SettingError("capture: folder: files hold no graphs; leave detach=False out")
        self.kept = Captured(folder, grads="grad" in self._what)

    def __enter__(self) -> Any:
        super().__enter__()
        return self.kept

    def _begin(self) -> None:
        self.kept.begin()
        for path, module in self._modules.items():
            beginning = Beginning() if "grad" in self._what else None
            if beginning is not None:
                module.register_forward_pre_hook(beginning)
            named = beginning is not None or "kwargs" in self._what
            module.register_forward_hook(CaptureHook(self, path, beginning), with_kwargs=named)
        if self._last is not None:
            self._last.register_forward_hook(self._stop)
        self._listener.begin()

    def __exit__(self, *exception: object) -> bool | None:
        super().__exit__(*exception)
        self._listener.end()
        self.kept.end()
        if not any(exception):  # a block that raised may not have come to its taps
            self._listener.warn_of_unmatched()
        return any(isinstance(each, AllKept) and each.asked_by is self for each in exception)

    def _stop(self, *_: object) -> None:
        raise AllKept(self)

    def keep(self, path: str, inputs: tuple[Any, ...], output: Any) -> None:
        """Keep the wanted values of one call with these arguments: a tuple, and a dictionary; for a tap none."""
        kept, how = self.kept, self._how
        call = kept.count(path)
        for what, arguments in zip(WHAT, inputs, strict=False):
            if what in self._what:
                kept.keep(Key(path, what, call), arguments, **how)
        if "output" in self._what:
            kept.keep(Key(path, "output", call), output, **how)
        if "grad" in self._what:
            self._keep_grad(Key(path, "grad", call), output)

    def _keep_grad(self, key: Key, output: Any) -> None:
        tensors: list[Any] = []
        map_leaves(output, lambda leaf: tensors.append(leaf) if isinstance(leaf, TensorBase) else None)
        single = isinstance(output, TensorBase)
        grads: list[Any] = [None] * len(tensors)
        brought_by: list[Any] = [None]
        kept, how = self.kept, self._how

        def hook_of(place: int) -> Any:
            def keep_grad(grad: Any) -> None:
                if brought_by[0] != current_graph_task_id():
                    brought_by[0] = current_graph_task_id()
                    grads[:] = [None] * len(grads)
                # as it is now, when those of other outputs come
                grads[place] = kept.packed(grad, **how)
                kept.keep(key, grads[0] if single else tuple(grads), **how)

            return keep_grad

        for place, tensor in enumerate(tensors):
            self._hook_gradient(tensor, hook_of(place))

    def _tapped(self, name: str, value: Any) -> None:
        if self._open:
            self.keep(name, (), value)


class CaptureHook:
    """The forward hook of one module, part of its `capture`."""

    def __init__(self, owner: capture, path: str, beginning: Beginning | None) -> None:
        self.owner = owner
        self.path = path
        self.beginning = beginning

    def __call__(self, module: Module, args: tuple[Any, ...], *rest: Any) -> Any:
        """Keep the wanted values, and return the output, with its own gradients if these are wanted."""
        *kwargs, output = rest
        if self.beginning is not None:
            output = self.beginning.own(output, args, kwargs[0])
        self.owner.keep(self.path, (args, *kwargs), output)
        return output
