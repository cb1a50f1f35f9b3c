"""State dicts: saving the state of a module, and loading it back, all of it or nothing."""

from __future__ import annotations

from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from lucid.autograd.base import TensorBase
from lucid.autograd.hooks.firing import fire, hook_name
from lucid.errors import ArgumentError, DtypeError, GraphError, HookTypeError, StateDictError, warn
from lucid.nn.module.loading import Loading
from lucid.nn.module.paths import saved_as
from lucid.nn.module.tree import Tree
from lucid.nn.parameter import is_lazy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lucid.autograd.hooks.table import Entry

EXTRA_STATE = "_extra_state"


class IncompatibleKeys(NamedTuple):
    """The keys that a load left out because it was not strict: `missing_keys` and `unexpected_keys`."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class StateDict(OrderedDict[str, Any]):
    """A state dict: names and values in order, with the layout versions of the modules in `_metadata`."""

    _metadata: OrderedDict[str, dict[str, Any]]

    def __init__(self, *entries: object, **named: object) -> None:
        super().__init__(*entries, **named)
        self._metadata = OrderedDict()


class StateMethods(Tree):
    """Saving and loading of a module and all below it."""

    _version: int
    _non_persistent_buffers_set: set[str]

    def get_extra_state(self) -> Any:
        """Return the state to save besides parameters and buffers; a subclass that has such state defines it.

        Raises
        ------
        RuntimeError
            Here.
        """
        raise StateDictError(
            f"{type(self).__name__}.get_extra_state is not defined: it is called for state dicts with '_extra_state'"
        )

    def set_extra_state(self, state: object) -> None:
        """Restore the state that `get_extra_state` returned.

        Raises
        ------
        RuntimeError
            Here.
        """
        raise StateDictError(
            f"{type(self).__name__}.set_extra_state is not defined: it is called for state dicts with '_extra_state'"
        )

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Put the module's own entries, not those of its submodules, into `destination`."""
        for name, value in self._local_state():
            destination[prefix + name] = value if keep_vars else value.detach()
        if self._has_extra_state():
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def _has_extra_state(self) -> bool:
        return type(self).get_extra_state is not StateMethods.get_extra_state

    def _local_state(self) -> list[tuple[str, Any]]:
        """Return the module's own parameters and persistent buffers by name."""
        buffers = [entry for entry in self._buffers.items() if entry[0] not in self._non_persistent_buffers_set]
        return [(name, value) for name, value in (*self._parameters.items(), *buffers) if value is not None]

    def state_dict(
        self, *args: Any, destination: dict[str, Any] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Return the parameters, persistent buffers and extra state of the whole tree under their dotted names.

        Parameters
        ----------
        *args : object
            The three others by position, in old code: a `FutureWarning`.
        destination : dict, optional
            Where the entries are put; a new ordered dictionary if left out. If a hook raises it is as it was before.
        prefix : str
            Stands before each name.
        keep_vars : bool
            Whether the values are the parameters themselves, rather than detached tensors on their memory.

        Returns
        -------
        dict
            Its attribute `_metadata` holds the layout version of each module.

        Examples
        --------
        >>> from lucid import nn
        >>> {name: value.shape for name, value in nn.Linear(2, 3).state_dict().items()}
        {'weight': lucid.Size([3, 2]), 'bias': lucid.Size([3])}
        """
        if args:
            if len(args) > 3:
                raise ArgumentError(
                    f"state_dict: expected destination, prefix and keep_vars, got {len(args)} arguments"
                )
            warn("state_dict: pass destination, prefix and keep_vars by name", FutureWarning)
            named: Any = destination, prefix, keep_vars
            destination, prefix, keep_vars = (*args, *named[len(args) :])
        if destination is None:
            return self._gather(StateDict(), prefix, keep_vars)
        metadata: dict[str, Any] | None = getattr(destination, "_metadata", None)
        if metadata is None:
            metadata = {}
        before = dict(destination), dict(metadata)
        try:
            return self._gather(destination, prefix, keep_vars)
        except BaseException:
            for entries, old in zip((destination, metadata), before, strict=True):
                entries.clear()
                entries.update(old)
            raise

    def _gather(self, made: dict[str, Any], prefix: str, keep_vars: bool) -> dict[str, Any]:
        """Put the entries of the whole tree into `made`, and return it after the hooks of this module."""
        local_metadata: dict[str, Any] = {"version": self._version}
        metadata = getattr(made, "_metadata", None)
        if metadata is not None:
            metadata[prefix[:-1]] = local_metadata
        owner = partial(saved_as, self, prefix)
        if self._state_dict_pre_hooks:
            hooks = self._state_dict_pre_hooks.snapshot()
            fire(hooks, lambda hook, _: hook.func(self, prefix, keep_vars), None, "state-dict pre-hook", owner)
        self._save_to_state_dict(made, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is None:
                continue
            # only one that a module has for itself need be called: the other would keep a copy to go back to
            if getattr(module.state_dict, "__func__", None) is not StateMethods.state_dict:
                module.state_dict(destination=made, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
            else:
                module._gather(made, f"{prefix}{name}.", keep_vars)  # noqa: SLF001
        if not self._state_dict_hooks:
            return made

        def call(hook: Entry, made: dict[str, Any]) -> dict[str, Any] | None:
            option = hook.option
            result = hook.func(self, made, prefix, keep_vars if option == "keep_vars" else local_metadata)
            if result is not None and (option == "no result" or not isinstance(result, dict)):
                raise HookTypeError(
                    f"state-dict hook {hook_name(hook)}: expected "
                    f"{'None' if option == 'no result' else 'None or a dict'} to be returned, "
                    f"got {type(result).__name__}"
                )
            return cast("dict[str, Any] | None", result)

        return fire(self._state_dict_hooks.snapshot(), call, made, "state-dict hook", owner)

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Take the module's own entries out of `state_dict`, and report mismatches in the three lists.

        A subclass may extend it, to rename keys for instance. The changes themselves are made once everything has
        been looked at, or before extra state is taken: they are noted in ``local_metadata["loading"]``.
        """
        loading: Loading | None = local_metadata.get("loading")
        changes = Loading(assign=False) if loading is None else loading
        local = dict(self._local_state())
        for name, target in local.items():
            key = prefix + name
            if key not in state_dict:
                if strict:
                    missing_keys.append(key)
                continue
            value: Any = state_dict[key]
            if is_lazy(target):
                if is_lazy(value):
                    continue
                if isinstance(value, TensorBase):
                    changes.materialize(target, value)
            if isinstance(value, TensorBase) and not target.array.shape and value.array.shape == (1,):
                # as old versions of PyTorch, which had no tensors without dimensions, saved numbers
                value = cast("Any", value)[0]
            if not isinstance(value, TensorBase):
                error_msgs.append(
                    f'While copying the parameter named "{key}", expected a Tensor in the state dict but got '
                    f"{type(value).__name__}."
                )
            elif value.array.shape != target.array.shape:
                error_msgs.append(
                    f"size mismatch for {key}: copying a param with shape {tuple(value.array.shape)} from checkpoint, "
                    f"the shape in current model is {tuple(target.array.shape)}."
                )
            else:
                try:
                    if changes.assign:
                        changes.assign_entry(
                            self._parameters if name in self._parameters else self._buffers, name, value
                        )
                    else:
                        changes.copy_into(target, value)
                except (GraphError, DtypeError) as error:
                    error_msgs.append(f'While copying the parameter named "{key}", an exception occurred: {error}.')
        extra = prefix + EXTRA_STATE
        if type(self).set_extra_state is not StateMethods.set_extra_state:
            if extra in state_dict:
                changes.set_extra_state(self, state_dict[extra], readable=self._has_extra_state())
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra:
                    name, dot, _ = key[len(prefix) :].partition(".")
                    if (name not in self._modules) if dot else (name not in local):
                        unexpected_keys.append(key)
        if loading is None:
            changes.make_changes()

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Take parameters, buffers and extra state from a state dict; nothing is changed if it does not fit.

        Parameters
        ----------
        state_dict : mapping of str to Tensor
            As `state_dict` returns it; it is not changed.
        strict : bool
            Whether missing and unexpected keys are an error. A value of another shape always is.
        assign : bool
            Whether the values become the module's tensors, with their dtype and device, rather than being copied into
            those that it has. A parameter is trained or frozen as the one before it, also where it is given as such.

        Returns
        -------
        IncompatibleKeys
            The lists `missing_keys` and `unexpected_keys`.

        Raises
        ------
        TypeError
            If `state_dict` is no mapping.
        StateDictError
            If it does not fit: one error, a `RuntimeError` and a `KeyError`, lists all missing and unexpected keys and
            all values of another shape.

        Examples
        --------
        >>> from lucid import nn
        >>> nn.Linear(2, 3).load_state_dict(nn.Linear(2, 3).state_dict())
        <All keys matched successfully>
        """
        if not hasattr(state_dict, "keys"):
            raise ArgumentError(f"expected state_dict to be dict-like, got {type(state_dict).__name__}")
        for key in state_dict:
            if not isinstance(key, str):
                raise ArgumentError(f"expected the keys of state_dict to be strings, got {type(key).__name__}: {key!r}")
        loading = Loading(assign=assign, metadata=getattr(state_dict, "_metadata", None), strict=strict)
        loading.load(self, dict(state_dict))
        return IncompatibleKeys(loading.missing, loading.unexpected)
