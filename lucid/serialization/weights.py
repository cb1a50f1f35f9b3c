"""Weights as model hubs have them: safetensors files that others wrote, alone or in parts with an index."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np

from lucid.autograd.base import wrap
from lucid.backend.dtype import DTYPES
from lucid.errors import CheckpointError, DeviceError
from lucid.serialization.files import open_regular
from lucid.serialization.format import DTYPES as NAMES
from lucid.serialization.format import as_bytes, read_contents
from lucid.serialization.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.serialization.format import Contents

__all__ = ["read_index", "read_weights"]

KINDS = {code: DTYPES[name].numpy for name, code in NAMES.items() if name in DTYPES}
LONGEST_INDEX = 100_000_000


def read_weights(source: Source, contents: Contents, place: Callable[[str], str]) -> dict[str, Any]:
    """Return the tensors of a safetensors file by their names.

    Raises
    ------
    CheckpointError
        If one has a dtype that no tensor has, or a shape that is not that of its bytes.
    """
    where, weights = place("cpu"), dict[str, Any]()
    for name, (begin, end) in contents.offsets.items():
        entry = contents.entries[name]
        code, shape = entry.get("dtype"), entry.get("shape")
        if code not in KINDS:
            raise CheckpointError(
                f"load: {source.name}: {name!r} has the dtype {code!r}: expected one of {', '.join(KINDS)}"
            )
        if not isinstance(shape, list) or len(cast("list[Any]", shape)) > 64:
            raise CheckpointError(f"load: {source.name}: {name!r} has a shape that no array has")
        sizes = cast("list[Any]", shape)
        kind = KINDS[code]
        fits = all(type(size) is int and 0 <= size < 2**63 for size in sizes)
        if not fits or math.prod(sizes) * kind.itemsize != end - begin:
            raise CheckpointError(f"load: {source.name}: {name!r} has {end - begin} bytes for shape {sizes} of {code}")
        array = source.read(begin, math.prod(sizes), kind).reshape(sizes)
        if kind == np.bool_ and as_bytes(array).max(initial=0) > 1:
            raise CheckpointError(f"load: {source.name}: {name!r} has bytes that are no bool")
        weights[name] = wrap(source.to(array, where))
    return weights


def read_index(path: Path, place: Callable[[str], str], *, mapped: bool) -> dict[str, Any]:
    """Return the tensors of all parts that an index names, ``model.safetensors.index.json`` on model hubs.

    Raises
    ------
    CheckpointError
        If it is no index, a part lies elsewhere than beside it, or a part lacks a tensor that the index promises.
    """
    with open_regular(path) as file:
        text = file.read(LONGEST_INDEX + 1)
    try:
        if len(text) > LONGEST_INDEX:
            raise ValueError(f"longer than {LONGEST_INDEX:,} bytes")
        parts = json.loads(text)["weight_map"]
        if not all(isinstance(name, str) and isinstance(part, str) for name, part in parts.items()):
            raise ValueError("weight_map names tensors and files by other things than texts")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(
            f"load: {path} is no index of safetensors files: expected JSON with a weight_map ({error!r})"
        ) from error
    weights = dict[str, Any]()
    for part in dict.fromkeys(parts.values()):
        if not part or part in {".", ".."} or Path(part).name != part:
            raise CheckpointError(f"load: {path} names {part!r}: expected the name of a file beside it")
        wanted = [name for name, where in parts.items() if where == part]
        with open_regular(path.with_name(part)) as file:
            found = _part(file, str(path.with_name(part)), place, mapped=mapped)
        if missing := [name for name in wanted if name not in found]:
            raise CheckpointError(
                f"load: {path.with_name(part)} lacks {', '.join(missing)}, which {path.name} promises"
            )
        weights |= {name: found[name] for name in wanted}
    return weights


def _part(file: BinaryIO, name: str, place: Callable[[str], str], *, mapped: bool) -> dict[str, Any]:
    contents = read_contents(file, name)
    source = Source(file, name, mapped=mapped)
    try:
        return read_weights(source, contents, place)
    except DeviceError as error:
        error.add_note(f"{name}: map_location='cpu' loads it")
        raise
    finally:
        source.finish()
