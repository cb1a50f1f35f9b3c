"""Weights as model hubs have them: safetensors files that others wrote, and indexes of files."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np

from lucid.autograd.base import wrap
from lucid.base.dtype import DTYPES
from lucid.errors import CheckpointError, DeviceError
from lucid.serialization.bounded import TENSOR, Bounded, is_shape
from lucid.serialization.files import open_regular
from lucid.serialization.format import DTYPES as NAMES
from lucid.serialization.format import PLACE, as_bytes, read_contents
from lucid.serialization.pytorch import is_pytorch, read_pytorch
from lucid.serialization.refusals import LONGEST, MOST_SHOWN, checked, plain, shown, some
from lucid.serialization.source import Source
from lucid.serialization.text import read_json

if TYPE_CHECKING:
    from lucid.serialization.format import Contents, Entry
    from lucid.serialization.locations import Locations


KINDS = {code: DTYPES[name].numpy for name, code in NAMES.items() if name in DTYPES}
LONGEST_INDEX = 100_000_000
LONGEST_NAME = 255  # bytes, of files on Linux


def read_weights(source: Source, contents: Contents, place: Locations) -> dict[str, Any]:
    """Return the tensors of a safetensors file by their names.

    A name that the metadata give for that of a tensor is that tensor, too: so do other writers note tied weights.

    Raises
    ------
    CheckpointError
        If one has a dtype that no tensor has, or a shape that is not that of its bytes.
    """
    where, weights = place("cpu"), dict[str, Any]()
    for name in list(contents.arrays):
        entry = contents.arrays.pop(name)
        array = source.read(contents.start + entry.begin, *checked_kind(source.name, name, entry))
        if array.dtype == np.bool_ and as_bytes(array).max(initial=0) > 1:
            raise CheckpointError(f"load: {source.name}: {shown(name)} has bytes that are no bool")
        source.file.budget.take(TENSOR - PLACE)
        weights[name] = wrap(source.to(array.reshape(entry.shape), where))
    tied = {name: kept for name, kept in contents.metadata.items() if name not in weights and kept in weights}
    return weights | {name: weights[kept] for name, kept in tied.items() if name != "format"}


def checked_kind(source: str, name: str, entry: Entry) -> tuple[int, np.dtype[Any]]:
    """Return the number of elements and the dtype of an array, if its bytes are as many.

    Raises
    ------
    CheckpointError
        If they are not, or no tensor is such.
    """
    code, shape, nbytes = entry.dtype, entry.shape, entry.end - entry.begin
    if not isinstance(code, str) or code not in KINDS:
        raise CheckpointError(
            f"load: {source}: {shown(name)} has the dtype {shown(code)}: expected one of {', '.join(KINDS)}"
        )
    if not isinstance(shape, tuple) or len(cast("tuple[Any, ...]", shape)) > 64:
        raise CheckpointError(f"load: {source}: {shown(name)} has a shape that no array has")
    sizes, kind = list(cast("tuple[Any, ...]", shape)), KINDS[code]
    count = math.prod(sizes) if is_shape(sizes, kind.itemsize) else -1
    if count * kind.itemsize != nbytes:
        words = plain(str(sizes), MOST_SHOWN)
        raise CheckpointError(f"load: {source}: {shown(name)} has {nbytes} bytes for shape {words} of {code}")
    return count, kind


def read_index(path: Path, place: Locations, *, mapped: bool) -> dict[str, Any]:
    """Return the tensors of all parts that an index names, ``model.safetensors.index.json`` on model hubs.

    Raises
    ------
    CheckpointError
        If it is no index, a part lies elsewhere than beside it, or a part lacks a tensor that the index promises.
    """
    wanted = dict[str, list[str]]()  # the names of each part
    with open_regular(path) as opened:
        file = Bounded(opened)
        with checked(str(path), "is no index of safetensors files or .bin files: expected JSON with a weight_map"):
            if file.size > LONGEST_INDEX:
                raise ValueError(f"longer than {LONGEST_INDEX:,} bytes")
            json = read_json(bytes(file.array(file.size)).decode(), file.budget)
            parts = json.value()["weight_map"]
            json.end()
            if not all(isinstance(name, str) and isinstance(part, str) for name, part in parts.items()):
                raise ValueError("weight_map names tensors and files by other things than texts")
            for name, part in parts.items():
                wanted.setdefault(part, []).append(name)
    for part in wanted:
        if not is_beside(part):
            raise CheckpointError(f"load: {path} names {shown(part)}: expected the name of a file beside it")
    weights = dict[str, Any]()
    for part, names in wanted.items():
        source = plain(str(path.with_name(part)), LONGEST)
        with open_regular(path.with_name(part)) as opened:
            content = _part(opened, source, place, mapped=mapped)
        if missing := [name for name in names if name not in content]:
            raise CheckpointError(f"load: {source} lacks {some(missing)}, which {path.name} promises")
        weights |= {name: content[name] for name in names}
    return weights


def is_beside(part: str) -> bool:
    """Tell whether a text can be the name of a file in a folder."""
    try:
        length = len(os.fsencode(part))
    except UnicodeEncodeError:
        return False
    return 0 < length <= LONGEST_NAME and part not in {".", ".."} and "\0" not in part and Path(part).name == part


def _part(opened: BinaryIO, name: str, place: Locations, *, mapped: bool) -> dict[str, Any]:
    """Return the tensors of a file that an index names, by their names."""
    with checked(name, "is truncated, corrupt or no checkpoint", place):
        file = Bounded(opened)
        if is_pytorch(file):
            weights = read_pytorch(file, name, place, mapped=mapped)
            if not isinstance(weights, dict):
                raise ValueError(f"expected a dict of tensors, found a {type(weights).__name__}")
            return cast("dict[str, Any]", weights)
        contents = read_contents(file, name)
        source = Source(file, name, mapped=mapped)
        try:
            return read_weights(source, contents, place)
        except DeviceError as error:
            error.add_note(f"{name}: map_location='cpu' loads it")
            raise
        finally:
            source.finish()
