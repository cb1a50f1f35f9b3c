"""`python -m benchmarks`: the budget's rows, lucid beside PyTorch, as a table and as JSON."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

THREADS = 2
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = str(
        THREADS
    )  # NumPy's libraries read it once, when they are loaded: hence before the imports

from benchmarks import command, engine, hooks, models, ops, process  # noqa: E402
from benchmarks.distributed import rows  # noqa: E402
from benchmarks.measure import Peer  # noqa: E402

if TYPE_CHECKING:
    from benchmarks.measure import Row

ROWS: list[Row] = [
    *ops.ROWS[:2], *engine.ROWS, *hooks.ROWS, *models.ROWS, *ops.ROWS[2:], *process.ROWS, *rows.ROWS,
]  # fmt: skip


def main() -> int:
    parser = command.parser("python -m benchmarks", __doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where both peers work")
    options = parser.parse_args()
    peers = Peer("lucid", options.device), Peer("torch", options.device)
    results = command.measured(ROWS, options, peers, THREADS)
    if not results:
        return 2
    title = f"lucid and PyTorch on {options.device}, {THREADS} threads, medians of up to {options.rounds} rounds"
    command.show(results, title)
    path = options.json
    if path is None and len(results) == len(ROWS) and not options.quick:
        path = command.RESULTS / f"{options.device}.json"
    if path is not None:
        command.write(path, results, device=options.device, threads=THREADS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
