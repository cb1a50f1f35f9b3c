"""Values kept by a `capture`, in memory or in the files of a folder."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from lucid.autograd.base import TensorBase, wrap
from lucid.autograd.hooks.structure import map_leaves
from lucid.autograd.recording.mutation import Keeping, Kept, everywhere
from lucid.base.arrays import copied
from lucid.errors import CheckpointError, SettingError
from lucid.serialization import load, save

if TYPE_CHECKING:
    import os

    from lucid.tensor import Tensor

INDEX = "index.json"


class Key(NamedTuple):
    """Key of a kept value: the path of a module or the name of a tap, the kind of value, and the call, from 0 on."""

    path: str
    what: str
    call: int


class Stored(NamedTuple):
    """The file that holds a value."""

    path: Path


class Captured(Mapping[Any, Any]):
    """Values kept by a `capture`, by path, kind and call, in the order of arrival.

    A path alone, or a path and what, name the value if there is one of that: ``kept["0"]`` is
    ``kept["0", "output", 0]`` where module 0 was called once and only its output was kept. Values are as the hooks saw
    them, with a tensor of their own in place of each tensor: they stay as they were where the program changes its
    tensors in place later, and where it changes what it has read here. Those in a folder are read when they are asked
    for.

    Attributes
    ----------
    folder : Path or None
        Where the values are.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None, *, grads: bool = False) -> None:
        self.folder = None if folder is None else Path(folder)
        self._grads = grads
        self._started = False
        self._values: dict[Key, Any] = {}
        self._keeping = Keeping()
        everywhere.add(self._keeping)
        # counters that several threads can ask at once, so that no value takes the place of another's
        self._calls: dict[str, Iterator[int]] = {}
        self._files = itertools.count()

    def count(self, path: str) -> int:
        """Return the number of a new call of the module or tap at `path`; a different one for each thread."""
        return next(self._calls.setdefault(path, itertools.count()))

    def __reduce__(self) -> tuple[Any, ...]:
        values = {key: value if isinstance(value, Stored) else self[key] for key, value in self._values.items()}
        return Captured._of, (self.folder, values)

    @classmethod
    def _of(cls, folder: Path | None, values: dict[Key, Any]) -> Captured:
        """Return a copied or pickled object of these values."""
        captured = cls(folder)
        for key, value in values.items():
            if isinstance(value, Stored):
                captured._values[key] = value
            else:
                captured.keep(key, value, detach=True, device=None, dtype=None)
        return captured

    def keep(self, key: Key, value: Any, *, detach: bool, device: Any, dtype: Any) -> None:
        """Keep a value, its tensors detached or as they are, and moved and cast if asked for."""
        value = self.packed(value, detach=detach, device=device, dtype=dtype)
        if self.folder is not None:
            stored = self._values.get(key) or Stored(self.folder / f"{next(self._files):06d}.safetensors")
            save(map_leaves(value, lambda leaf: wrap(leaf.array) if isinstance(leaf, Kept) else leaf), stored.path)
            value = stored
        self._values[key] = value

    def packed(self, value: Any, *, detach: bool, device: Any, dtype: Any) -> Any:
        """Return a value as it is to be kept, with an entry of its present values for each detached tensor."""

        def kept(leaf: Any) -> Any:
            if not isinstance(leaf, TensorBase):
                return leaf
            if detach and device is None and dtype is None:
                return self._keeping.pack(leaf)
            tensor = cast("Tensor", leaf)
            if detach:
                tensor = tensor.detach()
            if device is not None:
                tensor = tensor.to(device)
            if dtype is not None and tensor.is_floating_point():
                tensor = tensor.to(dtype)
            return self._keeping.pack(tensor) if detach else tensor

        return map_leaves(value, kept, fresh=True)

    def begin(self) -> None:
        """Make the folder, if there is to be one.

        Raises
        ------
        SettingError
            If it has files that are not of this object.
        """
        folder = self.folder
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            if not self._values and any(folder.iterdir()):
                raise SettingError(f"capture: folder: expected a new or an empty one, got {folder}, which has files")
            self._started = True

    def end(self) -> None:
        """Write the index of the folder: the file of each value."""
        if self.folder is not None and self._started:
            rows = [{**key._asdict(), "file": stored.path.name} for key, stored in self._values.items()]
            (self.folder / INDEX).write_text(json.dumps(rows, indent=0), encoding="utf-8")

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Captured:
        """Return the values that a `capture` has written into a folder; each is read when it is asked for.

        Raises
        ------
        CheckpointError
            If the folder has no index, or one that is none.
        """
        captured = cls(folder)
        path = Path(folder) / INDEX
        try:
            for row in json.loads(path.read_text(encoding="utf-8")):
                name = row["file"]
                if Path(name).name != name:
                    raise ValueError(f"the name {name!r} leads out of the folder")
                captured._values[Key(row["path"], row["what"], row["call"])] = Stored(Path(folder) / name)
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise CheckpointError(f"Captured.load: {path} is no index of captured values: {error!r}") from error
        return captured

    def _key(self, key: Any) -> Key:
        parts = cast("tuple[Any, ...]", key) if isinstance(key, tuple) else (key,)
        if parts in self._values:
            return Key(*parts)
        matches = [each for each in self._values if each[: len(parts)] == parts]
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise KeyError(f"{key!r} names {len(matches)} values: {[tuple(each) for each in matches]}")
        text = f"{key!r}: nothing of this name was kept, but {[tuple(each) for each in self._values]}"
        if self._grads and "grad" in parts:
            text += "; gradients come from backward passes inside of the block, through what was recorded in it"
        raise KeyError(text)

    def __getitem__(self, key: Any) -> Any:
        """Return a value by its key, or by the beginning of it; a KeyError lists the keys."""
        value = self._values[self._key(key)]
        if isinstance(value, Stored):
            return load(value.path)
        return map_leaves(value, lambda leaf: wrap(copied(leaf.array)) if isinstance(leaf, Kept) else leaf, fresh=True)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<{len(self)} captured values of {', '.join(map(repr, dict.fromkeys(key.path for key in self)))}>"
