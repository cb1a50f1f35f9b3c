"""Faults planted in the kernels, each of which a test must find: `python -m tests.kernels.planted_faults`.

A fault changes one place of one file in a copy of the checkout; the tests named beside it then run on the simulated
device and have to fail. Whatever survives is a hole in the tests, and the exit status is 1.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[2]
LONGEST = 300


@dataclass(frozen=True)
class Fault:
    """One mistake: the text `old` of a file, at its occurrence `number`, becomes `new`; `tests` is the file to run."""

    what: str
    file: str
    old: str
    new: str
    tests: str
    number: int = 0

    def plant(self, text):
        """Return the text with the fault in it."""
        places = [match.start() for match in re.finditer(re.escape(self.old), text)]
        if self.number >= len(places):
            raise SystemExit(f"{self.file} no longer holds {self.old!r}: adapt the fault {self.what!r}")
        at = places[self.number]
        return text[:at] + self.new + text[at + len(self.old) :]


BARRIER = "__syncthreads();"
FAULTS = [
    Fault("barrier before the parts of a block are merged", "lucid.cuh", BARRIER, "", "test_gradients.py", 1),
    Fault("barrier between two uses of the shared parts", "lucid.cuh", BARRIER, "", "test_attention.py"),
    Fault("barrier inside the tree over columns", "reduction.cuh", BARRIER, "", "test_reduction.py", 3),
    Fault("barrier of a scan", "cumulative.cu", BARRIER, "", "test_cumulative.py", 1),
    Fault("barrier after a tile of keys was loaded", "attention_tiles.cu", BARRIER, "", "test_attention.py", 1),
    Fault("barrier between two tiles of a product", "product.cu", BARRIER, "", "test_product.py", 1),
    Fault("bound of what a product sums over", "product.cu", "min(TILE, depth - first_k)", "TILE", "test_product.py"),
    Fault("bound of a row's length", "rows.cuh", "if (c < length) row_c[c] =", "row_c[c] =", "test_softmax.py"),
    Fault("bound of the rows of a grid", "softmax.cu", "if (n < rows) write_row", "write_row", "test_softmax.py"),
    Fault("bound of the columns", "reduction.cuh", "if (column + k < columns) finish", "finish", "test_reduction.py"),
    Fault("bound of an index", "indexing.cu", "if (place < 0 || place == skipped) continue;", "", "test_indexing.py"),
    Fault("bound of a window", "pooling.cu", "h >= 0 && h < windows.y.size && ", "", "test_pooling.py", 1),
    Fault("mask of later keys", "attention.cuh", "problem.causal && key > query", "false", "test_attention.py"),
    Fault("mask of ignored targets", "cross_entropy.cu", "t != ignore_index", "true", "test_cross_entropy.py"),
    Fault("mask of an embedding's padding", "indexing.cu", " || place == skipped", "", "test_embedding.py"),
    Fault("stride of the first dimension", "elementwise.cuh", "(d ? 1 : width)", "1", "test_elementwise.py"),
]  # fmt: skip


def checkout(fault, folder):
    """Make a checkout in `folder` that has the fault, and links to everything that is as it was."""
    for path in ROOT.iterdir():
        if path.name not in {"kernels", ".git", ".pytest_cache"}:
            (folder / path.name).symlink_to(path)
    (folder / "kernels").mkdir()
    for path in (ROOT / "kernels").iterdir():
        text = path.read_text(encoding="utf-8")
        (folder / "kernels" / path.name).write_text(fault.plant(text) if path.name == fault.file else text)


def find(fault):
    """Return the test that found a fault, or None, and how long that took."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        checkout(fault, folder)
        environment = {
            **os.environ,
            "PYTHONPATH": str(folder),
            "LUCID_CUDA_SIMULATOR": "1",
            "LUCID_SIMULATOR_SEED": "1",
            "LUCID_CACHE_DIR": str(folder / "cache"),
            "OPENBLAS_NUM_THREADS": "1",
        }
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", f"tests/kernels/{fault.tests}"]
        try:
            child = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=LONGEST, check=False
            )
        except subprocess.TimeoutExpired:
            return f"no end after {LONGEST} s", time.monotonic() - start
        found = re.search(r"^(?:FAILED|ERROR) tests/kernels/(.+?)(?: - |$)", child.stdout, re.MULTILINE)
        if child.returncode not in {0, 1} or (child.returncode == 1 and not found):
            raise SystemExit(f"{fault.what}: pytest ended with {child.returncode}\n{child.stdout}{child.stderr}")
        return found[1] if found else None, time.monotonic() - start


def main(words):
    """Plant the faults whose description or file holds one of `words`, all without words; return the exit status."""
    faults = [f for f in FAULTS if not words or any(word in f"{f.what} {f.file}" for word in words)]
    table = Table("taken out", "file", "found by", "seconds", title="Planted faults")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(find, faults))
    for fault, (test, seconds) in zip(faults, results, strict=True):
        table.add_row(fault.what, fault.file, test or "[bold red]no test", f"{seconds:.0f}")
    Console(width=160).print(table)
    return 1 if any(test is None for test, _ in results) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
