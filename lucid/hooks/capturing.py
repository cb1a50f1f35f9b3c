"""Activations and gradients, kept by the paths of modules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from lucid.arguments import among, unfit
from lucid.autograd.base import TensorBase, wrap
from lucid.autograd.engine.retain import register_hook
from lucid.autograd.hooks.structure import map_leaves
from lucid.autograd.recording.mutation import Keeping, Kept, everywhere
from lucid.autograd.recording.views import live_edge
from lucid.errors import SettingError
from lucid.hooks.points import points
from lucid.hooks.scoping import scope
from lucid.hooks.taps import Listener, listeners

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lucid.nn.module.module import Module
    from lucid.tensor import Tensor

WHAT = ("input", "output", "grad")


class Key(NamedTuple):
    """What was kept: the path of a module or the name of a tap, which of its values, and of which call, from 0 on."""

    path: str
    what: str
    call: int


class Captured(Mapping[Any, Any]):
    """What a `capture` has kept, by (path, what, call) in the order in which it came.

    A path alone, or a path and what, name the value if there is one of that: ``kept["0"]`` is
    ``kept["0", "output", 0]`` where module 0 was called once and only its output was kept. Values are as the hooks saw
    them, with a tensor of their own in place of each tensor; they stay as they were where the program changes its
    tensors in place later.
    """

    def __init__(self) -> None:
        self._values: dict[Key, Any] = {}
        self._keeping = Keeping()
        everywhere.add(self._keeping)
        self._calls: dict[str, int] = {}

    def count(self, path: str) -> int:
        """Return the number of a new call of what is at `path`."""
        number = self._calls[path] = self._calls.get(path, -1) + 1
        return number

    def keep(self, key: Key, value: Any, *, detach: bool, device: Any, dtype: Any) -> None:
        """Keep a value, the tensors in it detached or as they are, moved and cast where that is asked for."""

        def kept(leaf: Any) -> Any:
            if not isinstance(leaf, TensorBase):
                return leaf
            if detach and device is None and dtype is None:
                return self._keeping.pack(leaf)
            tensor = cast("Tensor", leaf)
            if detach:
                tensor = tensor.detach()
            if device is not None:
                tensor = tensor.to(device)
            if dtype is not None and tensor.is_floating_point():
                tensor = tensor.to(dtype)
            return self._keeping.pack(tensor) if detach else tensor

        self._values[key] = map_leaves(value, kept)

    def _key(self, key: Any) -> Key:
        parts = cast("tuple[Any, ...]", key) if isinstance(key, tuple) else (key,)
        if parts in self._values:
            return Key(*parts)
        matches = [each for each in self._values if each[: len(parts)] == parts]
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise KeyError(f"{key!r} names {len(matches)} values: {[tuple(each) for each in matches]}")
        raise KeyError(f"{key!r}: nothing of this name was kept, but {[tuple(each) for each in self._values]}")

    def __getitem__(self, key: Any) -> Any:
        """Return a value by its key, or by the beginning of it; a KeyError lists what there is."""
        value = self._values[self._key(key)]
        return map_leaves(value, lambda leaf: wrap(leaf.array) if isinstance(leaf, Kept) else leaf)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<{len(self)} captured values of {', '.join(map(repr, dict.fromkeys(key.path for key in self)))}>"


class StopForward(BaseException):
    """All that a `capture` asked for is there: it ends the forward, and passes by what catches errors."""

    def __init__(self, asked_by: capture) -> None:
        super().__init__()
        self.asked_by = asked_by


class capture(scope):
    """A block that keeps what modules take and return, and the gradients of what they return.

    Parameters
    ----------
    model : Module, optional
        What is looked into; with None only taps are kept.
    pattern : str or iterable of str
        Which modules, as `points` reads it; by default all of them.
    what : str or iterable of {"input", "output", "grad"}
        ``"input"`` is the tuple of positional arguments after the forward pre-hooks, ``"output"`` what the module
        returns after the forward hooks that were there before, ``"grad"`` the gradient of that: of a module that
        returns several tensors, a tuple, with None for one that gets none. By default the output.
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

    Returns
    -------
    Captured
        By ``as``; filled while the block runs, and good after it.

    Raises
    ------
    SettingError
        If a pattern matches no module, or a setting has no meaning; nothing is registered then.

    Notes
    -----
    In a step that is captured as a CUDA graph the hooks run when that is captured, as all do; see docs/speed.md.

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
    ) -> None:
        super().__init__()
        self._what = (what,) if isinstance(what, str) else tuple(what)
        for each in self._what:
            if not among(each, set(WHAT)):
                raise SettingError(f"capture: what: expected some of {WHAT}, got {each!r}")
        self._taps = (taps,) if isinstance(taps, str) else tuple(taps)
        if model is None and not self._taps:
            raise SettingError("capture: expected a model, or taps=, got neither")
        self._modules = {} if model is None else points(model, pattern)
        if stop_at is not None:
            if model is None or type(stop_at) is not str:
                raise unfit(stop_at, "the path of a module of a model", "stop_at")
            if "grad" in self._what:
                raise SettingError("capture: stop_at: a forward that ends early has no gradients; leave one out")
            self._last: Module | None = next(iter(points(model, stop_at).values()))
        else:
            self._last = None
        self._how = {"detach": detach, "device": device, "dtype": dtype}
        self._listener = Listener(self._taps, self._tapped)
        self.kept = Captured()

    def __enter__(self) -> Any:
        super().__enter__()
        return self.kept

    def _begin(self) -> None:
        for path, module in self._modules.items():
            module.register_forward_hook(_Keep(self, path))
        if self._last is not None:
            self._last.register_forward_hook(self._stop)
        listeners.set((*listeners.get(), self._listener))

    def __exit__(self, *exception: object) -> bool | None:
        listeners.set(tuple([each for each in listeners.get() if each is not self._listener]))
        super().__exit__(*exception)
        return any(isinstance(each, StopForward) and each.asked_by is self for each in exception)

    def _stop(self, *_: object) -> None:
        raise StopForward(self)

    def keep(self, path: str, args: Any, output: Any) -> None:
        """Keep what is asked for of one call."""
        kept, how = self.kept, self._how
        call = kept.count(path)
        if "input" in self._what and args is not None:
            kept.keep(Key(path, "input", call), args, **how)
        if "output" in self._what:
            kept.keep(Key(path, "output", call), output, **how)
        if "grad" in self._what:
            self._keep_grad(Key(path, "grad", call), output)

    def _keep_grad(self, key: Key, output: Any) -> None:
        tensors: list[Any] = []
        map_leaves(output, lambda leaf: tensors.append(leaf) if isinstance(leaf, TensorBase) else None)
        single = isinstance(output, TensorBase)
        grads: list[Any] = [None] * len(tensors)
        kept, how = self.kept, self._how

        def hook_of(place: int) -> Any:
            def keep_grad(grad: Any) -> None:
                grads[place] = grad
                kept.keep(key, grads[0] if single else tuple(grads), **how)

            return keep_grad

        for place, tensor in enumerate(tensors):
            if live_edge(tensor) is not None:
                register_hook(tensor, hook_of(place))

    def _tapped(self, name: str, value: Any) -> None:
        self.keep(name, None, value)


class _Keep:
    """The forward hook of one module, which goes with its `capture`."""

    def __init__(self, owner: capture, path: str) -> None:
        self.owner = owner
        self.path = path

    def __call__(self, module: Module, args: tuple[Any, ...], output: Any) -> None:
        self.owner.keep(self.path, args, output)
