"""Parameters and buffers as functions of others: a module computes its weight anew from the trained tensors.

`register_parametrization` puts the tensor that was there under `module.parametrizations.weight.original`, and makes the
module one of a class that computes ``module.weight`` from it; other modules of its class stay as they are.
"""

from __future__ import annotations

import contextlib
import functools
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, cast

from lucid.arguments import checked, shown
from lucid.autograd.base import TensorBase, describe
from lucid.autograd.modes.state import no_grad
from lucid.errors import ArgumentError, DtypeError, SettingError
from lucid.nn.layers.container import ModuleDict, ModuleList
from lucid.nn.module.module import Module
from lucid.nn.parameter import Parameter

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from lucid.tensor import Tensor

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
    "transfer_parametrizations_and_params", "type_before_parametrizations",
]  # fmt: skip

_values: ContextVar[dict[Any, Any] | None] = ContextVar("parametrized values", default=None)


@contextlib.contextmanager
def cached() -> Generator[None]:
    """Return a context manager that computes each parametrized tensor once, and forgets it at the end.

    It holds for the thread that enters it. What is assigned to such a tensor meanwhile is seen at once.

    Examples
    --------
    >>> from lucid import nn
    >>> from lucid.nn.utils import parametrize, parametrizations
    >>> layer = parametrizations.weight_norm(nn.Linear(2, 2))
    >>> with parametrize.cached():
    ...     layer.weight is layer.weight
    True
    """
    token = _values.set({}) if _values.get() is None else None
    try:
        yield
    finally:
        if token is not None:
            _values.reset(token)


def _register(module: Module, name: str, tensor: Any) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _like(what: str, got: Any, shape: tuple[int, ...], dtype: object) -> None:
    """Raise a SettingError unless something is a tensor of that shape and dtype."""
    tensor: Any = got
    if not isinstance(got, TensorBase):
        raise SettingError(f"{what} must return a tensor, got {type(got).__name__}")
    if (tuple(tensor.shape), tensor.dtype) != (tuple(shape), dtype):
        raise SettingError(
            f"{what} may not change shape or dtype, unless unsafe=True: expected shape {list(shape)} of {dtype}, got "
            f"{describe(got)}"
        )


@contextlib.contextmanager
def _not_implemented() -> Generator[None]:
    """Let a parametrization say that it has no inverse; a dtype that an inverse of it refuses is an error."""
    try:
        yield
    except DtypeError:
        raise
    except NotImplementedError:
        pass


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, the first to be registered first, and the tensors that they compute it from.

    That is `original`, or where the last `right_inverse` returns several tensors, `original0`, `original1` and so on:
    parameters if the tensor was one, otherwise buffers. `register_parametrization` makes it.
    """

    original: Any

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if not modules:
            raise SettingError("ParametrizationList: expected at least one module, got none")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = tuple(original.shape), original.dtype
        value: Any = original
        with no_grad():
            for module in reversed(list(self)):
                inverse = getattr(module, "right_inverse", None)
                if inverse is not None:
                    with _not_implemented():
                        value = inverse(value)
        self.is_tensor = isinstance(value, TensorBase)
        values = self._checked(value, 1 if self.is_tensor else None)
        self.ntensors = len(values)
        if self.is_tensor:
            (new,) = values
            if (new.dtype, new.device) != (dtype, original.device):
                raise SettingError(
                    "right_inverse: expected one tensor of the dtype and device of the original, "
                    f"{describe(original)}, got {describe(new)}"
                )
            parts = {"original": original}
        else:
            trained = isinstance(original, Parameter)
            parts = {f"original{i}": Parameter(v) if trained else v.detach() for i, v in enumerate(values)}
        for name, part in parts.items():
            _register(self, name, part.requires_grad_(original.requires_grad))
        before = original.detach() if self.is_tensor else None
        try:
            if self.is_tensor:
                self._set([original], values)
            if not unsafe:
                _like("a parametrization", self(), shape, dtype)
        except BaseException:
            if before is not None:
                original.data = before
            raise

    def _originals(self) -> list[Any]:
        """Return the tensors that the parametrized one is computed from."""
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{i}") for i in range(self.ntensors)]

    @staticmethod
    def _checked(value: object, count: int | None) -> list[Any]:
        """Return the tensors that `right_inverse` has returned, after a check of their number."""
        values = list(cast("Sequence[Any]", value if isinstance(value, tuple | list) else (value,)))
        if not values or not all(isinstance(part, TensorBase) for part in values):
            raise SettingError(
                f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...), got {shown(value)}"
            )
        if count is not None and len(values) != count:
            raise SettingError(f"'right_inverse' must return {count} tensors, as at first, got {len(values)}")
        return values

    @staticmethod
    def _set(originals: list[Any], values: list[Any]) -> None:
        for original, value in zip(originals, values, strict=True):
            if value is not original:
                original.data = value

    def right_inverse(self, value: Tensor) -> None:
        """Set the original tensors by the parametrizations' `right_inverse`, so that the computed one becomes `value`.

        Raises
        ------
        RuntimeError
            If one of them has none.
        SettingError
            If what they return has another dtype or is not as many tensors as there are.
        """
        new: Any = value
        with no_grad():
            for module in reversed(list(self)):
                inverse = getattr(module, "right_inverse", None)
                if inverse is None:
                    raise SettingError(
                        f"parametrization {type(module).__name__} does not implement right_inverse: define it, or "
                        "change what the tensor is computed from"
                    )
                new = inverse(new)
            originals, values = self._originals(), self._checked(new, self.ntensors)
            for old, part in zip(originals, values, strict=True):
                if old.dtype != part.dtype:
                    raise SettingError(f"'right_inverse' must return {old.dtype}, as at first, got {describe(part)}")
            self._set(originals, values)
        if (values_now := _values.get()) is not None:
            values_now.pop(self, None)

    def forward(self) -> Any:
        """Return the tensor, computed anew."""
        first, *others = self
        out = first(*self._originals())
        for module in others:
            out = module(out)
        return out

    def value(self) -> Any:
        """Return the tensor; inside of `cached` the same each time."""
        values = _values.get()
        if values is None:
            return self()
        if self not in values:
            values[self] = self()
        return values[self]


class _Parametrized(Module):
    """The base of a module's class from its first parametrization on."""

    parametrizations: Any

    def __getattr__(self, name: str) -> Any:
        own = _parametrizations(self)
        return super().__getattr__(name) if own is None or name not in own else own[name].value()

    def __setattr__(self, name: str, value: Any) -> None:
        own = _parametrizations(self)
        if own is None or name not in own:
            super().__setattr__(name, value)
        else:
            own[name].right_inverse(value)

    def _is_taken(self, name: str) -> bool:
        own = _parametrizations(self)
        return (own is not None and name in own) or super()._is_taken(name)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuilt, (type_before_parametrizations(self),), self.__getstate__()


def _parametrizations(module: Module) -> ModuleDict | None:
    """Return the parametrizations of a module by the names of its tensors, if it has any."""
    lists = vars(module).get("_modules", {}).get("parametrizations")
    return lists if isinstance(lists, ModuleDict) else None


@functools.cache
def _parametrized(kind: type[Module]) -> type[Module]:
    return type(f"Parametrized{kind.__name__}", (_Parametrized, kind), {"__module__": kind.__module__})


def _rebuilt(kind: type[Module]) -> Module:
    """Return an empty module of the class with parametrizations, for copies and pickles to fill."""
    return object.__new__(_parametrized(kind))


@checked
def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Return the module after making one of its tensors the result of ``parametrization(original)``.

    On a tensor that has one already, it is applied to the result of those. The parametrization gets the module's mode,
    and what it is applied to keeps its place in optimizers where `right_inverse` returns one tensor.

    Parameters
    ----------
    module : Module
    tensor_name : str
        The name of a parameter or buffer.
    parametrization : Module
        Its `right_inverse`, where it is defined, gives what the tensor is computed from at first, one tensor or
        several, and when something is assigned to the tensor.
    unsafe : bool
        Whether it may change the shape or dtype of the tensor, and is not tried out here.

    Raises
    ------
    SettingError
        If the module has no tensor of this name, or it is not tried out with success. Nothing is changed then.

    Examples
    --------
    >>> import lucid
    >>> from lucid import nn
    >>> class Symmetric(nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).T
    >>> layer = nn.utils.parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.T).all())
    True
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'parametrizations.weight.original']
    """
    parametrization.train(module.training)
    own: Any = _parametrizations(module)
    if own is not None and tensor_name in own:
        if not unsafe:
            before = getattr(module, tensor_name)
            after = parametrization(before)
            _like("a parametrization", after, before.shape, before.dtype)
            inverse = getattr(parametrization, "right_inverse", None)
            if inverse is not None:
                with _not_implemented():
                    _like("right_inverse", inverse(after), before.shape, before.dtype)
        own[tensor_name].append(parametrization)
        own[tensor_name].unsafe |= unsafe
        return module
    tables = vars(module)["_parameters"], vars(module)["_buffers"]
    original = next((table[tensor_name] for table in tables if table.get(tensor_name) is not None), None)
    if original is None:
        raise SettingError(
            f"{type(module).__name__} does not have a parameter, a buffer or a parametrized element with name "
            f"{tensor_name!r}"
        )
    made = ParametrizationList([parametrization], original, unsafe)
    delattr(module, tensor_name)
    if own is None:
        module.parametrizations = own = ModuleDict()
        object.__setattr__(module, "__class__", _parametrized(type(module)))
    own[tensor_name] = made
    made.train(module.training)
    return module


@checked
def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return whether a module has a parametrization, of the tensor `tensor_name` or without one of any."""
    own = _parametrizations(module)
    return own is not None and (len(own) > 0 if tensor_name is None else tensor_name in own)


@checked
def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Return the module after making one of its tensors a parameter or buffer again, of the value that it has.

    Without `leave_parametrized` it gets the value of what it was computed from, if that is one tensor.

    Raises
    ------
    SettingError
        If the tensor has no parametrization, or was computed from several tensors, which are not left.

    Examples
    --------
    >>> from lucid import nn
    >>> from lucid.nn.utils import parametrize, parametrizations
    >>> layer = parametrizations.weight_norm(nn.Linear(2, 2))
    >>> parametrize.remove_parametrizations(layer, "weight")
    Linear(in_features=2, out_features=2, bias=True)
    """
    if not is_parametrized(module, tensor_name):
        raise SettingError(f"{type(module).__name__} does not have a parametrization on {tensor_name!r}")
    own: Any = _parametrizations(module)
    made: ParametrizationList = own[tensor_name]
    if made.is_tensor:
        original = made.original
        if leave_parametrized:
            with no_grad():
                original.data = made.value()
    elif leave_parametrized:
        value = made.value()
        original = Parameter(value) if value.requires_grad else value.detach()
    else:
        raise SettingError(
            "leave_parametrized=False: cannot leave a tensor that is computed from several tensors unparametrized"
        )
    del own[tensor_name]
    if not len(own):
        kind = type_before_parametrizations(module)
        del module.parametrizations
        object.__setattr__(module, "__class__", kind)
    _register(module, tensor_name, original)
    return module


@checked
def type_before_parametrizations(module: Module) -> type[Module]:
    """Return the class of a module, without the one that its parametrizations gave it."""
    return type(module).__bases__[1] if isinstance(module, _Parametrized) else type(module)


@checked
def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Return `to_module` with the parametrizations of `from_module`, of one tensor or of all, shared by both.

    A tensor that it has not is made for it; what is computed from becomes that of `from_module`.

    Raises
    ------
    ArgumentError
        If `from_module` has no parametrization of the tensor.
    """
    own: Any = _parametrizations(from_module) or {}
    for name in list(own) if tensor_name is None else [tensor_name]:
        if name not in own:
            raise ArgumentError(f"{type(from_module).__name__} does not have a parametrization on {name!r}")
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for parametrization in own[name]:
            register_parametrization(to_module, name, parametrization)
        theirs: Any = _parametrizations(to_module)
        tables: list[dict[str, Any]] = [vars(own[name])["_parameters"], vars(own[name])["_buffers"]]
        for part, tensor in [entry for table in tables for entry in table.items()]:
            setattr(theirs[name], part, tensor)
    return to_module
