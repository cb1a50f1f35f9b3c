"""``grad_fn._saved_self`` and ``grad_fn._raw_saved_self``: a node's saved values under PyTorch's names."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import is_tuple
from lucid.autograd.hooks.firing import check_callable
from lucid.autograd.recording.primitive_node import PrimitiveNode
from lucid.autograd.recording.saved import Packed, PackedTuple, SavedTensorHooks, saved_tensor
from lucid.autograd.recording.views import detached
from lucid.errors import HookError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.autograd.recording.plan import Rule
    from lucid.autograd.recording.primitive import Primitive

# PyTorch's names of what derivative rules name, where an op does not say others.
NAMES = {"x": "self", "a": "self", "start": "self", "b": "other", "t": "target", "out": "result"}


def node_class(primitive: Primitive) -> type[PrimitiveNode]:
    """Return a new class for the nodes of `primitive`, under PyTorch's name, with the attributes of its rules."""
    title = "".join(part.capitalize() for part in primitive.name.split("_"))
    made = type(f"{title}Backward0", (PrimitiveNode,), {"__slots__": (), "primitive": primitive})
    for rule in primitive.rules:
        expose(primitive, made, rule)
    return made


def expose(primitive: Primitive, node_type: type[Any], rule: Rule) -> None:
    """Give the nodes of `primitive` the attributes for the parameters of a rule."""
    for argument in rule.arguments:
        name = primitive.saved_as.get(argument) or NAMES.get(argument, argument)
        if argument in primitive.settings:
            setattr(node_type, f"_saved_{name}", _Setting(argument))
        elif argument in primitive.inputs or argument in primitive.outputs:
            setattr(node_type, f"_saved_{name}", _Saved(argument, f"_raw_saved_{name}"))
            setattr(node_type, f"_raw_saved_{name}", _RawSaved(argument, f"_raw_saved_{name}"))


class SavedTensor:
    """One tensor that a node keeps for its backward.

    Parameters
    ----------
    name : str
        For messages.
    read : callable
        Returns what is kept: an array, a number, None, or what a pack hook made of it.
    unpack : callable
        Returns it as a tensor.
    write : callable
        Stores what a pack hook returned instead.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.ones(2, requires_grad=True)
    >>> y = x * x
    >>> y.grad_fn._raw_saved_self.register_hooks(lambda t: t.tolist(), lambda values: lucid.tensor(values) * 5)
    >>> y.sum().backward()
    >>> x.grad
    tensor([6., 6.])
    """

    __slots__ = ("_name", "_read", "_write", "unpack")

    def __init__(
        self, name: str, read: Callable[[], Any], unpack: Callable[[], Any], write: Callable[[Packed], None]
    ) -> None:
        self._name = name
        self._read = read
        self._write = write
        self.unpack = unpack

    def register_hooks(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        """Keep the result of ``pack_hook(tensor)``, and use ``unpack_hook`` of it in backward.

        Parameters
        ----------
        pack_hook, unpack_hook : callable
            As in `saved_tensors_hooks`.

        Raises
        ------
        HookTypeError
            If one cannot be called.
        HookError
            If no tensor is kept here, or it has hooks already.
        GraphError
            If it was freed.
        """
        check_callable(pack_hook, f"{self._name}.register_hooks: pack_hook")
        check_callable(unpack_hook, f"{self._name}.register_hooks: unpack_hook")
        value = self._read()
        if isinstance(value, Packed):
            raise HookError(
                f"{self._name}: calling register_hooks on a saved tensor whose hooks have already been set: only one "
                "pair of hooks is allowed at a time"
            )
        if is_number(value):
            raise HookError(f"{self._name}: calling register_hooks on a saved tensor with value {value} is forbidden")
        self._write(Packed(SavedTensorHooks(pack_hook, unpack_hook), detached(self.unpack())))


def is_number(value: Any) -> bool:
    """Return whether the value kept instead of a tensor is a number or None."""
    return value is None or isinstance(value, int | float | complex)


class _Attribute:
    """The attribute of a node's class for one argument of its rules."""

    __slots__ = ("argument", "name")

    def __init__(self, argument: str, name: str = "") -> None:
        self.argument = argument
        self.name = name

    def __get__(self, node: Any, owner: type) -> Any:
        return self if node is None else self.value(node)

    def value(self, node: Any) -> Any:
        """Return it."""
        raise NotImplementedError


class _Setting(_Attribute):
    """A setting of the call; None if the node did not need it."""

    __slots__ = ()

    def value(self, node: Any) -> Any:
        """Return it."""
        plan, _, _, values = node.kept
        source = ("setting", self.argument)
        return values[plan.values.index(source)] if source in plan.values else None


class _RawSaved(_Attribute):
    """An operand or an output; None for one that the node did not need."""

    __slots__ = ()

    def value(self, node: Any) -> Any:
        """Return its `SavedTensor`, a tuple of them for an operand that stands for several."""
        primitive, plan = node.primitive, node.kept[0]
        if self.argument in primitive.outputs:
            output = primitive.outputs.index(self.argument)
            kept = len(plan.saves) + plan.saves_outs.index(output) if output in plan.saves_outs else None
            return self.at(node, kept)
        positions = primitive.positions(self.argument, len(node.edges))
        raw = tuple(self.at(node, plan.saves.index(p) if p in plan.saves else None) for p in positions)
        return raw if primitive.variadic and self.argument == primitive.inputs[-1] else raw[0]

    def at(self, node: Any, k: int | None) -> SavedTensor:
        """Return the `SavedTensor` of slot `k` of `node`."""
        return SavedTensor(
            f"{node.name()}.{self.name}", partial(_read, node, k), partial(_unpack, node, k), partial(_write, node, k)
        )


class _Saved(_RawSaved):
    """The same, as a tensor."""

    __slots__ = ()

    def value(self, node: Any) -> Any:
        """Return it, a tuple for an operand that stands for several."""
        raw = super().value(node)
        return tuple([each.unpack() for each in raw]) if is_tuple(raw) else raw.unpack()


def _read(node: Any, k: int | None) -> Any:
    saved = node.check()
    return None if k is None else saved[k]


def _unpack(node: Any, k: int | None) -> Any:
    value = _read(node, k)
    if k is None or is_number(value):
        return value
    pair = _pair(node, k)
    return saved_tensor(value, node.edge_of_saved(k), [0] if pair is None else node.kept[2][pair])


def _pair(node: Any, k: int) -> int | None:
    """Return the position of the version counter of slot `k`; None if versions are not kept."""
    _, saved, versions, _ = node.kept
    return 2 * sum(not is_number(value) for value in saved[:k]) if versions else None


def _write(node: Any, k: int | None, packed: Packed) -> None:
    plan, saved, versions, values = node.kept
    pair = _pair(node, k or 0)
    if pair is not None:
        # what a hook has stored cannot be changed in place
        versions = (*versions[:pair], [0], 0, *versions[pair + 2 :])
    node.kept = plan, PackedTuple((*saved[:k], packed, *saved[(k or 0) + 1 :])), versions, values
