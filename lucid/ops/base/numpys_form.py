"""Methods called in NumPy's form, ``x.sum(axis, dtype, out, keepdims)``, as CuPy's functions call their argument's."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase

if TYPE_CHECKING:
    from types import CodeType

IN_NUMPYS_FORM = {
    "all", "any", "argmax", "argmin", "argsort", "clip", "dot", "max", "mean", "min", "prod", "round", "std",
    "sum", "take", "trace", "var",
}  # fmt: skip
"""The methods that are looked at where PyTorch's form fails; `reshape`, `ravel` and `transpose` do it themselves."""


def is_numpys_form(code: CodeType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether a method is called in NumPy's form, by arguments that PyTorch's cannot take.

    That has no `out`; where it has, here, it is a tensor.
    """
    if "out" in kwargs:
        return not ({"dim", "keepdim"} & kwargs.keys() or isinstance(kwargs["out"], TensorBase | tuple | list))
    if {"ddof", "kind"} & kwargs.keys():
        return True
    return len(args) > code.co_argcount


def in_numpys_form(title: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return a method by the rule of NumPy's function of its name."""
    return import_module("lucid.tensor.cupy_calls").method_call(title, args, kwargs)
