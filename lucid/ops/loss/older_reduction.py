"""PyTorch's older form of `reduction`, the two arguments `size_average` and `reduce`: losses take these as well."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

# Where they stand among the arguments of PyTorch's functions.
OLDER_PLACES = {
    "binary_cross_entropy": (3, 4),
    "binary_cross_entropy_with_logits": (3, 4),
    "cosine_embedding_loss": (4, 5),
    "cross_entropy": (3, 5),
    "hinge_embedding_loss": (3, 4),
    "kl_div": (2, 3),
    "l1_loss": (2, 3),
    "margin_ranking_loss": (4, 5),
    "mse_loss": (2, 3),
    "multi_margin_loss": (5, 6),
    "multilabel_margin_loss": (2, 3),
    "multilabel_soft_margin_loss": (3, 4),
    "nll_loss": (3, 5),
    "poisson_nll_loss": (4, 6),
    "smooth_l1_loss": (2, 3),
    "soft_margin_loss": (2, 3),
    "triplet_margin_loss": (7, 8),
}


def reduction_of(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """Return the reduction, from the older two arguments if they are given."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is not None and not reduce:
        return "none"
    return "mean" if size_average is None or size_average else "sum"


def with_older_reduction(function: Callable[..., Any], module: str) -> Callable[..., Any]:
    """Return a loss that takes `size_average` and `reduce`, too; `module` is its public module, for pickle.

    By position they are taken where PyTorch has them, if there is None, False or True at the first of the two places:
    what the function itself has there is none of these.
    """
    first, second = OLDER_PLACES[function.__name__]
    names = list(inspect.signature(function).parameters)
    names.insert(first, "size_average")
    names.insert(second, "reduce")

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        if len(args) > first and (args[first] is None or isinstance(args[first], bool)) and len(args) <= len(names):
            named.update(zip(names[first:], args[first:], strict=False))
            args = args[:first]
        if "size_average" in named or "reduce" in named:
            older = named.pop("size_average", None), named.pop("reduce", None)
            named["reduction"] = reduction_of(*older, named.get("reduction", "mean"))
        return function(*args, **named)

    call.__module__ = module
    return call
