"""PyTorch's names in `names.json`, and whether lucid has them."""

from __future__ import annotations

import json
import pkgutil
from pathlib import Path
from typing import NamedTuple

from lucid.compat.reasons import REFUSED, reason
from lucid.public import publish as _publish

__all__ = ["Name", "coverage", "is_present"]


class Name(NamedTuple):
    """One of PyTorch's names: its namespace, how often it is used, whether lucid has it, and if not, why."""

    namespace: str
    name: str
    use: int
    present: bool
    reason: str


def is_present(path: str) -> bool:
    """Tell whether lucid has PyTorch's name `path` in its meaning; a ValueError if it is none of these.

    >>> from lucid.compat import is_present
    >>> is_present("torch.nn.Linear"), is_present("torch.nn.DataParallel")
    (True, False)
    """
    if not path.startswith("torch"):
        raise ValueError(f"is_present: expected one of PyTorch's names, such as torch.nn.Linear, got {path!r}")
    try:
        pkgutil.resolve_name(f"lucid{path.removeprefix('torch')}")
    except (AttributeError, ImportError):
        return False
    return path not in REFUSED


def coverage() -> dict[str, list[Name]]:
    """Return for each of PyTorch's namespaces its names, the most used first.

    >>> from lucid.compat import coverage
    >>> coverage()["torch.nn"][0].name
    'Module'
    """
    rows: dict[str, dict[str, int]] = json.loads(Path(__file__).with_name("names.json").read_text(encoding="utf-8"))
    return {
        namespace: [
            Name(namespace, name, use, present, "" if present else reason(f"{namespace}.{name}") or "not built yet")
            for name, use in sorted(names.items(), key=lambda item: (-item[1], item[0]))
            for present in (is_present(f"{namespace}.{name}"),)
        ]
        for namespace, names in rows.items()
    }


_publish(globals(), Name="lucid.compat", coverage="lucid.compat", is_present="lucid.compat")
