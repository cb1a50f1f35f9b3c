"""No kernel is left out of what tests of all kernels go through: `tests/kernels/declared.py` has them all."""

from __future__ import annotations

from lucid.cuda.source.signature import source
from lucid.cuda.source.sources import folder, made
from tests.kernels.declared import KERNELS

FILES = sorted(path.name for path in folder().rglob("*.cu"))


def test_every_file_has_a_kernel():
    """Files of kernels are those that kernels are declared of: none without, and none that is not there."""
    by_hand = {file for kernel in KERNELS if not made(file := f"{kernel.stem}.cu")}
    assert sorted(by_hand) == FILES, (
        "declare what is in a file beside its op, as Kernel(file, name, instances), or delete the file"
    )


def test_every_kernel_is_declared():
    """Each `__global__` function, of a file or of a header that it includes, is declared of some file."""
    declared = {kernel.name.rpartition("::")[2] for kernel in KERNELS}
    missing = [f"{file}: {name}" for file in FILES for name in source(file).kernels if name not in declared]
    assert not missing, f"{missing}: declare them beside their op, as Kernel(file, name, instances), or delete them"
