"""Hooks that compute an attribute of their module; copies and files leave the attribute out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from lucid.tensor import Tensor


class Computing(ABC):
    """A forward pre-hook that sets an attribute to a tensor made of the module's parameters.

    That one has a graph, of which there are no copies: a copy of the module, or one from a file, computes its own.
    """

    @property
    @abstractmethod
    def attribute(self) -> str:
        """The name of the attribute."""

    @abstractmethod
    def computed(self, module: Any) -> Tensor:
        """Return the tensor, without changing the module."""


def without_computed(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a module that are not computed of others."""
    computed = {
        hook.attribute for hook in attributes.get("_forward_pre_hooks", {}).values() if isinstance(hook, Computing)
    }
    return {name: value for name, value in attributes.items() if name not in computed}


def compute_missing(module: Any) -> None:
    """Compute the attributes that `without_computed` has left out."""
    attributes = cast("dict[str, Any]", vars(module))
    for hook in attributes.get("_forward_pre_hooks", {}).values():
        if isinstance(hook, Computing) and hook.attribute not in attributes:
            attributes[hook.attribute] = hook.computed(module)
