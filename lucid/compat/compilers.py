"""Calls for PyTorch's compilers, without one in lucid: `lucid.compile`, `lucid.jit` and `lucid.compiler`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar, overload
from typing import Final as Final  # noqa: PLC0414  exported: a name of `lucid.jit`

from lucid.errors import ArgumentError, LucidError, warn
from lucid.nn.module.module import Module
from lucid.public import publish as _publish

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F")

_said: set[str] = set()


class ScriptModule(Module):
    """A module that was compiled; `script` returns modules as they are, so that none is one."""

    def __init__(self, *_args: object, **_kwargs: object) -> None:
        raise LucidError("ScriptModule: lucid compiles no modules; use the module itself, as jit.script returns it")


def _say_once(name: str) -> None:
    if name not in _said:
        _said.add(name)
        warn(
            f"lucid.{name} returns its argument as it is: lucid compiles no Python; where launches cost more than the "
            "kernels do, lucid.cuda.graphed_step captures a training step, lucid.cuda.make_graphed_callables a model",
            UserWarning,
        )


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,  # noqa: ARG001  PyTorch's signature, to the end of it
    dynamic: bool | None = None,  # noqa: ARG001
    backend: object = "inductor",  # noqa: ARG001
    mode: str | None = None,  # noqa: ARG001
    options: dict[str, Any] | None = None,  # noqa: ARG001
    disable: bool = False,
) -> Any:
    """Return `model` as it is, and say so once; without one, a decorator that does.

    Parameters
    ----------
    model : callable, optional
        A module or a function.
    fullgraph, dynamic, backend, mode, options : object
        PyTorch's settings, which are not looked at.
    disable : bool
        Whether to say nothing.

    Raises
    ------
    ArgumentError
        If `model` cannot be called.

    Warns
    -----
    UserWarning
        At the first call in a process.

    Examples
    --------
    >>> import lucid
    >>> @lucid.compile(disable=True)
    ... def double(x):
    ...     return x * 2
    >>> double(lucid.ones(2))
    tensor([2., 2.])
    """
    if model is None:
        return functools.partial(compile, disable=disable)
    if not callable(model):
        raise ArgumentError(f"compile: model: expected a module or a function, got {type(model).__name__}")
    if not disable:
        _say_once("compile")
    return model


def script(obj: F) -> F:
    """Return a function, a class or a module as it is, and say so once.

    Examples
    --------
    >>> import lucid, warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     lucid.jit.script(abs) is abs
    True
    """
    _say_once("jit.script")
    return obj


def export(fn: F) -> F:
    """Return the function as it is.

    Examples
    --------
    >>> import lucid
    >>> lucid.jit.export(abs) is abs
    True
    """
    return fn


def ignore(drop: Any = False, **_kwargs: Any) -> Any:
    """Return the function as it is; called with a setting, a decorator that does.

    Parameters
    ----------
    drop : callable or bool
        The function, or PyTorch's setting, which is not looked at.

    Examples
    --------
    >>> import lucid
    >>> lucid.jit.ignore(abs) is lucid.jit.ignore(drop=True)(abs) is abs
    True
    """
    return drop if callable(drop) else export


def unused(fn: F) -> F:
    """Return the function as it is.

    Examples
    --------
    >>> import lucid
    >>> lucid.jit.unused(abs) is abs
    True
    """
    return fn


def is_scripting() -> bool:
    """Return False: nothing is compiled.

    Examples
    --------
    >>> import lucid
    >>> lucid.jit.is_scripting()
    False
    """
    return False


def is_tracing() -> bool:
    """Return False: nothing is traced.

    Examples
    --------
    >>> import lucid
    >>> lucid.jit.is_tracing()
    False
    """
    return False


def allow_in_graph(fn: F) -> F:
    """Return `fn`, or a list of functions, as it is.

    >>> import lucid
    >>> lucid.compiler.allow_in_graph(abs) is abs
    True
    """
    return fn


@overload
def disable(fn: F, recursive: bool = True, *, reason: str | None = None) -> F: ...
@overload
def disable(fn: None = None, recursive: bool = True, *, reason: str | None = None) -> Callable[[F], F]: ...
def disable(fn: F | None = None, recursive: bool = True, *, reason: str | None = None) -> F | Callable[[F], F]:  # noqa: ARG001
    """Return `fn` as it is, as nothing is compiled; without it a decorator that does.

    >>> import lucid
    >>> lucid.compiler.disable(abs) is abs, lucid.compiler.disable(recursive=False)(abs) is abs
    (True, True)
    """
    return allow_in_graph if fn is None else fn


def is_compiling() -> bool:
    """Return False: functions run, they are not traced.

    >>> import lucid
    >>> lucid.compiler.is_compiling()
    False
    """
    return False


def reset() -> None:
    """Return None: there is nothing compiled to forget."""


_publish(globals(), compile="lucid")
