"""What type checkers read of the modules that `lucid.compat.addresses` makes: a stub for each, in `lucid-stubs`.

`python -m tests.compat.stubs` writes them. Of the modules of layers and families there are none: what stands in those
is had from `lucid.nn` and `lucid.distributions`; nor of those that only older pickles name.
"""

from __future__ import annotations

from pathlib import Path

from lucid.compat.addresses import ADDRESSES, DISTRIBUTIONS, LAYERS, OLDER, names_at

STUBS = Path(__file__).parents[2] / "lucid-stubs"
UNTYPED = {*OLDER, *(f"nn.modules.{name}" for name in LAYERS)}
UNTYPED |= {f"distributions.{name}" for name in DISTRIBUTIONS}


def stubs():
    """Return the text of each stub by its path below the folder."""
    texts = {"py.typed": "partial\n"}
    for address in ADDRESSES.keys() - UNTYPED:
        package = any(each.startswith(f"{address}.") for each in ADDRESSES)
        path = address.replace(".", "/") + ("/__init__.pyi" if package else ".pyi")
        lines = sorted(f"from {place} import {own} as {name}" for name, place, own in names_at(address))
        exported = f"__all__ = {sorted(name for name, *_ in names_at(address))}"
        texts[path] = "\n".join(["# Written by `python -m tests.compat.stubs`.", *lines, "", exported, ""])
    return texts


if __name__ == "__main__":
    for name, text in stubs().items():
        (STUBS / name).parent.mkdir(parents=True, exist_ok=True)
        (STUBS / name).write_text(text, encoding="utf-8")
