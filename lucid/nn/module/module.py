"""Module: parameters, buffers and submodules under their names, called through its hooks."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any, NoReturn

from lucid.arguments import unfit
from lucid.autograd.base import TensorBase
from lucid.autograd.hooks.owning import KINDS, own_active_hooks
from lucid.autograd.hooks.table import ActiveHooks
from lucid.autograd.modes.reading import note_read, watching
from lucid.base.capture import changes
from lucid.errors import ArgumentError, SettingError
from lucid.nn.hooking.calling import call
from lucid.nn.hooking.tables import global_tables, registered_value
from lucid.nn.module.computing import compute_missing, without_computed
from lucid.nn.module.conversion import Conversion
from lucid.nn.module.paths import adopt, module_path
from lucid.nn.module.state import StateMethods
from lucid.nn.parameter import Buffer, Parameter

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


class ModuleAttributeError(AttributeError):
    """A module has no parameter, buffer, submodule or attribute of this name."""


class Module(Conversion, StateMethods):
    """The base of everything with parameters: a tree of modules, each a function with its own state.

    A subclass calls ``super().__init__()``, assigns parameters, buffers and modules to attributes, and defines
    `forward`. Calling the module runs `forward` with all hooks; ``module.forward(...)`` fires none.

    Attributes
    ----------
    training : bool
        Whether the module is in training mode; set it by `train` and `eval`.
    call_super_init : bool
        Whether the constructor hands its arguments on to that of the next class, for a module that is also something
        else; set it in the subclass. False unless set: then the constructor takes no arguments.

    Examples
    --------
    >>> import lucid
    >>> from lucid import nn
    >>> class Scale(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = nn.Parameter(lucid.tensor(2.0))
    ...
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> Scale()(lucid.ones(2)).tolist()
    [2.0, 2.0]
    """

    # The version of the layout of this class's state dict, kept in the state dict's metadata.
    _version: int = 1

    call_super_init: bool = False

    _active_hooks: ActiveHooks

    def __init__(self, *args: object, **kwargs: object) -> None:
        if not self.call_super_init and (args or kwargs):
            raise ArgumentError(
                f"{type(self).__name__}.__init__() takes no arguments, got {len(args)} args and the names "
                f"{[*kwargs]}: call super().__init__() without, or set call_super_init = True in the class"
            )
        # past __setattr__, which looks all of these up
        vars(self).update(
            training=True,
            _parameters={},
            _buffers={},
            _non_persistent_buffers_set=set(),
            _modules={},
            _active_hooks=ActiveHooks(self),
        )
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    __call__ = call

    if TYPE_CHECKING:
        # Subclasses give it what parameters they like.
        forward: Callable[..., Any]

    else:

        def forward(self, *_: object) -> NoReturn:
            """Compute the module's output, without hooks; every subclass defines it."""
            raise NotImplementedError(
                f'Module [{type(self).__name__}] is missing the required "forward" function: define forward(self, ...)'
            )

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter under `name`, the same as assigning it to the attribute.

        Parameters
        ----------
        name : str
            Not empty, without dots, not the name of another attribute.
        param : Parameter or None
            None keeps the name for a parameter that the module does without; it is not part of the `state_dict`.

        Raises
        ------
        AttributeError
            If ``Module.__init__`` has not been called.
        KeyError
            If the name is taken or not allowed.
        TypeError
            If `param` is neither.
        """
        self._check_name(name, "parameter", self._parameters_or_error())
        if param is not None and not isinstance(param, Parameter):
            raise ArgumentError(
                f"cannot assign '{type(param).__name__}' object to parameter '{name}': expected nn.Parameter or None"
            )
        if param is not None and param.grad_fn is not None:
            raise SettingError(
                f"cannot assign non-leaf Tensor to parameter '{name}': model parameters must be created explicitly; to "
                f"express '{name}' as a function of another Tensor, compute the value in forward()"
            )
        hooks = global_tables.parameter_registration
        _store(self._parameters, name, registered_value(hooks, self, name, param, "parameter", Parameter))

    def register_buffer(self, name: str, tensor: object, persistent: bool = True) -> None:
        """Add a tensor that is no parameter under `name`, such as running statistics.

        Parameters
        ----------
        name : str
            Not empty, without dots, not the name of another attribute.
        tensor : Tensor or None
            None keeps the name; it is not part of the `state_dict`.
        persistent : bool
            Whether it is part of the `state_dict`.

        Raises
        ------
        AttributeError
            If ``Module.__init__`` has not been called.
        KeyError
            If the name is taken or not allowed.
        TypeError
            If `tensor` is neither.
        """
        self._parameters_or_error()
        self._check_name(name, "buffer", self._buffers)
        if tensor is not None and not isinstance(tensor, TensorBase):
            raise ArgumentError(
                f"cannot assign '{type(tensor).__name__}' object to buffer '{name}': expected a Tensor or None"
            )
        hooks = global_tables.buffer_registration
        _store(self._buffers, name, registered_value(hooks, self, name, tensor, "buffer", TensorBase))
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a submodule under `name`, the same as assigning it to the attribute.

        Parameters
        ----------
        name : str
            Not empty, without dots, not the name of another attribute.
        module : Module or None
            None keeps the name.

        Raises
        ------
        KeyError
            If the name is taken or not allowed.
        TypeError
            If `module` is neither.
        """
        self._parameters_or_error()
        if module is not None and not isinstance(module, Module):
            raise unfit(module, "a Module or None", "module")
        self._check_name(name, "module", self._modules)
        module = registered_value(global_tables.module_registration, self, name, module, "module", Module)
        before = self._modules.get(name)
        self._modules[name] = module
        for tensor in [*before.parameters(), *before.buffers()] if before is not None and before is not module else ():
            changes.replace(tensor)
        adopt(self, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Add a submodule under `name`: PyTorch's other name for `add_module`."""
        self.add_module(name, module)

    def _parameters_or_error(self) -> dict[str, Any]:
        parameters = vars(self).get("_parameters")
        if parameters is None:
            raise AttributeError(
                f"cannot assign to {type(self).__name__} before Module.__init__() call: call super().__init__() first"
            )
        return parameters

    def _check_name(self, name: object, what: str, table: dict[str, Any]) -> None:
        """Raise unless `name` can be given to a new entry of `table`."""
        if not isinstance(name, str):
            raise ArgumentError(f"{what} name should be a string, got {type(name).__name__}")
        if "." in name:
            raise KeyError(f'{what} name can\'t contain ".", got {name!r}')
        if not name:
            raise KeyError(f'{what} name can\'t be empty string ""')
        if name not in table and self._is_taken(name):
            raise KeyError(f"attribute '{name}' already exists: choose another name for the {what}, or delete it first")

    def _is_taken(self, name: str) -> bool:
        """Return whether the module itself has an attribute `name`; a property of its class does not count."""
        # not by hasattr: __getattr__ of a subclass may look into the module that is about to be stored
        state = vars(self)
        if name in state or any(name in state[table] for table in ("_parameters", "_buffers", "_modules")):
            return True
        kind = next((kind for kind in type(self).__mro__ if name in kind.__dict__), None)
        return kind is not None and not isinstance(kind.__dict__[name], property)

    def __getattr__(self, name: str) -> Any:
        state = vars(self)
        for table in ("_parameters", "_buffers", "_modules"):
            entries = state.get(table)
            if entries is not None and name in entries:
                value = entries[name]
                if watching and isinstance(value, TensorBase):
                    where = functools.partial(_read_as, self, table, name)
                    note_read(value, entries, name, where, trained=table == "_parameters")
                return value
        raise ModuleAttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        state = vars(self)
        if isinstance(value, Parameter):
            self._parameters_or_error()
            with self._in_place_of(name, "_parameters"):
                self.register_parameter(name, value)
            return
        if isinstance(value, Module):
            self._parameters_or_error()
            with self._in_place_of(name, "_modules"):
                self.add_module(name, value)
            return
        parameters = state.get("_parameters")
        if parameters is not None and name in parameters:
            if value is not None:
                raise ArgumentError(
                    f"cannot assign '{type(value).__name__}' as parameter '{name}' (nn.Parameter or None expected): to "
                    "change its values use .data or copy_() under lucid.no_grad()"
                )
            self.register_parameter(name, None)
        elif parameters is not None and name in state["_modules"]:
            if value is not None:
                raise ArgumentError(
                    f"cannot assign '{type(value).__name__}' as child module '{name}' (nn.Module or None expected)"
                )
            self.add_module(name, None)
        elif isinstance(value, Buffer) or (parameters is not None and name in state["_buffers"]):
            self._parameters_or_error()
            if value is not None and not isinstance(value, TensorBase):
                raise ArgumentError(
                    f"cannot assign '{type(value).__name__}' as buffer '{name}' (Buffer, Tensor or None expected)"
                )
            persistent = (
                value.persistent if isinstance(value, Buffer) else name not in state["_non_persistent_buffers_set"]
            )
            with self._in_place_of(name, "_buffers"):
                self.register_buffer(name, value, persistent)
        elif name in KINDS:
            getattr(type(self), name).put(self, value)
        else:
            object.__setattr__(self, name, value)
            if name == "__dict__":
                own_active_hooks(self)

    def __getstate__(self) -> dict[str, Any]:
        return without_computed(vars(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        own_active_hooks(self)
        compute_missing(self)
        # a copy's hook tables know nothing of the original's parent
        for child in self._modules.values():
            adopt(self, child)

    @contextlib.contextmanager
    def _in_place_of(self, name: str, table: str) -> Generator[None]:
        """Take `name` out of all but `table`, for an entry that the block makes there; an error undoes that."""
        state = vars(self)
        others: list[dict[str, Any]] = [
            state[each] for each in ("_parameters", "_buffers", "_modules") if each != table and name in state[each]
        ]
        # whole tables, as their order counts
        before = [dict(entries) for entries in others]
        persistence = set(self._non_persistent_buffers_set)
        attribute = {name: state.pop(name)} if name in state else {}
        for entries in others:
            del entries[name]
        if table != "_buffers":
            self._non_persistent_buffers_set.discard(name)
        try:
            yield
        except BaseException:
            state.update(attribute)
            for entries, old in zip(others, before, strict=True):
                entries.clear()
                entries.update(old)
            self._non_persistent_buffers_set.update(persistence)
            raise

    def __delattr__(self, name: str) -> None:
        state = vars(self)
        for table in ("_parameters", "_buffers", "_modules"):
            if name in state.get(table, ()):
                del state[table][name]
                state["_non_persistent_buffers_set"].discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*object.__dir__(self), *self._parameters, *self._buffers, *self._modules}
        # names that are no identifiers, such as Sequential's numbers, cannot be typed after a dot
        return sorted(name for name in names if not name[:1].isdigit())

    def extra_repr(self) -> str:
        """Return the text between the brackets of the module's `repr`: its settings; nothing by default."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        settings = self.extra_repr()
        lines = settings.split("\n") if settings else []
        children = [f"({name}): {indented(repr(module))}" for name, module in self._modules.items()]
        every = lines + children
        if not every:
            return f"{self._get_name()}()"
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({lines[0]})"
        return f"{self._get_name()}(\n  " + "\n  ".join(every) + "\n)"


def _read_as(module: Module, table: str, name: str) -> str:
    """Return a description of the parameter or buffer of a module that was read."""
    return f"{'parameter' if table == '_parameters' else 'buffer'} '{name}' of {module_path(module)}"


def indented(text: str) -> str:
    """Return `text` with its lines after the first moved two columns to the right."""
    return text.replace("\n", "\n  ")


def _store(table: dict[str, Any], name: str, tensor: Any) -> None:
    """Enter a parameter or buffer; graphs that use the one before are told."""
    before = table.get(name)
    table[name] = tensor
    if before is not None and before is not tensor:
        changes.replace(before)
