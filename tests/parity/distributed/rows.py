"""What is asked of `lucid.distributed` and of `torch.distributed` alike; a process of either library runs all of it.

Each row is a function of the library, its `distributed`, the rank and the number of processes, and returns what is
compared: tensors, numbers, strings, or the errors of `refused`.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from pathlib import Path

DTYPES = "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64"
BUILTIN = ValueError, TypeError, RuntimeError


def refused(call):
    """Return which of Python's own kinds of error a call raises; "nothing" if none."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 - its kind is what is asked
        return [kind.__name__ for kind in BUILTIN if isinstance(error, kind)]
    return ["nothing"]


def made(t, rank, dtype="float32", shape=(2, 3)):
    """Return small numbers of a process."""
    count = 1
    for each in shape:
        count *= each
    return ((t.arange(count) * 7 + 3 * rank) % 5).reshape(shape).to(getattr(t, dtype))


def reductions(t, d, rank, size):
    """Return all_reduce of each operation in each dtype, where both define it."""
    got = {}
    for dtype in DTYPES:
        for op in "SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR":
            whole = not dtype.startswith(("f", "b", "c"))
            if (dtype == "complex64" and op in {"MIN", "MAX", "PRODUCT"}) or (op.startswith("B") and not whole):
                continue
            d.all_reduce(x := made(t, rank, dtype), getattr(d.ReduceOp, op))
            got[f"{dtype} {op}"] = x
    d.all_reduce(x := made(t, rank, shape=()))
    d.all_reduce(y := made(t, rank, shape=(2, 0)))
    d.reduce(z := made(t, rank), 1)
    loss = (t.ones(3, requires_grad=True) * (rank + 1)).sum()
    d.all_reduce(shown := loss.clone())
    return [got, x, y, z if rank == 1 else None, (shown / size).detach(), loss.detach()]


def moved(t, d, rank, size):
    """Return what the collectives that spread and gather give."""
    x = made(t, rank)
    into = [t.zeros(2, 3) for _ in range(size)]
    d.all_gather(into, x)
    joined = t.zeros(size * 2, 3)
    d.all_gather_into_tensor(joined, x)
    gathered = [t.zeros(2, 3) for _ in range(size)] if rank == 1 else None
    d.gather(x, gathered, dst=1)
    scattered = t.zeros(2, 3)
    d.scatter(scattered, [made(t, each) * 10 for each in range(size)] if rank == 0 else None, src=0)
    d.broadcast(y := x.clone(), src=1)
    part = t.zeros(1, 3)
    d.reduce_scatter_tensor(part, x)
    listed = t.zeros(3)
    d.reduce_scatter(listed, list(x))
    swapped = t.zeros(2, 3)
    d.all_to_all_single(swapped, x)
    uneven = t.zeros([3, 1][rank], 2)
    sent, received = ([1, 1], [1, 2]) if rank == 0 else ([2, 0], [1, 0])
    d.all_to_all_single(uneven, made(t, rank, shape=(2, 2)), received, sent)
    return [into, joined, gathered, scattered, y, part, listed, swapped, uneven]


def works(t, d, rank, size):
    """Return what asynchronous collectives say and give."""
    x, y = made(t, rank), made(t, rank, "int64")
    first, second = d.all_reduce(x, async_op=True), d.all_reduce(y, d.ReduceOp.MAX, async_op=True)
    said = [second.wait(), first.wait(), first.is_completed(), isinstance(first, d.Work)]
    return [said, x, y, d.all_reduce(x), d.barrier(), d.broadcast(x, 0)]


def pairs(t, d, rank, size):
    """Return what the two send each other."""
    x, other = t.zeros(2, 3), 1 - rank
    if rank == 0:
        d.send(made(t, 5), 1)
        source = d.recv(x, 1, tag=3)
    else:
        source = d.recv(x, 0)
        d.send(made(t, 6), 0, tag=3)
    work = d.isend(made(t, rank, "int32"), other)
    y = t.zeros(2, 3, dtype=t.int32)
    d.irecv(y, other).wait()
    work.wait()
    return [x, y, source]


def objects(t, d, rank, size):
    """Return what object lists hold afterwards."""
    every, some = [None] * size, [None] * size if rank == 1 else None
    d.all_gather_object(every, {"rank": rank})
    d.gather_object([rank], some, dst=1)
    d.broadcast_object_list(spread := ["x", rank] if rank == 0 else [None, None], src=0)
    d.scatter_object_list(got := [None], ["a", "b"] if rank == 0 else None, src=0)
    return [every, some, spread, got]


def groups(t, d, rank, size):
    """Return what groups of some answer and compute."""
    alone, both = d.new_group([1]), d.new_group([1, 0])
    x = made(t, rank)
    d.all_reduce(x, group=both)
    answers = [
        d.get_rank(alone), d.get_world_size(alone), d.get_rank(both), d.get_world_size(both),
        d.get_process_group_ranks(both), d.get_global_rank(both, 1), d.get_group_rank(both, 0), both.rank(),
        both.size(), d.get_rank(), d.get_world_size(), d.is_initialized(), d.is_available(),
        rank == 1 or refused(lambda: alone.rank()),
    ]  # fmt: skip
    return [x, answers]


def refusals(t, d, rank, size):
    """Return which kinds of error wrong calls raise, in all processes alike."""
    x = t.ones(2)
    return [
        refused(lambda: d.init_process_group("gloo")),
        refused(lambda: d.all_reduce([1.0])),
        refused(lambda: d.all_reduce(x, group="all")),
        refused(lambda: d.broadcast(x, 7)),
        refused(lambda: d.broadcast(x)),
        refused(lambda: d.broadcast(x, 0, group_src=0)),
        refused(lambda: d.all_gather(x, x)),
        refused(lambda: d.all_gather([t.ones(2)] * (size + 1), x)),
        refused(lambda: d.all_gather([t.ones(2, dtype=t.int32)] * size, x)),
        refused(lambda: d.gather(x, None, dst=rank)),
        refused(lambda: d.gather(x, [x] * size, dst=1 - rank)),
        refused(lambda: d.scatter(x, None, src=rank)),
        refused(lambda: d.scatter(x, [x] * size, src=1 - rank)),
        refused(lambda: d.new_group([0, 9])),
        refused(lambda: d.send(x, rank)),
        refused(lambda: d.get_global_rank(d.new_group(), 9)),
        refused(lambda: d.get_group_rank(d.new_group(), 9)),
        refused(lambda: d.all_to_all_single(t.ones(3), t.ones(3))),
        refused(lambda: d.all_reduce(t.ones(2, requires_grad=True))),
    ]


def views(t, d, rank, size):
    """Return what others that share the memory see, and the counters of versions."""
    base = made(t, rank)
    version = base._version
    d.all_reduce(base[0])
    d.all_reduce(column := base[:, 1].clone())
    base[:, 1] = column
    leaf = t.ones(2, requires_grad=True)
    d.all_reduce(leaf)
    return [base, base._version > version, leaf.requires_grad, leaf.is_leaf, leaf]


ROWS = reductions, moved, works, pairs, objects, groups, refusals, views


def plain(value):
    """Return a result as JSON takes it."""
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if hasattr(value, "tolist"):
        kind = str(value.dtype).rpartition(".")[2]
        numbers = [value.real.tolist(), value.imag.tolist()] if kind.startswith("complex") else value.tolist()
        return {"dtype": kind, "shape": list(value.shape), "numbers": numbers}
    return value


def main(library, folder):
    """Go through all rows, and write what they give."""
    warnings.simplefilter("ignore")
    t = importlib.import_module(library)
    d = importlib.import_module(f"{library}.distributed")
    d.init_process_group("gloo")
    rank, size = d.get_rank(), d.get_world_size()
    got = {row.__name__: plain(row(t, d, rank, size)) for row in ROWS}
    d.destroy_process_group()
    got["after"] = [d.is_initialized(), refused(lambda: d.all_reduce(t.ones(1)))]
    (Path(folder) / f"{library}{rank}.json").write_text(json.dumps(got))


if __name__ == "__main__":
    main(*sys.argv[1:])
