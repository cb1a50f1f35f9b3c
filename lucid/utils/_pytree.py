"""Nested containers as flat lists of their leaves and back, under the names of PyTorch that libraries use.

Walked are lists, tuples, named tuples, dictionaries, ordered ones, default ones, deques, and what
`register_pytree_node` adds, each of exactly this type; everything else is a leaf, None and dataclasses too.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from lucid.arguments import shown
from lucid.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Apart = Callable[[Any], tuple[Iterable[Any], Any]]
    Together = Callable[[list[Any], Any], Any]

__all__ = [
    "TreeSpec", "register_pytree_node", "tree_flatten", "tree_leaves", "tree_map", "tree_map_only", "tree_structure",
    "tree_unflatten",
]  # fmt: skip


def _entries(value: Any) -> tuple[Iterable[Any], None]:
    return value, None


def _items(value: Any) -> tuple[Iterable[Any], list[Any]]:
    return value.values(), list(value)


# By type of container: how it comes apart, into entries and a context, and how they come together again.
_APART: dict[type, Apart] = {
    list: _entries,
    tuple: _entries,
    dict: _items,
    OrderedDict: _items,
    defaultdict: lambda value: (value.values(), (value.default_factory, list(value))),
    deque: lambda value: (value, value.maxlen),
}
_TOGETHER: dict[type, Together] = {
    list: lambda entries, _: entries,
    tuple: lambda entries, _: tuple(entries),
    dict: lambda entries, keys: dict(zip(keys, entries, strict=True)),
    OrderedDict: lambda entries, keys: OrderedDict(zip(keys, entries, strict=True)),
    defaultdict: lambda entries, context: defaultdict(context[0], zip(context[1], entries, strict=True)),
    deque: lambda entries, most: deque(entries, maxlen=most),
}
# One fits another of the same keys, in whatever order.
_MAPPINGS = {dict, OrderedDict, defaultdict}


@dataclass(frozen=True)
class TreeSpec:
    """The structure of a tree: equal for trees of one structure.

    Attributes
    ----------
    type : type or None
        Of the container; None of a leaf.
    context : object
        What else makes the container, such as the keys of a dictionary.
    children_specs : tuple of TreeSpec
        Of the entries.
    """

    type: type | None
    context: Any
    children_specs: tuple[TreeSpec, ...]

    def is_leaf(self) -> bool:
        """Tell whether this is a leaf."""
        return self.type is None

    @property
    def num_leaves(self) -> int:
        """How many leaves there are."""
        return 1 if self.type is None else sum(each.num_leaves for each in self.children_specs)


_LEAF = TreeSpec(None, None, ())


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_fn: Callable[[list[Any], Any], Any],
    **_settings: object,
) -> None:
    """Have containers of type `cls` walked: `flatten_fn` gives entries and a context, `unflatten_fn` takes both."""
    if cls in _APART:
        raise ArgumentError(f"register_pytree_node: {cls.__name__} is walked already")
    _APART[cls], _TOGETHER[cls] = flatten_fn, unflatten_fn


def _type_of(value: Any) -> type[Any]:
    return cast("type[Any]", type(value))


def _apart_of(value: Any) -> Apart | None:
    apart = _APART.get(_type_of(value))
    return _entries if apart is None and isinstance(value, tuple) and hasattr(_type_of(value), "_make") else apart


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeSpec]:
    """Return the leaves of `tree` in order, and its structure; nodes with a true `is_leaf` are leaves too.

    >>> from lucid.utils._pytree import tree_flatten, tree_unflatten
    >>> leaves, structure = tree_flatten({"a": [1, 2], "b": (3, None)})
    >>> leaves, tree_unflatten([10, 20, 30, 40], structure)
    ([1, 2, 3, None], {'a': [10, 20], 'b': (30, 40)})
    """
    leaves: list[Any] = []

    def walk(value: Any) -> TreeSpec:
        apart = None if is_leaf is not None and is_leaf(value) else _apart_of(value)
        if apart is None:
            leaves.append(value)
            return _LEAF
        entries, context = apart(value)
        return TreeSpec(_type_of(value), context, tuple([walk(entry) for entry in entries]))

    return leaves, walk(tree)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """Return a tree of the structure `treespec` with other leaves."""
    values = list(leaves)
    if len(values) != treespec.num_leaves:
        raise ShapeError(f"tree_unflatten: leaves: expected {treespec.num_leaves}, got {len(values)}")
    following = iter(values)

    def build(spec: TreeSpec) -> Any:
        if spec.type is None:
            return next(following)
        entries = [build(each) for each in spec.children_specs]
        together = _TOGETHER.get(spec.type)
        if together is None:
            named: Any = spec.type
            return named._make(entries)
        return together(entries, spec.context)

    return build(treespec)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """Return the leaves of `tree` in order."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """Return the structure of `tree`."""
    return tree_flatten(tree, is_leaf)[1]


def _below(spec: TreeSpec, tree: Any) -> list[Any]:
    """Return the subtrees of `tree` in the places of the leaves of `spec`."""
    if spec.type is None:
        return [tree]
    apart = _apart_of(tree)
    mappings = spec.type in _MAPPINGS and _type_of(tree) in _MAPPINGS
    if apart is None or not (mappings or _type_of(tree) is spec.type):
        raise ArgumentError(f"tree_map: expected a {spec.type.__name__} in each tree, got {shown(tree)}")
    if mappings:
        keys = spec.context[1] if spec.type is defaultdict else spec.context
        if set(tree) != set(keys):
            raise ArgumentError(f"tree_map: expected the keys {keys} in each tree, got {list(tree)}")
        entries = [tree[key] for key in keys]
    else:
        entries = list(apart(tree)[0])
    if len(entries) != len(spec.children_specs):
        raise ShapeError(f"tree_map: expected {len(spec.children_specs)} entries in each tree, got {len(entries)}")
    return [leaf for each, entry in zip(spec.children_specs, entries, strict=True) for leaf in _below(each, entry)]


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Return `tree` with each leaf replaced by `func` of it and of the subtrees in its place in each of `rests`.

    >>> from lucid.utils._pytree import tree_map
    >>> tree_map(lambda a, b: a + b, [1, {"x": 2}], [10, {"x": 20}])
    [11, {'x': 22}]
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    return tree_unflatten(map(func, leaves, *[_below(spec, rest) for rest in rests]), spec)


def tree_map_only(
    type_or_types: type | tuple[type, ...] | Callable[[Any], bool],
    func: Callable[[Any], Any],
    tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Return `tree` with `func` applied to the leaves of these types, or those that the callable accepts."""

    def changed(leaf: Any) -> Any:
        chosen = isinstance(leaf, type_or_types) if isinstance(type_or_types, type | tuple) else type_or_types(leaf)
        return func(leaf) if chosen else leaf

    return tree_map(changed, tree, is_leaf=is_leaf)
