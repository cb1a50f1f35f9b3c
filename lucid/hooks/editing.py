"""Outputs of modules, and their gradients, replaced by the paths of modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lucid.arguments import unfit
from lucid.autograd.base import TensorBase
from lucid.autograd.engine.retain import register_hook
from lucid.autograd.hooks.firing import check_callable
from lucid.errors import ArgumentError, SettingError
from lucid.hooks.points import called
from lucid.hooks.points import parameters as chosen_parameters
from lucid.hooks.scoping import tool
from lucid.hooks.taps import Listener
from lucid.nn.hooking.own_output import Beginning

if TYPE_CHECKING:
    from lucid.nn.module.module import Module

    Change = Callable[[Any], Any]


class edit(tool):
    """A block that puts functions' results in place of modules' outputs, and of the gradients of outputs.

    Parameters
    ----------
    model : Module, optional
        What is changed; with None only taps are.
    outputs : dict of str to callable, optional
        By patterns of paths, as `points` reads them: ``function(output)`` gives what takes the output's place, or None
        to leave it. Where several patterns match a module, their functions run in order.
    inputs : dict of str to callable, optional
        The same for positional arguments: ``function(args)`` takes their tuple, and gives a tuple, or the only one.
    grads : dict of str to callable, optional
        The same for the gradient of a module's output, which must be a tensor: ``function(grad)``. Where the module
        returns a tensor that it was given, or keeps, the caller gets a view: other uses of the tensor do not count.
    parameters : dict of str to callable, optional
        The same for the gradients of parameters, by patterns of their paths: before they are added to
        ``.grad``. Parameters that require none are passed over.
    taps : dict of str to callable, optional
        The same for the values of taps, by patterns as of file names.

    Raises
    ------
    SettingError
        If a pattern matches no module, or nothing is to be edited; nothing is registered then.
    HookTypeError
        If a function is not callable.

    Warns
    -----
    UserWarning
        At the end of a block in which no tap has matched a pattern of `taps` other than ``"*"``, with the nearest
        names; not where the block raises.

    Examples
    --------
    >>> import lucid
    >>> from lucid import hooks, nn
    >>> model = nn.Sequential(nn.Identity(), nn.Identity())
    >>> with hooks.edit(model, {"0": lambda output: output * 0}):
    ...     model(lucid.ones(2))
    tensor([0., 0.])
    >>> with hooks.edit(model, inputs={"1": lambda args: args[0] + 1}):
    ...     model(lucid.ones(2))
    tensor([2., 2.])
    >>> layer = nn.Linear(2, 2)
    >>> with hooks.edit(layer, parameters={"*": lambda grad: grad.clamp(-1, 1)}):
    ...     (layer(lucid.ones(1, 2)) * 100).sum().backward()
    >>> layer.bias.grad
    tensor([1., 1.])
    >>> x = lucid.ones(2, requires_grad=True)
    >>> with hooks.edit(model, grads={"1": lambda grad: -grad}):
    ...     model(x).sum().backward()
    >>> x.grad
    tensor([-1., -1.])
    """

    def __init__(
        self,
        model: Module | None = None,
        outputs: Mapping[str, Change] | None = None,
        *,
        inputs: Mapping[str, Change] | None = None,
        grads: Mapping[str, Change] | None = None,
        parameters: Mapping[str, Change] | None = None,
        taps: Mapping[str, Change] | None = None,
    ) -> None:
        super().__init__()
        edits = {"outputs": outputs, "inputs": inputs, "grads": grads, "parameters": parameters, "taps": taps}
        for name, changes in edits.items():
            if changes is not None and not isinstance(changes, Mapping):
                raise unfit(changes, "a dictionary of patterns to functions", name)
            for pattern, change in (changes or {}).items():
                check_callable(change, f"edit: {name}[{pattern!r}]")
        of_the_model = outputs or inputs or grads or parameters
        if not (of_the_model or taps) or (model is None and of_the_model):
            raise SettingError("edit: expected a model with outputs, inputs, grads or parameters to edit, or taps")
        self._before = _hooks(model, inputs, _input_hook)
        self._after = _hooks(model, outputs, _output_hook)
        self._grads = _hooks(model, grads, lambda change: change)
        self._parameters = [
            (parameter, change)
            for pattern, change in (parameters or {}).items()
            for parameter in chosen_parameters(model, pattern).values()  # pyright: ignore[reportArgumentType]  # as above
        ]
        self._listeners = [
            Listener("edit", (pattern,), self._tap_hook(change)) for pattern, change in (taps or {}).items()
        ]

    def _begin(self) -> None:
        for module, hook in self._before:
            module.register_forward_pre_hook(hook)
        for module, hook in self._after:
            module.register_forward_hook(hook)
        for module, change in self._grads:
            beginning = Beginning()
            module.register_forward_pre_hook(beginning)
            module.register_forward_hook(self._grad_hook(change, beginning), with_kwargs=True)
        for parameter, change in self._parameters:
            if parameter.requires_grad:
                register_hook(parameter, change)
        for listener in self._listeners:
            listener.begin()

    def __exit__(self, *exception: object) -> bool | None:
        super().__exit__(*exception)
        for listener in self._listeners:
            listener.end()
        if not any(exception):
            for listener in self._listeners:
                listener.warn_of_unmatched()

    def _tap_hook(self, change: Change) -> Any:
        def hook(_name: str, value: Any) -> Any:
            return change(value) if self._open else None

        return hook

    def _grad_hook(self, change: Change, beginning: Beginning) -> Any:
        def hook(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
            if not isinstance(output, TensorBase):
                raise ArgumentError(
                    f"edit: grads: expected a module that returns a tensor, got {type(module).__name__}, which "
                    f"returned {type(output).__name__}: name a module inside of it that does"
                )
            if self._open:
                output = beginning.own(output, args, kwargs)
                self._hook_gradient(output, change)
            return output

        return hook


def _hooks(model: Any, changes: Mapping[str, Change] | None, make: Callable[[Change], Any]) -> list[tuple[Module, Any]]:
    """Return the modules that patterns name, each with the hook that is made of a change."""
    return [
        (module, make(change))
        for pattern, change in (changes or {}).items()
        for module in called(model, pattern).values()
    ]


def _output_hook(change: Change) -> Any:
    def hook(_module: Module, _args: tuple[Any, ...], output: Any) -> Any:
        return change(output)

    return hook


def _input_hook(change: Change) -> Any:
    def hook(_module: Module, args: tuple[Any, ...]) -> Any:
        return change(args)

    return hook
