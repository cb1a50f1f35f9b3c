"""Faults planted in the kernels, each of which a test must find: `python -m tests.kernels.planted_faults`.

A fault changes one place of one file in a copy of the checkout; the tests named beside it then run on the simulated
device and have to fail. Whatever survives is a hole in the tests, and the exit status is 1.
"""

from __future__ import annotations

import os
import re
import shlex
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
    """One mistake: the text `old` of a file, at its occurrence `number`, becomes `new`; `tests` are for pytest.

    `file` is the name of one in kernels/, and `tests` is the name of one in tests/kernels/, unless they have a folder.
    """

    what: str
    file: str
    old: str
    new: str
    tests: str
    number: int = 0

    @property
    def path(self):
        """Where the file is in the checkout."""
        if "/" in self.file:
            return Path(self.file)
        (path,) = (ROOT / "kernels").rglob(self.file)
        return path.relative_to(ROOT)

    def plant(self, text):
        """Return the text with the fault in it."""
        places = [match.start() for match in re.finditer(re.escape(self.old), text)]
        if self.number >= len(places):
            raise SystemExit(f"{self.file} no longer holds {self.old!r}: adapt the fault {self.what!r}")
        at = places[self.number]
        return text[:at] + self.new + text[at + len(self.old) :]


BARRIER = "__syncthreads();"
TILES = "test_attention.py -k 'test_values and tiles and heads'"
FAULTS = [
    Fault("barrier before parts are merged", "lucid.cuh", BARRIER, "", "test_gradients.py -k of_all", 1),
    Fault("barrier between two reductions", "lucid.cuh", BARRIER, "",
          "tests/cuda/simulator/execution/test_scheduler.py -k block_reductions"),
    Fault("barrier between two sums of rows", "normalisation.cu", BARRIER, "", "test_normalisation.py -k forward"),
    Fault("barrier inside the tree over columns", "reduction.cuh", BARRIER, "", "test_reduction.py -k mix_of_axes", 3),
    Fault("barrier between two sums of a block", "reduction.cuh", BARRIER, "", "test_cross_entropy.py -k shape6"),
    Fault("barrier between two tiles of a block", "copying.cu", BARRIER, "", "test_transposition.py -k several", 1),
    Fault("barrier between two scans", "cumulative.cu", BARRIER, "", "test_cumulative.py -k sums"),
    Fault("barrier of a scan", "cumulative.cu", BARRIER, "", "test_cumulative.py -k sums", 1),
    Fault("barrier after a tile of keys was loaded", "attention_tiles.cu", BARRIER, "", TILES),
    Fault("barrier before values replace the keys", "attention_tiles.cu", BARRIER, "", TILES, 1),
    Fault("barrier before weights meet the values", "attention_tiles.cu", BARRIER, "", TILES, 2),
    Fault("barrier before the next tile of keys", "attention_tiles.cu", BARRIER, "", TILES, 3),
    Fault("bound of a row's length", "rows.cuh", "if (c < length) row_c[c] =", "row_c[c] =", "test_softmax.py -k rows"),
    Fault("bound of a grid's rows", "softmax.cu", "if (n < rows) write_row", "write_row", "test_softmax.py -k rows"),
    Fault("bound of the columns", "reduction.cuh", "if (column + k < columns) finish", "finish",
          "test_reduction.py -k mix_of_axes"),
    Fault("bound of an index", "indexing.cu", "if (place < 0 || place == skipped) continue;", "",
          "test_indexing.py -k outside"),
    Fault("bound of a window", "pooling.cu", "h >= 0 && h < windows.y.size && ", "", "test_pooling.py -k mean", 1),
    Fault("bound of a line", "cumulative.cu", "c < part.last ? line.at(op, c) : op.identity()", "line.at(op, c)",
          "test_cumulative.py -k sums"),
    Fault("bound of a pack", "normalisation.cu", "if (l < length) read_pack", "read_pack",
          "test_normalisation.py -k forward"),
    Fault("mask of later keys", "attention.cuh", "problem.causal && key > query", "false",
          "test_attention.py -k 'test_values and more'"),
    Fault("mask of ignored targets", "cross_entropy.cu", "t != ignore_index", "true",
          "test_cross_entropy.py -k ignored"),
    Fault("mask of an embedding's padding", "indexing.cu", " || place == skipped", "",
          "test_embedding.py -k test_gradient"),
    Fault("mask of dropped weights", "attention_tiles.cu", " * mask.kept(tile + lane + 16 * j)", "",
          "test_attention.py -k 'dropout and tiles'"),
    Fault("stride of the first dimension", "elementwise.cuh", "(d ? 1 : width)", "1",
          "test_elementwise.py -k every_layout"),
    Fault("stride of a gathered table", "indexing.cu", "place * places.along", "place", "test_indexing.py -k index"),
    Fault("identity of a maximum", "lucid.cuh", "return -INFINITY", "return 0", "test_reduction.py -k each"),
    Fault("parts that share an element, counted by another", "pooling.cu", "rows.exchanged().count((int)h)",
          "rows.exchanged().count((int)y)", "test_pooling.py -k test_parts"),
    Fault("range of a running product", "cumulative.cu", "RealOf<double>", "RealOf<float>",
          "test_cumulative.py -k come_back"),
    Fault("range of squares where parts are merged", "statistics.cu", "(double)distance * (double)distance *",
          "distance * distance *", "test_reduction.py -k leave_the_range"),
    Fault("NaN in a maximum", "lucid.cuh", "a > b || a != a ? a : b", "a > b ? a : b", "test_reduction.py -k nan"),
    Fault("flag that keeps Adam's parameters", "steps.cuh", "if (found && *found != 0) return false;", "",
          "tests/amp/test_grad_scaler.py -k 'left_out_on and AdamW'"),
    Fault("flag that keeps SGD's parameters", "steps.cuh", "if (found && *found != 0) return false;", "",
          "tests/amp/test_grad_scaler.py -k 'left_out_on and SGD'"),
    Fault("flag that keeps a count", "numbers.cuh", "if (found && *found != 0) return *step;", "",
          "test_numbers.py -k flag"),
    Fault("row that numbers are of", "steps.cuh", "numbers_t[chunk_of_block(tensors, rows, chunk).row]", "numbers_t[0]",
          "tests/optim/base/test_capturing.py -k own"),
    Fault("rows of a second launch", "lucid/cuda/steps/numbers.py", "self.address(start))", "self.address(0))",
          "tests/optim/base/test_capturing.py -k many"),
    Fault("memory that a graph's temporaries write", "lucid/cuda/steps/numbers.py",
          "array_apart if gpu.is_capturing() else ", "", "tests/amp/test_grad_scaler.py -k bit_by_bit"),
    Fault("settings that are recorded in place of written", "lucid/optim/base/forms.py",
          "write = not self._asked.captured or capture_of_this_thread() is None", "write = True",
          "tests/optim/base/test_capturing.py -k take_effect"),
    Fault("scale in float32", "gradients.cu", "*narrow = (float)*scale;", "", "test_numbers.py -k grows"),
    Fault("scale on the device", "gradients.cu", "scale ? 1 / *scale : factor_", "factor_",
          "tests/amp/test_grad_scaler.py -k follows"),
]  # fmt: skip


def checkout(fault, folder):
    """Make a checkout in `folder` that has the fault, and links to everything that is as it was."""
    kept, copied = {".git", ".pytest_cache", "__pycache__"}, fault.path.parent
    for place in reversed([copied, *copied.parents]):
        (folder / place).mkdir(exist_ok=True)
        for path in (ROOT / place).iterdir():
            here = folder / place / path.name
            if path.name not in kept and path.relative_to(ROOT) not in {copied, *copied.parents}:
                here.symlink_to(path)
    planted = folder / fault.path
    planted.unlink()
    planted.write_text(fault.plant((ROOT / fault.path).read_text(encoding="utf-8")), encoding="utf-8")


def find(fault):
    """Return the test that found a fault, or None, and how long that took."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        checkout(fault, folder)
        environment = {
            **os.environ,
            "PYTHONPATH": str(folder),
            "LUCID_CUDA_SIMULATOR": "2",
            "LUCID_TEST_DEVICE": "cuda",
            "LUCID_SIMULATOR_SANITIZE": "1",
            "LUCID_SIMULATOR_SEED": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        tests, *chosen = shlex.split(fault.tests)
        if "/" not in tests:
            (path,) = (ROOT / "tests" / "kernels").rglob(tests)
            tests = str(path.relative_to(ROOT))
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", tests, *chosen]
        try:
            child = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=LONGEST, check=False
            )
        except subprocess.TimeoutExpired:
            return f"no end after {LONGEST} s", time.monotonic() - start
        found = re.search(r"^(?:FAILED|ERROR) tests/(?:kernels/)?(.+?)(?: - |$)", child.stdout, re.MULTILINE)
        if child.returncode not in {0, 1} or (child.returncode == 1 and not found):
            raise SystemExit(f"{fault.what}: pytest ended with {child.returncode}\n{child.stdout}{child.stderr}")
        return found[1] if found else None, time.monotonic() - start


def main(words, known=FAULTS):
    """Plant the faults whose description or file holds one of `words`, all without words; return the exit status."""
    faults = [f for f in known if not words or any(word in f"{f.what} {f.file}" for word in words)]
    table = Table("taken out", "file", "found by", "seconds", title="Planted faults")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(find, faults))
    for fault, (test, seconds) in zip(faults, results, strict=True):
        table.add_row(fault.what, fault.file, test or "[bold red]no test", f"{seconds:.0f}")
    Console(width=160).print(table)
    return 1 if any(test is None for test, _ in results) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
