"""Calls of a module with other parameters and buffers than its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.arguments import checked
from lucid.errors import ArgumentError, SettingError, StateDictError
from lucid.public import publish as _publish

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lucid.nn.module.module import Module
    from lucid.tensor import Tensor

__all__ = ["functional_call"]


def _places(module: Module) -> dict[str, tuple[dict[str, Any], str]]:
    """Return for each dotted name of a parameter or buffer the table that holds it, and its name there."""
    return {
        f"{path}.{name}" if path else name: (table, name)
        for path, inner in module.named_modules(remove_duplicate=False)
        for table in (vars(inner)["_parameters"], vars(inner)["_buffers"])
        for name, value in table.items()
        if value is not None
    }


@checked
def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Return ``module(*args, **kwargs)`` with other parameters and buffers; its own are restored at the end.

    Gradients flow to what is given. A buffer that the call replaces is replaced in the dictionary, one that it changes
    in place is changed there.

    Parameters
    ----------
    module : Module
    parameter_and_buffer_dicts : dict of Tensor, or sequence of dict
        By the dotted names of parameters and buffers, of which those that are left out are the module's.
    args : object, optional
        A tuple of arguments, or one argument.
    kwargs : dict, optional
        Arguments by name.
    tie_weights : bool
        Whether a tensor that the module has in several places is replaced in all of them, where one is given.
    strict : bool
        Whether all of the module's have to be given, and no others.

    Raises
    ------
    StateDictError
        In strict mode, if the module has no tensor of a name, or one is missing.
    SettingError
        If a name is in two dictionaries, or tied tensors get different values.

    Examples
    --------
    >>> import lucid
    >>> from lucid import nn
    >>> layer = nn.Linear(2, 1)
    >>> given = {"weight": lucid.ones(1, 2), "bias": lucid.zeros(1)}
    >>> lucid.func.functional_call(layer, given, lucid.tensor([1.0, 2.0]))
    tensor([3.])
    """
    several = not hasattr(parameter_and_buffer_dicts, "keys")
    dicts: list[Any] = list(parameter_and_buffer_dicts) if several else [parameter_and_buffer_dicts]
    replacements: dict[str, Any] = {}
    for each in dicts:
        if not hasattr(each, "keys"):
            raise ArgumentError(
                f"functional_call: parameter_and_buffer_dicts: expected dictionaries, got {type(each).__name__}"
            )
        twice = replacements.keys() & each.keys()
        if twice:
            raise SettingError(
                f"functional_call: {sorted(twice)} appeared in multiple dictionaries: give each name once"
            )
        replacements.update(each)
    places = _places(module)
    known = {name: value for name, value in replacements.items() if name in places}
    wanted = _tied(places, known) if tie_weights else known
    unknown, missing = sorted(replacements.keys() - known.keys()), [name for name in places if name not in wanted]
    if strict and (unknown or missing):
        raise StateDictError(
            f"functional_call: strict=True: {type(module).__name__} has no parameter or buffer {unknown}, and without "
            f"values are {missing}"
        )
    before = {name: places[name][0][places[name][1]] for name in wanted}
    try:
        for name, value in wanted.items():
            table, key = places[name]
            table[key] = value
        return module(*(() if args is None else args if isinstance(args, tuple) else (args,)), **(kwargs or {}))
    finally:
        for name, value in before.items():
            table, key = places[name]
            for each in dicts:
                if name in each and key in table and table[key] is not each[name]:
                    each[name] = table[key]
            table[key] = value


def _tied(places: dict[str, tuple[dict[str, Any], str]], replacements: dict[str, Any]) -> dict[str, Any]:
    """Return the replacements, also under the other names of the tensors that they replace."""
    by_tensor: dict[int, Any] = {}
    for name, value in replacements.items():
        table, key = places[name]
        if by_tensor.setdefault(id(table[key]), value) is not value:
            raise SettingError(
                f"functional_call: {name!r} is tied to another name of the same tensor, which has another value: "
                "give one of them, or pass tie_weights=False"
            )
    return {
        name: replacements[name] if name in replacements else by_tensor[id(table[key])]
        for name, (table, key) in places.items()
        if name in replacements or id(table[key]) in by_tensor
    }


_publish(globals(), functional_call="lucid.func")
