"""One of two processes that train an MLP of eight layers: `python -m benchmarks.distributed.job LIBRARY WAY MIB`.

Each step that puts gradients together is paired with one that does not; the first process prints the median of the
differences, in milliseconds. WAY is "during" (buckets sent while backward goes on), "after" (the same buckets when it
is over) or "tree" (in a fixed order, of lucid alone).
"""

from __future__ import annotations

import importlib
import statistics
import sys
import time
from typing import Any

WIDTH, LAYERS, BATCH = 512, 8, 64  # 8 MiB of gradients
PAIRS, WARM = 40, 5


def main(name: str, way: str, mib: float) -> None:
    """Train, and print."""
    lib: Any = importlib.import_module(name)
    dist: Any = importlib.import_module(f"{name}.distributed")
    parallel: Any = importlib.import_module(f"{name}.nn.parallel")
    if name == "torch":
        lib.set_num_threads(1)
    dist.init_process_group("gloo" if name == "torch" else "mpi")
    lib.manual_seed(dist.get_rank())
    model = lib.nn.Sequential(*[lib.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])
    settings = {"reduction": "tree"} if way == "tree" else {}
    wrapped = parallel.DistributedDataParallel(model, bucket_cap_mb=mib, **settings)
    x = lib.randn(BATCH, WIDTH)
    buckets = [list(model[i].parameters()) for i in reversed(range(LAYERS))]

    def step(*, together: bool) -> float:
        wrapped.zero_grad()
        dist.barrier()
        start = time.perf_counter()
        if together and way != "after":
            wrapped(x).sum().backward()
        else:
            with wrapped.no_sync():
                wrapped(x).sum().backward()
        if together and way == "after":
            for bucket in buckets:
                for parameter in bucket:
                    dist.all_reduce(parameter.grad)
                    parameter.grad /= 2
        return time.perf_counter() - start

    for _ in range(WARM):
        step(together=True)
    pairs = [step(together=True) - step(together=False) for _ in range(PAIRS)]
    if dist.get_rank() == 0:
        print(1e3 * statistics.median(pairs))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
