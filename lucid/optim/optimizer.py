"""Optimizer: parameter groups, the state of each parameter, and the hooks around a step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from lucid.arguments import checked, shown, unfit
from lucid.autograd.base import TensorBase, grad_of, with_grads
from lucid.autograd.hooks.firing import every_step_hook, fire
from lucid.autograd.hooks.owning import KINDS, TableAttribute
from lucid.autograd.hooks.table import RemovableHandle, register
from lucid.autograd.modes.state import enable_grad, no_grad
from lucid.base.capture import captures, note_assigned
from lucid.base.interrupts import uninterrupted
from lucid.errors import ArgumentError, SettingError, warn
from lucid.optim.base.entries import Entries, State, as_state, note_replaced
from lucid.optim.base.settings import refuse_missing, required
from lucid.optim.base.slots import unlike_parameters
from lucid.optim.base.state import loaded, packed
from lucid.optim.base.stepping import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
    with_step_hooks,
)
from lucid.tensor import Tensor

if TYPE_CHECKING:
    from collections import defaultdict


__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook", "required"]

Group: TypeAlias = dict[str, Any]
"""The parameters of a group under ``"params"``, and its settings under their names."""

Params: TypeAlias = Iterable[Tensor] | Iterable[tuple[str, Tensor]] | Iterable[Mapping[str, Any]]


class Optimizer:
    """The base of all optimisers: it holds the parameters in groups, and the state that belongs to each parameter.

    A subclass gives `update`, which changes the parameters of one group. One that is written as for PyTorch, with a
    `step` of its own, works too, hooks included.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor), or of dict
        What to optimise; dicts are parameter groups: the tensors under ``"params"``, and settings that differ from the
        defaults.
    defaults : dict
        Settings of groups that do not name them.

    Attributes
    ----------
    param_groups : list of dict
        The groups; settings may be changed between steps.
    state : dict
        By parameter, a dict of what the optimiser keeps for it.
    defaults : dict
        As given.
    scalars : tuple of str
        Of the class: the names of state that is one number.
    counted_by : str
        Of the class: the setting that says whether these numbers lie on the parameters' CUDA devices.

    Raises
    ------
    ValueError
        If there are no parameters, one is in two groups or no leaf, or only some have names.
    TypeError
        If a parameter is no tensor.

    Examples
    --------
    >>> import lucid
    >>> class SignDescent(lucid.optim.Optimizer):
    ...     def __init__(self, params, lr):
    ...         super().__init__(params, {"lr": lr})
    ...
    ...     def update(self, params, group):
    ...         for param in params:
    ...             param.sub_(param.grad.sign() * group["lr"])
    >>> x = lucid.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = SignDescent([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x.tolist()
    [0.5, -1.5]
    """

    state: defaultdict[Tensor, dict[str, Any]]
    param_groups: list[Group]

    scalars: ClassVar[tuple[str, ...]] = ("step",)
    counted_by: ClassVar[str] = "capturable"

    _stepping = False
    # under PyTorch's names
    _optimizer_step_pre_hooks = TableAttribute()
    _optimizer_step_post_hooks = TableAttribute()
    _optimizer_state_dict_pre_hooks = TableAttribute()
    _optimizer_state_dict_post_hooks = TableAttribute()
    _optimizer_load_state_dict_pre_hooks = TableAttribute()
    _optimizer_load_state_dict_post_hooks = TableAttribute()

    @checked
    def __init__(self, params: Params, defaults: dict[str, Any]) -> None:
        if isinstance(params, TensorBase):
            raise ArgumentError(
                "params: expected an iterable of Tensors or dicts, got a Tensor: put it into a list, as in [tensor]"
            )
        if isinstance(params, str | Mapping) or not isinstance(params, Iterable):
            advice = ": a dict of names goes as its items()" if isinstance(params, Mapping) else ""
            raise ArgumentError(f"params: expected an iterable of Tensors or dicts, got {shown(params)}{advice}")
        self.defaults = defaults
        self.state = State(Entries)
        self.param_groups = []
        entries: list[Any] = list(params)
        if not entries:
            raise SettingError(
                "optimizer got an empty parameter list: pass model.parameters() of a model that has some"
            )
        for group in entries if isinstance(entries[0], Mapping) else [{"params": entries}]:
            self.add_param_group(group)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        # a copy that is made in the middle of a step is in none itself
        vars(self).pop("_stepping", None)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "state":
            note_replaced(vars(self).get("state"))
        if name in KINDS:
            getattr(type(self), name).put(self, value)
        else:
            object.__setattr__(self, name, value)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = with_step_hooks(cls.__dict__["step"])

    def __repr__(self) -> str:
        groups: list[str] = []
        for number, group in enumerate(self.param_groups):
            settings = [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
            groups.append("\n".join([f"Parameter Group {number}", *settings]))
        return f"{type(self).__name__} (\n" + "\n\n".join(groups) + "\n)"

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Add a group of parameters.

        Parameters
        ----------
        param_group : dict
            A tensor, or an ordered collection of tensors or of (name, tensor), under ``"params"``; settings that differ
            from the defaults under their names. The dict itself is left as it is.

        Raises
        ------
        TypeError
            If it is no dict, or a parameter is no tensor, or the parameters are a set.
        ValueError
            If a parameter is no leaf or is in another group, only some have names, or a setting is missing or wrong.
        """
        if not isinstance(param_group, Mapping):
            raise ArgumentError(f"param_group: expected a dict, got {type(param_group).__name__}")
        if "params" not in param_group:
            raise SettingError(f"param_group: expected the parameters under 'params', got the keys {[*param_group]}")
        members = param_group["params"]
        if isinstance(members, set | frozenset):
            raise ArgumentError(
                "param_group: expected the parameters in an ordered collection, got a set, whose order changes from "
                "run to run: use a list"
            )
        entries: list[Any] = [members] if isinstance(members, TensorBase) else list(members)
        named: list[tuple[str, Any]] = [entry for entry in entries if isinstance(entry, tuple)]
        if named and len(named) != len(entries):
            raise SettingError(
                f"param_group: expected all parameters with names or all without, got {len(named)} of {len(entries)} "
                "with one"
            )
        group: Group = {**self.defaults, **param_group, "params": [entry[1] for entry in named] or entries}
        if named:
            group["param_names"] = [entry[0] for entry in named]
        refuse_missing(group)
        self._check_params(group)
        self.check_group(group)
        self.param_groups.append(group)

    def _check_params(self, group: Group) -> None:
        params = group["params"]
        for number, param in enumerate(params):
            if not isinstance(param, Tensor):
                raise ArgumentError(
                    f"params: parameter {number}: an optimizer can only optimize Tensors, got {shown(param)}"
                )
            if not (param.is_leaf or param.retains_grad):
                raise SettingError(
                    f"parameter {number}: can't optimize a non-leaf Tensor: it is the result of {param.grad_fn}; pass "
                    "the tensor that it was computed from, or detach() it"
                )
        members = set(params)
        if len(members) != len(params):
            warn(
                "optimizer contains a parameter group with duplicate parameters: each step changes them twice",
                UserWarning,
            )
        for number, other in enumerate(self.param_groups):
            if not members.isdisjoint(other["params"]):
                raise SettingError(f"some parameters appear in more than one parameter group: also in group {number}")
            if ("param_names" in group) != ("param_names" in other):
                raise SettingError("expected all parameter groups with names or all without")

    def check_group(self, group: Group) -> None:
        """Raise if the settings of a group are wrong: a subclass says how, and may assume that all are there."""

    def state_names(self, group: Group) -> tuple[str, ...] | None:
        """Return the names of the state that each parameter of `group` has once it has been changed.

        What is among `scalars` is one number, and the rest is shaped like the parameter; `load_state_dict` checks
        that. None, here, says nothing about the state.
        """
        return None

    def _keeps_state_of(self, param: Tensor) -> bool:
        """Return whether there is state of a parameter here, rather than in another process."""
        return True

    def _check_devices(self, params: list[Tensor], group: Group) -> None:
        """Raise `DeviceError` if a step would, since it takes arrays for `params`, of one group, on several devices.

        Here nothing is known of what a step takes, and nothing refused.
        """

    def update(self, params: list[Tensor], group: Group) -> None:
        """Change `params`, those of one group that have a gradient; called with gradients off.

        Raises
        ------
        NotImplementedError
            Here: every subclass defines it, or `step`.
        """
        raise NotImplementedError(f"{type(self).__name__} defines neither update(self, params, group) nor step")

    @with_step_hooks
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Return the result of `closure`, after updating every parameter with a gradient.

        Parameters
        ----------
        closure : callable, optional
            Called first, with gradients on: computes the loss anew, runs backward and returns the loss.

        Returns
        -------
        object
            The loss, or None without a closure.

        Notes
        -----
        A Ctrl-C while parameters change takes effect after the last of them; a second one does at once, and leaves some
        changed and others not.
        """
        if closure is not None and not callable(closure):
            raise unfit(closure, "a callable or None", "closure")
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            by_group = [with_grads(group["params"]) for group in self.param_groups]
            uninterrupted(self._prepared(by_group))
        return loss

    def _prepared(self, by_group: list[list[Tensor]]) -> Callable[[], None]:
        """Return the update of parameters, those of each group that have a gradient, after all checks that may fail."""
        for params, group in zip(by_group, self.param_groups, strict=True):
            self._check_shapes(params, group)
            self._check_devices(params, group)
        return partial(self._update_groups, by_group)

    def _update_groups(self, by_group: list[list[Tensor]]) -> None:
        for params, group in zip(by_group, self.param_groups, strict=True):
            if params:
                self.update(params, group)

    def _check_shapes(self, params: list[Tensor], group: Group) -> None:
        """Raise `ShapeError` if a gradient or state is no longer shaped like its parameter."""
        shapes = [param.array.shape for param in params]
        columns = [[param.stored_grad.array.shape for param in params]]
        states: list[Mapping[str, Tensor]] = [self.state.get(param) or {} for param in params]
        for name in self.state_names(group) or ():
            if name in self.scalars:
                continue
            # of some it is made in this step
            pairs = zip(states, shapes, strict=True)
            columns.append([state[name].array.shape if name in state else shape for state, shape in pairs])
        for column in columns:
            if column != shapes:
                shape, other = next((a, b) for a, b in zip(shapes, column, strict=True) if a != b)
                raise unlike_parameters(
                    f"a parameter of shape {tuple(shape)} has a gradient or state of shape {tuple(other)}"
                )

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters.

        Parameters
        ----------
        set_to_none : bool
            Whether `.grad` becomes None, which frees it; otherwise it is filled with zeros and leaves its graph.
        """
        for group in self.param_groups:
            for param in group["params"]:
                grad = grad_of(param)
                if grad is None:
                    continue
                if set_to_none:
                    param.stored_grad = None
                    if captures:
                        note_assigned(param)
                else:
                    if grad.grad_fn is not None:
                        grad.detach_()
                    else:
                        grad.requires_grad = False
                    grad.zero_()

    # ---- state dicts ----

    def state_dict(self) -> dict[str, Any]:
        """Return the state and the settings, in PyTorch's form.

        Returns
        -------
        dict
            ``"state"``: by the number of a parameter, counted through all groups, a dict of its state, whose tensors
            are not copied. ``"param_groups"``: of each group a dict of its settings, with the numbers of its parameters
            under ``"params"``.
        """
        hooks, name = self._optimizer_state_dict_pre_hooks.snapshot(), type(self).__name__
        fire(hooks, lambda hook, _: hook.func(self), None, "state-dict pre-hook", name)
        state_dict = packed(self.state, self.param_groups)
        hooks = self._optimizer_state_dict_post_hooks.snapshot()
        return fire(hooks, lambda hook, saved: hook.func(self, saved), state_dict, "state-dict post-hook", name)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a state that `state_dict` returned, here or in PyTorch.

        Parameters
        ----------
        state_dict : dict
            Its tensors, or arrays, are copied to the device and the floating dtype of their parameter.

        Raises
        ------
        StateDictError
            If groups, parameters, settings or state do not fit this optimiser; the message names group and parameter.
            Nothing is changed then, nor if a hook raises.
        """
        if not isinstance(state_dict, Mapping):
            raise unfit(state_dict, "a dict as state_dict() returns it", "state_dict")
        hooks, name = self._optimizer_load_state_dict_pre_hooks.snapshot(), type(self).__name__
        entries = fire(
            hooks, lambda hook, entries: hook.func(self, entries), dict(state_dict), "load-state-dict pre-hook", name
        )
        state, groups = loaded(self, entries, self._keeps_state_of)
        before = self.state, self.param_groups
        try:
            # through the method that subclasses written for PyTorch extend
            self.__setstate__({"state": as_state(state), "param_groups": groups})
            hooks = self._optimizer_load_state_dict_post_hooks.snapshot()
            fire(hooks, lambda hook, _: hook.func(self), None, "load-state-dict post-hook", name)
        except BaseException:
            self.state, self.param_groups = before
            raise

    # ---- registration of hooks ----

    def register_step_pre_hook(self, hook: Callable[..., Any], *, every_step: bool = False) -> RemovableHandle:
        """Return the handle of ``hook(optimizer, args, kwargs)``, called before `step`.

        What it returns is None, or a tuple ``(args, kwargs)`` that replaces the arguments of `step`. As in PyTorch, the
        optimiser itself is the first of `args`. With `every_step` replays of a captured step call it too.
        """
        hook = every_step_hook(hook, every_step)
        return register(self._optimizer_step_pre_hooks, hook, f"{type(self).__name__} hook")

    def register_step_post_hook(self, hook: Callable[..., Any], *, every_step: bool = False) -> RemovableHandle:
        """Return the handle of ``hook(optimizer, args, kwargs)``, called after `step`; `every_step` as there."""
        hook = every_step_hook(hook, every_step)
        return register(self._optimizer_step_post_hooks, hook, f"{type(self).__name__} hook")

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Return the handle of ``hook(optimizer)``, called before `state_dict` reads the state."""
        return register(self._optimizer_state_dict_pre_hooks, hook, f"{type(self).__name__} hook", prepend=prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Register ``hook(optimizer, state_dict)``, to change the dict or return another, and return its handle."""
        return register(self._optimizer_state_dict_post_hooks, hook, f"{type(self).__name__} hook", prepend=prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Return the handle of ``hook(optimizer, state_dict)``, called before `load_state_dict`.

        It may change the dict, a shallow copy of the caller's, or return another.
        """
        return register(self._optimizer_load_state_dict_pre_hooks, hook, f"{type(self).__name__} hook", prepend=prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Return the handle of ``hook(optimizer)``, called once `load_state_dict` is done."""
        return register(
            self._optimizer_load_state_dict_post_hooks, hook, f"{type(self).__name__} hook", prepend=prepend
        )
