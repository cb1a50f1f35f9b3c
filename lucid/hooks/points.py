"""Names of places for hooks: the modules of a model by their paths, and patterns that choose among them."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from lucid.arguments import unfit
from lucid.errors import SettingError
from lucid.nn.module.module import Module

if TYPE_CHECKING:
    from lucid.nn.parameter import Parameter

T = TypeVar("T")

NEAREST, SHOWN = 3, 8


def matches(path: str, pattern: str) -> bool:
    """Return whether a path matches a pattern, name by name, as `points` explains it."""
    return _match(path.split(".") if path else [], pattern.split(".") if pattern else [])


def _match(names: list[str], parts: list[str]) -> bool:
    if not parts:
        return not names
    first, *rest = parts
    if first == "**":
        return any(_match(names[skipped:], rest) for skipped in range(len(names) + 1))
    return bool(names) and fnmatch.fnmatchcase(names[0], first) and _match(names[1:], rest)


def points(model: Module, pattern: str | Iterable[str] = "**") -> dict[str, Module]:
    """Return the modules of a model with matching paths, by path, in the order of `named_modules`.

    Parameters
    ----------
    model : Module
        What is looked through; its own path is ``""``. A module that is reached by two paths has the first.
    pattern : str or iterable of str
        ``*``, ``?`` and ``[abc]`` stand for characters within one name of a path, as in file names, and ``**`` for any
        number of names: ``blocks.*`` are the blocks, ``blocks.**`` the blocks and all in them, ``**.attn`` whatever is
        called attn, ``**`` everything. By default everything.

    Raises
    ------
    SettingError
        If a pattern matches nothing; the message has the paths that are nearest to it, or the first path of what it
        names.

    Examples
    --------
    >>> from lucid import hooks, nn
    >>> model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU(), nn.Linear(2, 1)))
    >>> list(hooks.points(model)), list(hooks.points(model, "**.1")), list(hooks.points(model, "*"))
    (['', '0', '1', '1.0', '1.1'], ['1', '1.1'], ['0', '1'])
    """
    every = module_of(model).named_modules
    return chosen(lambda once: every(remove_duplicate=once), pattern, f"module of {type(model).__name__}")


def called(model: Module, pattern: str | Iterable[str]) -> dict[str, Module]:
    """Return `points`, at least one of them with a forward; a SettingError for a pattern of containers alone."""
    patterns: Any = [pattern] if isinstance(pattern, str) else [*pattern] if isinstance(pattern, Iterable) else pattern
    matching = points(model, patterns)
    for each in patterns:
        modules = matching if len(patterns) == 1 else points(model, each)
        if all(getattr(module.forward, "__func__", None) is Module.forward for module in modules.values()):
            path, module = next(iter(modules.items()))
            inner = f"{path}.*" if path else "*"
            raise SettingError(
                f"{each!r} names only what is never called, so that no hook on it fires: {path!r} is a "
                f"{type(module).__name__}, which has no forward: name modules in it, as by {inner!r}"
            )
    return matching


def parameters(model: Module, pattern: str | Iterable[str] = "**") -> dict[str, Parameter]:
    """Return the parameters of a model with matching paths, by path; patterns and errors are those of `points`.

    >>> from lucid import hooks, nn
    >>> list(hooks.parameters(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1)), "*.bias"))
    ['0.bias', '1.bias']
    """
    every = module_of(model).named_parameters
    return chosen(lambda once: every(remove_duplicate=once), pattern, f"parameter of {type(model).__name__}")


def module_of(model: Any) -> Module:
    """Return `model`, or raise if it is no module."""
    if not isinstance(model, Module):
        raise unfit(model, "a Module", "model")
    return model


def chosen(every: Callable[[bool], Iterable[tuple[str, T]]], pattern: str | Iterable[str], what: str) -> dict[str, T]:
    """Return the values with paths that match one of the patterns, in order; a SettingError for one without a match.

    ``every(True)`` gives all with their paths, ``every(False)`` also with the further paths of what has several.
    """
    patterns = [pattern] if isinstance(pattern, str) else [*pattern] if isinstance(pattern, Iterable) else []
    if not patterns or not all(isinstance(each, str) for each in patterns):
        raise unfit(pattern, "a str or several", "pattern")
    values, paths = dict(every(True)), set[str]()
    for each in patterns:
        fits = {path for path in values if each == "**" or matches(path, each)}
        if not fits:
            for path, value in every(False):
                if matches(path, each):
                    first = next(name for name, known in values.items() if known is value)
                    raise SettingError(
                        f"{each!r} names no {what} of its own: {path!r} is the same one as {first!r}: go by that"
                    )
            near = difflib.get_close_matches(each, values, NEAREST, 0.4) or list(values)[:SHOWN]
            raise SettingError(f"no {what} has a path like {each!r}: near are {near}")
        paths |= fits
    return {path: value for path, value in values.items() if path in paths}
