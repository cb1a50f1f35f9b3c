"""Several modules as one: their parameters and buffers stacked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from lucid.arguments import shown, unfit
from lucid.errors import SettingError
from lucid.nn.module.module import Module
from lucid.ops.shape.joining import stack

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lucid.tensor import Tensor


def stack_module_state(models: Sequence[Module] | Module) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the parameters of several modules, and their buffers, stacked along a first dimension, by their names.

    Parameters are leaves of their own, and require grad where those of the modules do.

    Parameters
    ----------
    models : sequence of Module, or ModuleList
        At least one, of one class, all of them in training mode or none.

    Raises
    ------
    SettingError
        If there is none, or they differ in class, mode, or in whether a parameter requires grad.

    Examples
    --------
    >>> import lucid
    >>> from lucid import nn
    >>> models = [nn.Linear(2, 3) for _ in range(4)]
    >>> parameters, buffers = lucid.func.stack_module_state(models)
    >>> parameters["weight"].shape, buffers
    (lucid.Size([4, 3, 2]), {})
    >>> def call(parameters, x):
    ...     return lucid.func.functional_call(models[0], parameters, x)
    >>> lucid.vmap(call, in_dims=(0, None))(parameters, lucid.ones(2)).shape
    lucid.Size([4, 3])
    """
    if not isinstance(models, Module | tuple | list):
        raise unfit(models, "a sequence of Modules", "models")
    modules: list[Any] = [*cast("Iterable[Any]", models)]
    for model in modules:
        if not isinstance(model, Module):
            raise unfit(models, f"a sequence of Modules, of which one is {shown(model)}", "models")
    if not modules:
        raise SettingError("stack_module_state: expected at least one model, got 0")
    kinds: set[type[Any]] = {type(model) for model in modules}
    if len(kinds) > 1:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise SettingError(f"stack_module_state: expected all models to be of the same class, got {names}")
    if len({model.training for model in modules}) > 1:
        raise SettingError("stack_module_state: expected all models to have the same training/eval mode, got both")
    return (
        _stacked([dict(model.named_parameters()) for model in modules]),
        _stacked([dict(model.named_buffers()) for model in modules]),
    )


def _stacked(tables: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the tensors of each name as one leaf."""
    stacked: dict[str, Any] = {}
    for name in dict.fromkeys(name for table in tables for name in table):
        column = [table[name] for table in tables if name in table]
        flags = {tensor.requires_grad for tensor in column}
        if len(column) < len(tables) or len(flags) > 1:
            raise SettingError(
                f"stack_module_state: expected {name} from each model to be there, with the same .requires_grad"
            )
        stacked[name] = stack([tensor.detach() for tensor in column]).requires_grad_(flags.pop())
    return stacked
