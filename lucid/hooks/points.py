"""Names of what hooks can be put on: the modules of a model by their paths, and patterns that choose among them."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Iterable

from lucid.arguments import unfit
from lucid.errors import SettingError
from lucid.nn.module.module import Module

NEAREST, SHOWN = 3, 8


def expression(pattern: str) -> re.Pattern[str]:
    """Return the regular expression of a pattern of paths, as `points` explains it."""
    parts = pattern.split(".")
    if parts == [""]:
        return re.compile(r"\Z")
    made = ""
    for part in parts:
        # `**` takes its dot along, so that it may stand for no name at all
        made += r"(?:\.[^.]+)*" if part == "**" else r"\." + fnmatch.translate(part)[4:-3].replace(".*", "[^.]*")
    # paths are matched with a dot in front of each name
    return re.compile(made + r"\Z")


def points(model: Module, pattern: str | Iterable[str] = "**") -> dict[str, Module]:
    """Return the modules of a model whose paths match, by path, in the order of `named_modules`.

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
        If a pattern matches nothing; the message has the paths that are nearest to it.

    Examples
    --------
    >>> from lucid import hooks, nn
    >>> model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU(), nn.Linear(2, 1)))
    >>> list(hooks.points(model)), list(hooks.points(model, "**.1")), list(hooks.points(model, "*"))
    (['', '0', '1', '1.0', '1.1'], ['1', '1.1'], ['0', '1'])
    """
    if not isinstance(model, Module):
        raise unfit(model, "a Module", "model")
    patterns = [pattern] if isinstance(pattern, str) else [*pattern] if isinstance(pattern, Iterable) else []
    if not patterns or not all(isinstance(each, str) for each in patterns):
        raise unfit(pattern, "a str or several", "pattern")
    modules = dict(model.named_modules())
    chosen: set[str] = set()
    for each in patterns:
        matches = expression(each).match
        paths = {path for path in modules if matches(f".{path}" if path else "")}
        if not paths:
            near = difflib.get_close_matches(each, modules, NEAREST, 0.4) or list(modules)[:SHOWN]
            raise SettingError(f"no module of {type(model).__name__} has a path like {each!r}: near are {near}")
        chosen |= paths
    return {path: module for path, module in modules.items() if path in chosen}
