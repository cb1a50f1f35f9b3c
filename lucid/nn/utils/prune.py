"""Pruning: elements of parameters that are held at zero by a mask.

A pruned parameter becomes `weight_orig`, beside the buffer `weight_mask` of zeros and ones, and a forward pre-hook sets
``weight = weight_orig * weight_mask`` before each call. Pruned again, masks add up, and the share that is to be pruned
is that of what was left. An `amount` is a count, or as a float a share in [0, 1], of elements or, structured, of slices
along `dim`; others raise a SettingError. `importance_scores`, of the parameter's shape, stand for its elements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.arguments import checked
from lucid.autograd.modes.state import no_grad
from lucid.errors import ArgumentError, SettingError
from lucid.nn.utils.gradients import parameters_to_vector
from lucid.nn.utils.pruning import (
    BasePruningMethod,
    CustomFromMask,
    Identity,
    L1Unstructured,
    LnStructured,
    PruningContainer,
    RandomStructured,
    RandomUnstructured,
    hooks_of,
    prunes,
    scores_of,
)
from lucid.ops.creation.filling import ones_like
from lucid.public import publish as _publish

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lucid.nn.module.module import Module
    from lucid.tensor import Tensor

__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer",
    "RandomStructured", "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned",
    "l1_unstructured", "ln_structured", "random_structured", "random_unstructured", "remove",
]  # fmt: skip


@checked
def identity(module: Module, name: str) -> Module:
    """Return the module with a mask of ones on a parameter."""
    Identity.apply(module, name)
    return module


@checked
def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Return the module after pruning an `amount` of elements that are drawn."""
    RandomUnstructured.apply(module, name, amount)
    return module


@checked
def l1_unstructured(module: Module, name: str, amount: float, importance_scores: Tensor | None = None) -> Module:
    """Return the module after pruning an `amount` of elements, those of the least magnitude.

    Examples
    --------
    >>> import lucid
    >>> from lucid import nn
    >>> from lucid.nn.utils import prune
    >>> layer = nn.Linear(3, 1)
    >>> layer.weight.data = lucid.tensor([[0.5, -2.0, 1.0]])
    >>> prune.l1_unstructured(layer, "weight", amount=1).weight.detach()
    tensor([[ 0., -2.,  1.]])
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


@checked
def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Return the module after pruning an `amount` of slices along `dim` that are drawn."""
    RandomStructured.apply(module, name, amount, dim)
    return module


@checked
def ln_structured(
    module: Module, name: str, amount: float, n: float | str, dim: int, importance_scores: Tensor | None = None
) -> Module:
    """Return the module after pruning an `amount` of slices along `dim`, those of the least norm of order `n`."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


@checked
def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Return the module after pruning the elements with a zero in `mask`."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: Any,
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune several parameters as if they were one, so that each loses as much as its elements are worth.

    Parameters
    ----------
    parameters : iterable of (Module, str)
        Modules and names of parameters.
    pruning_method : type
        An unstructured method, whose settings are the other keywords.
    importance_scores : dict, optional
        By module and name; parameters that are left out are their own scores.

    Raises
    ------
    ArgumentError
        If the method is none of that kind.
    """
    places = list(parameters)
    method = pruning_method(**kwargs)
    if not isinstance(method, BasePruningMethod) or method.PRUNING_TYPE != "unstructured":
        raise ArgumentError(
            f"global_unstructured: pruning_method: expected one of PRUNING_TYPE 'unstructured', got {pruning_method}"
        )
    importances = importance_scores or {}
    tensors: list[Any] = [getattr(module, name) for module, name in places]
    with no_grad():
        scores = parameters_to_vector(
            [scores_of(importances.get(place), tensor) for place, tensor in zip(places, tensors, strict=True)]
        )
        before = parameters_to_vector(
            [
                getattr(module, f"{name}_mask", ones_like(tensor.detach()))
                for (module, name), tensor in zip(places, tensors, strict=True)
            ]
        )
        masks = PruningContainer(method).compute_mask(scores, before)
    parts = masks.split([tensor.numel() for tensor in tensors])
    for (module, name), tensor, mask in zip(places, tensors, parts, strict=True):
        custom_from_mask(module, name, mask.reshape(tensor.shape))


@checked
def remove(module: Module, name: str) -> Module:
    """Return the module after making a pruned parameter an ordinary one again; pruned elements stay zero.

    Raises
    ------
    SettingError
        If it is not pruned.
    """
    for number, hook in list(hooks_of(module).items()):
        if prunes(hook, name):
            hook.remove(module)
            del hooks_of(module)[number]
            return module
    raise SettingError(f"parameter {name!r} of {type(module).__name__} has to be pruned before pruning can be removed")


@checked
def is_pruned(module: Module) -> bool:
    """Return whether a parameter of the module, or of one below it, is pruned."""
    return any(isinstance(hook, BasePruningMethod) for inner in module.modules() for hook in hooks_of(inner).values())


_publish(globals())
