"""One load of a state dict: look at everything, change everything, undo it if it turns out to be wrong."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from lucid.autograd.hooks.firing import fire
from lucid.autograd.modes.state import no_grad
from lucid.autograd.recording.views import check_change, memory_error
from lucid.base.capture import changes
from lucid.base.interrupts import uninterrupted
from lucid.base.memory import writeable
from lucid.errors import StateDictError
from lucid.nn.module.paths import saved_as
from lucid.nn.parameter import Parameter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lucid.autograd.hooks.table import Entry


class HookKeys(NamedTuple):
    """The argument of a load's hooks in PyTorch's form."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class Loading:
    """The state of one load.

    Attributes
    ----------
    assign, strict : bool
        As the caller asked.
    metadata : mapping, optional
        The layout versions that the state dict came with.
    missing, unexpected, errors : list of str
        What does not fit.
    """

    def __init__(self, *, assign: bool, metadata: Mapping[str, Any] | None = None, strict: bool = True) -> None:
        self.assign = assign
        self.strict = strict
        self.metadata: Mapping[str, Any] = {} if metadata is None else metadata
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.errors: list[str] = []
        # what makes each change, and what takes a copy of the old state and returns what brings it back
        self._changes: list[tuple[Callable[[], Any], Callable[[], Callable[[], Any]]]] = []
        self._undo: list[Callable[[], Any]] = []
        # where each tensor of the tree stands, if entries are assigned: tied ones stay so
        self._places: dict[Any, list[tuple[dict[str, Any], str]]] = {}
        # modules with post-hooks, children first, with their prefixes
        self._hooked: list[tuple[Any, str]] = []

    def copy_into(self, target: Any, value: Any) -> None:
        """Note that `value` is to be copied into the tensor `target`.

        Raises
        ------
        GraphError
            If `target` may not be changed: an InplaceError where its memory cannot be written.
        """
        # before anything is changed
        check_change(target, recording=False)
        if target.array.size and not writeable(target.array):
            raise memory_error(target)

        def copy(source: Any) -> None:
            # only here: hooks, and what modules of users do for a load, run in the caller's grad mode
            with no_grad():
                target.copy_(source)

        def keep() -> Callable[[], Any]:
            memory = target.detach()
            old = memory.clone()

            def restore() -> None:
                if target.array is not memory.array:  # a hook has set `data`
                    target.data = memory
                copy(old)

            return restore

        self._changes.append((lambda: copy(value), keep))

    def materialize(self, target: Any, like: Any) -> None:
        """Give a tensor without elements the shape of another one, as long as the load does not fail."""
        kind = target.__class__
        blank = target.blank
        target.materialize(like.shape)

        def restore() -> None:
            target.__class__ = kind
            target.array = blank.array

        self._undo.append(restore)

    def assign_entry(self, table: dict[str, Any], name: str, value: Any) -> None:
        """Note that `value` is to stand under `name`, and wherever else the tensor stands that is there now.

        In place of a parameter it becomes one that is trained, or frozen, as that is.

        Raises
        ------
        GraphError, DtypeError
            If it cannot be.
        """
        target = table[name]
        if isinstance(target, Parameter):
            if isinstance(value, Parameter):
                self._set_trained(value, target.requires_grad)
            else:
                value = Parameter(value, requires_grad=target.requires_grad)
        places = self._places.get(table[name], [(table, name)])

        def keep() -> Callable[[], Any]:
            old = [entries[key] for entries, key in places]

            def restore() -> None:
                for (entries, key), before in zip(places, old, strict=True):
                    entries[key] = before

            return restore

        def change() -> None:
            for entries, key in places:
                before, entries[key] = entries.get(key), value
                if before is not value:
                    changes.replace(before)

        self._changes.append((change, keep))

    def _set_trained(self, parameter: Parameter, trained: bool) -> None:
        """Let a parameter of the caller's be trained or frozen, as long as the load does not fail."""
        before = parameter.requires_grad
        if before is not trained:
            parameter.requires_grad_(trained)
            self._undo.append(partial(parameter.requires_grad_, before))

    def set_extra_state(self, module: Any, state: Any, *, readable: bool) -> None:
        """Let `module` take its extra state, after the tensors noted so far: from it, it may make its submodules.

        The old one is kept by `get_extra_state`, where that is `readable`, beside attributes and tables.
        """
        self.make_changes(careful=True)
        old = [module.get_extra_state()] if readable else []
        own: list[dict[str, Any]] = [vars(module), module._parameters, module._buffers, module._modules]  # noqa: SLF001
        tables = [(table, dict(table)) for table in own]

        def restore() -> None:
            for each in old:
                # the attributes come back in any case, and what made the load fail is the error to report
                with contextlib.suppress(Exception):
                    module.set_extra_state(each)
            for table, entries in tables:
                table.clear()
                table.update(entries)

        self._undo.append(restore)
        module.set_extra_state(state)

    def load(self, module: object, entries: dict[str, Any]) -> None:
        """Load `entries`, as edited by hooks, into `module` and all below it, or leave these as they are.

        A Ctrl-C meanwhile takes effect when it is done, a second one at once: it undoes what old values are kept of.

        Raises
        ------
        StateDictError
            If something does not fit after the hooks have had their say.
        """
        uninterrupted(partial(self._load, module, entries))

    def _load(self, module: Any, entries: dict[str, Any]) -> None:
        for each in module.modules() if self.assign else ():
            for table in (each._parameters, each._buffers):  # noqa: SLF001
                for name, tensor in table.items():
                    self._places.setdefault(tensor, []).append((table, name))
        try:
            self._look_at(module, entries, "")
            error = self._misfit(module)
            if error is not None and not self._hooked:
                raise error
            # Copies of the old values are kept only where something can still go wrong.
            self.make_changes(careful=bool(self._hooked))
            self._fire_post_hooks()
            error = self._misfit(module)
            if error is not None:
                raise error
        except BaseException:
            for restore in reversed(self._undo):
                restore()
            raise

    def make_changes(self, *, careful: bool = False) -> None:
        """Make the changes noted so far, keeping the old values if that is to be `careful`."""
        for change, keep in self._changes:
            if careful:
                self._undo.append(keep())
            change()
        self._changes.clear()

    def _look_at(self, module: Any, entries: dict[str, Any], prefix: str) -> None:
        """Collect changes, misfits and post-hooks of `module` and all below it; `entries` may be edited."""
        local_metadata = dict(self.metadata.get(prefix[:-1], {}))
        local_metadata["assign_to_params_buffers"] = self.assign
        local_metadata["loading"] = self
        if module._load_state_dict_pre_hooks:  # noqa: SLF001
            self._fire_pre_hooks(module, entries, prefix, local_metadata)
        # asked for as by a strict load; what is not strict ignores the lists
        module._load_from_state_dict(  # noqa: SLF001
            entries, prefix, local_metadata, True, self.missing, self.unexpected, self.errors
        )
        below: defaultdict[str, dict[str, Any]] = defaultdict(dict)
        for key, value in entries.items():
            name, dot, _ = key[len(prefix) :].partition(".")
            if dot and key.startswith(prefix):
                below[name][key] = value
        for name, child in list(module._modules.items()):  # noqa: SLF001
            if child is not None:
                self._look_at(child, below[name], f"{prefix}{name}.")
        if module._load_state_dict_post_hooks:  # noqa: SLF001
            self._hooked.append((module, prefix))

    def _fire_pre_hooks(
        self, module: Any, entries: dict[str, Any], prefix: str, local_metadata: dict[str, Any]
    ) -> None:
        def call(hook: Entry, _: None) -> None:
            if hook.option != "own keys":
                first = (module,) if hook.option == "with module" else ()
                lists = self.missing, self.unexpected, self.errors
                hook.func(*first, entries, prefix, local_metadata, self.strict, *lists)
                return
            own = {key[len(prefix) :]: value for key, value in entries.items() if key.startswith(prefix)}
            hook.func(module, own, self.strict)
            others = {key: value for key, value in entries.items() if not key.startswith(prefix)}
            entries.clear()
            entries.update(others)
            entries.update((prefix + key, value) for key, value in own.items())

        hooks = module._load_state_dict_pre_hooks.snapshot()  # noqa: SLF001
        fire(hooks, call, None, "load-state-dict pre-hook", partial(saved_as, module, prefix))

    def _misfit(self, module: object) -> StateDictError | None:
        """Return the error for all mismatches, or None if they are no error."""
        lines = list(self.errors)
        if self.strict:
            for what, keys in (("Unexpected", self.unexpected), ("Missing", self.missing)):
                if keys:
                    names = ", ".join(f'"{key}"' for key in keys)
                    lines.insert(0, f"{what} key(s) in state_dict: {names}.")
        if not lines:
            return None
        report = "\n\t".join(lines)
        return StateDictError(
            f"Error(s) in loading state_dict for {type(module).__name__}, which is left unchanged:\n\t{report}"
        )

    def _fire_post_hooks(self) -> None:
        for module, prefix in self._hooked:
            hooks = module._load_state_dict_post_hooks.snapshot()  # noqa: SLF001
            call = partial(self._call_post_hook, module, prefix)
            fire(hooks, call, None, "load-state-dict post-hook", partial(saved_as, module, prefix))

    def _call_post_hook(self, module: Any, prefix: str, hook: Entry, _: None) -> None:
        if hook.option == "own keys":
            missing = self._take(self.missing, prefix)
            unexpected = self._take(self.unexpected, prefix)
            hook.func(module, missing, unexpected, self.strict)
            self.missing += [prefix + key for key in missing]
            self.unexpected += [prefix + key for key in unexpected]
        elif hook.func(module, HookKeys(self.missing, self.unexpected)) is not None:
            raise StateDictError("expected None to be returned: edit the lists in place instead")

    @staticmethod
    def _take(keys: list[str], prefix: str) -> list[str]:
        """Return the keys that begin with `prefix`, without it, after taking them out of `keys`."""
        own = [key[len(prefix) :] for key in keys if key.startswith(prefix)]
        keys[:] = [key for key in keys if not key.startswith(prefix)]
        return own
