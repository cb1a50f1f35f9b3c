"""Keywords that PyTorch takes in many functions, in one place: NumPy's names, `out`, and those about memory.

Functions of `lucid` and methods of tensors are given them by `with_keywords`; what calls an op inside of lucid does not
go through it.

- `axis`, `keepdims`, `x1`, `x2`, `x` and `a` are NumPy's names of `dim`, `keepdim`, `input` and `other`; `input` is
  that of the matrices `A` of what is in `lucid.linalg` too.
- `size` names the sizes that are otherwise written one after the other.
- `out` is a tensor that gets the result, converted to its dtype, and is returned; a tuple of them where there are
  several results. It has the result's shape, or no elements, and then takes that shape. Nothing of it is recorded:
  while gradients are on, no argument may require grad.
- `layout` is `lucid.strided`; `memory_format` and `pin_memory` are taken by what makes tensors.
  `lucid.ops.base.formats` says what a format means.
"""

from __future__ import annotations

import functools
import sys
from inspect import CO_VARARGS
from typing import TYPE_CHECKING, Any, cast

from lucid.arguments import shown
from lucid.autograd.base import TensorBase, describe
from lucid.autograd.modes.autocast import casting_on, without_autocast
from lucid.autograd.modes.decorating import check_bool
from lucid.autograd.modes.state import is_grad_enabled, no_grad, unusual
from lucid.base.device import device_of
from lucid.base.dtype import as_dtype, can_cast
from lucid.errors import ArgumentError, DeviceError, DtypeError, GraphError, ShapeError
from lucid.ops.base.formats import check_layout, check_memory_format
from lucid.ops.creation.data import pinned
from lucid.public import place, written_in
from lucid.settings.documents import explain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import CodeType

ALIASES = {"axis": "dim", "keepdims": "keepdim", "x1": "input", "x": "input", "a": "input", "x2": "other", "input": "A"}
FAMILIES = tuple(
    f"lucid.ops.{family}"
    for family in ("activation", "creation", "decomposition", "elementwise", "fft", "index", "linalg", "reduction")
)
"""The families of ops whose functions take `out`."""
ALSO_OUT = {"cat", "concat", "concatenate", "diag", "hstack", "roll", "stack", "tril", "triu", "vstack"}
NEVER_OUT = {
    "allclose", "as_tensor", "asarray", "equal", "fftshift", "from_numpy", "frombuffer", "get_rng_state", "ifftshift",
    "imag", "initial_seed", "istft", "manual_seed", "narrow", "real", "resolve_conj", "resolve_neg", "seed", "select",
    "set_rng_state", "stft", "tensor", "view_as_complex", "view_as_real",
}  # fmt: skip
"""Functions of these families that return a view, no tensor, or one made of data, or that have no `out` in PyTorch."""
MAKERS = "lucid.ops.creation"
OPS = __file__.rpartition("base")[0]
"""The folder of all ops."""
FORMATTED = {
    "bfloat16", "bool", "byte", "cdouble", "cfloat", "char", "clone", "contiguous", "cpu", "cuda", "double", "float",
    "half", "int", "long", "short", "to", "type",
}  # fmt: skip
"""The methods that take a memory format."""
IN_NUMPYS_FORM = {
    "all", "any", "argmax", "argmin", "argsort", "clip", "dot", "max", "mean", "min", "prod", "round", "std", "sum",
    "take", "trace", "var",
}  # fmt: skip
"""The methods that CuPy's functions call on their argument in NumPy's form, ``x.sum(axis, dtype, out, keepdims)``."""

# What a wrapper has of its function; its name and place are set, and `functools` takes three times as long for all.
COPIED = ("__name__", "__doc__", "__annotations__")


def with_keywords(function: Callable[..., Any], path: str) -> Callable[..., Any]:
    """Return `function`, public as ``lucid.path``, with the keywords that this file is about."""
    explain(function)
    names = frozenset(_parameters(function))
    title = path.rpartition(".")[2]

    @functools.wraps(function, assigned=COPIED)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not kwargs:
            return function(*args)
        if kwargs.keys() <= names:
            return function(*args, **kwargs)
        return _adapted(title, function, args, kwargs)

    if path.startswith("Tensor.") and title in IN_NUMPYS_FORM:
        code = _code(function)
        most = code.co_argcount

        @functools.wraps(function, assigned=COPIED)
        def method(input: Any, /, *more: Any, **kwargs: Any) -> Any:
            if not more and not kwargs:
                return function(input)
            args = input, *more
            if not kwargs:
                if len(args) <= most:
                    return function(*args)
            elif kwargs.keys() <= names:
                return function(*args, **kwargs)
            elif not is_numpys_form(code, args, kwargs):
                return _adapted(title, function, args, kwargs)
            return input._in_numpys_form(title, args, kwargs)  # noqa: SLF001 - a method of theirs, above this layer

        call = method

    call.__module__, call.__qualname__ = written_in(function), path
    if path.startswith("Tensor."):
        place(call, "lucid")
    else:
        call.__name__ = call.__qualname__ = title
        place(call, f"lucid.{path}".rpartition(".")[0])
    return call


def is_numpys_form(code: CodeType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether a method is called in NumPy's form, by arguments that PyTorch's cannot take.

    That has no `out`; where it has, here, it is a tensor.
    """
    if "out" in kwargs:
        return not ({"dim", "keepdim"} & kwargs.keys() or isinstance(kwargs["out"], TensorBase | tuple | list))
    return len(args) > code.co_argcount or "ddof" in kwargs or "kind" in kwargs


def __getattr__(name: str) -> object:
    # older pickles look here for all functions of `lucid`
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(sys.modules["lucid"], name)


def _code(function: Any) -> CodeType:
    """Return the code with a function's own parameters: of a decorated one the innermost."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function.__code__


def _parameters(function: Any) -> tuple[str, ...]:
    """Return the parameters that can be given by name; those that only can last."""
    code = _code(function)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def as_method(function: Any, name: str) -> Any:
    """Return a function as a method of tensors, with the keywords that it has in PyTorch."""
    if name.startswith("_") or not hasattr(function, "__code__"):
        return function
    if _code(function).co_filename.startswith(OPS):
        explain(function)
    named = not {"dim", "keepdim"}.isdisjoint(_parameters(function))
    wanted = named or name.startswith("new_") or name in FORMATTED or name in IN_NUMPYS_FORM
    return with_keywords(function, f"Tensor.{name}") if wanted else function


def add_to_methods(kind: type[Any]) -> None:
    """Give the methods of the class of tensors, and of those above it, the keywords that they have in PyTorch."""
    methods = {name: method for each in reversed(kind.__mro__) for name, method in vars(each).items()}
    for name, method in methods.items():
        adapted = as_method(method, name)
        if adapted is not method:
            setattr(kind, name, adapted)


def add_to_functions(names: Iterable[str], namespace: dict[str, Any], prefix: str = "") -> None:
    """Give those functions of the namespace `lucid`, or of one below by its prefix, that are ops PyTorch's keywords."""
    made: dict[Any, Any] = {}
    for name in names:
        function: Any = namespace.get(name)
        if hasattr(function, "__code__") and written_in(function).startswith("lucid.ops."):
            if function not in made:
                # of several names it is known by its own
                own = function.__name__ if namespace.get(function.__name__) is function else name
                made[function] = with_keywords(function, prefix + own)
            namespace[name] = made[function]


def _adapted(title: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the call of a function with keywords that are not all its own."""
    code, names = _code(function), _parameters(function)
    for alias, name in ALIASES.items():
        if alias in kwargs and alias not in names and name in names:
            if name in kwargs:
                raise ArgumentError(f"{title}: {name} and {alias} are two names of one argument: give one of them")
            kwargs[name] = kwargs.pop(alias)
    if "size" in kwargs and code.co_flags & CO_VARARGS and code.co_varnames[len(names)] == "size":
        if sizes := args[code.co_argcount :]:
            raise ArgumentError(f"{title}: size is given twice, as {sizes} and as {kwargs['size']!r}")
        args = (*args, kwargs.pop("size"))
    makes = written_in(function).startswith((MAKERS, "lucid.tensor.conversion"))
    pins: Any = False
    if makes and title not in FORMATTED:
        check_layout(kwargs.pop("layout", None))
        if "pin_memory" not in names:
            pins = kwargs.pop("pin_memory", False)
    if makes or title in FORMATTED:
        check_memory_format(kwargs.pop("memory_format", None))
    out = kwargs.pop("out", None)
    if out is not None:
        if unusual and casting_on():
            with without_autocast():
                return _into(title, out, function, args, kwargs)
        return _into(title, out, function, args, kwargs)
    made = function(*args, **kwargs)
    if pins and check_bool(pins, "pin_memory"):
        made.array = pinned(made.array)
    return made


def _into(title: str, out: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return `out` after the result of a call was written into it."""
    if title in NEVER_OUT or not (written_in(function).startswith(FAMILIES) or title in ALSO_OUT):
        raise ArgumentError(f"{title}: out is not taken here: write out.copy_(lucid.{title}(...))")
    targets: tuple[Any, ...] = tuple(cast("Any", out)) if isinstance(out, tuple | list) else (out,)
    for target in targets:
        if not isinstance(target, TensorBase):
            raise ArgumentError(f"{title}: out: expected a Tensor, got {shown(target)}")
    tensors = _tensors(targets, args, kwargs.values())
    if is_grad_enabled() and (kwargs.get("requires_grad") or any(tensor.requires_grad for tensor in tensors)):
        raise GraphError(
            f"{title}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad: assign the result, or call it within no_grad()"
        )
    keywords = _parameters(function)[_code(function).co_argcount :]
    for name in ("dtype", "device"):
        own = getattr(targets[0], name)
        if name in keywords and kwargs.get(name) is None:
            kwargs[name] = own
        elif name == "dtype" and name in kwargs and as_dtype(kwargs[name]) is not own:
            raise DtypeError(f"{title}: dtype {kwargs[name]} does not match dtype of out, {own}: leave one of them out")
    with no_grad():
        made = function(*args, **kwargs)
        results: tuple[Any, ...] = cast("Any", made) if isinstance(made, tuple) else (made,)
        if len(results) != len(targets):
            raise ArgumentError(f"{title}: out: expected {len(results)} tensors, got {len(targets)}")
        for target, result in zip(targets, results, strict=True):
            _check(title, target, result)
        for target, result in zip(targets, results, strict=True):
            if target.array.shape == result.array.shape:
                target.copy_(result)
            else:
                target.data = result.to(target.dtype)
    if made is not results:
        return targets[0]
    # a named tuple takes its parts one by one
    kind: Any = cast("Any", type(results))
    return targets if kind is tuple else kind(*targets)


def _check(title: str, target: Any, result: Any) -> None:
    """Refuse a tensor that cannot hold a result."""
    if device_of(target.array) != device_of(result.array):
        raise DeviceError(f"{title}: out: expected a tensor on {result.device}, got {describe(target)}")
    if not can_cast(result.dtype, target.dtype):
        raise DtypeError(
            f"{title}: result type {result.dtype} can't be cast to the desired output type {target.dtype}: out is of "
            f"{describe(target)}"
        )
    if target.array.shape != result.array.shape and target.array.size:
        raise ShapeError(
            f"{title}: out: expected shape {tuple(result.array.shape)}, or no elements, got {describe(target)}"
        )


def _tensors(*several: Iterable[Any]) -> Iterator[Any]:
    """Yield the tensors among arguments, also those in sequences."""
    for arguments in several:
        for argument in arguments:
            if isinstance(argument, TensorBase):
                yield argument
            elif isinstance(argument, tuple | list):
                yield from _tensors(cast("Any", argument))
