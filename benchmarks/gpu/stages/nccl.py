"""Collectives over NCCL in a process that is alone on its GPU: dtypes, streams, captures and the end by an abort.

NCCL takes no two processes on one GPU, so that nothing is said of several. Beside a simulated device a stand-in copies.
"""

from __future__ import annotations

import time
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from benchmarks.gpu import device
from benchmarks.gpu.rows import Row, Stage, working

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.gpu.rows import Scope

    Told = dict[str, object]

LIMIT = 20.0  # seconds that anything of NCCL's may take


@cache
def library() -> Any:
    """Return nccl4py; beside a simulated device what the tests have in its place."""
    from lucid.collectives.engines import communicator, queued

    if not device.simulated():
        return communicator.library()
    from tests.collectives.engines.alone import Library

    made = Library()
    modules: list[Any] = [communicator, queued]
    for module in modules:
        module.library = lambda: made
    return made


def joined() -> Any:
    """Return a group of this process alone, whose CUDA tensors go through NCCL."""
    from lucid.collectives.engines.communicator import Peers
    from lucid.collectives.engines.nccl import NcclEngine
    from lucid.collectives.group import ProcessGroup
    from lucid.collectives.job.watch import Watch

    library()
    watch = Watch.of_one()
    engine = NcclEngine(Peers("one", (0,), watch, None), LIMIT)
    return ProcessGroup("one", (0,), watch, LIMIT, {"cuda": lambda: engine})


_groups: list[Any] = []


def group() -> Any:
    """Return the group of the rows, another one where a row has broken it."""
    if not _groups or _groups[-1].broken:
        _groups.append(joined())
    return _groups[-1]


def connect() -> Told:
    """Return versions, and how long the first collective takes, which connects."""
    import lucid

    begun = time.perf_counter()
    lucid.distributed.all_reduce(lucid.ones(1, device="cuda"), group=group())
    device.synchronize()
    told: Told = {"connecting": round(time.perf_counter() - begun, 3)}
    if not device.simulated():
        found = library().get_version()
        told |= {"nccl4py": str(found.nccl4py), "libnccl": str(found.libnccl)}
    return told


def same(name: str, x: Any, call: Callable[[Any], Any]) -> None:
    """Raise unless a tensor has its own bits after a collective, which one process changes nothing by."""
    before = x.cpu().array.tobytes()
    result = call(x)
    if (x if result is None else result).cpu().array.tobytes() != before:
        message = f"{name} of {x.dtype} has other bits"
        raise AssertionError(message)


def numbers(dtype: str) -> Told:
    """Try every collective and operation of a dtype: of one process each gives back what it was given."""
    import lucid
    from lucid import distributed as dist
    from lucid.collectives.engines.forms import form_of
    from lucid.collectives.reduction import check_op
    from lucid.errors import DtypeError

    kind, ours = getattr(lucid, dtype), group()
    engine = ours.engine("cuda")
    x = (lucid.arange(1000, device="cuda") % 7 - 3 * kind.is_signed).to(kind)
    tried = 0
    for op in dist.ReduceOp:
        try:
            form_of(x.array, check_op(op, x.array))
        except DtypeError:
            continue
        same(f"all_reduce {op.name}", x.clone(), partial(dist.all_reduce, op=op, group=ours))
        same(f"reduce {op.name}", x.clone(), partial(dist.reduce, dst=0, op=op, group=ours))
        tried += 2

    def filled(call: Callable[[Any, Any], object], given: Any) -> Any:
        call(into := lucid.zeros_like(given), given)
        return into

    for name in ("all_gather_into_tensor", "reduce_scatter_tensor", "all_to_all_single"):
        same(name, x, partial(filled, partial(getattr(dist, name), group=ours)))
    same("broadcast", x, partial(dist.broadcast, src=0, group=ours))
    if kind.is_floating_point or kind.is_complex:
        same(
            "tree",
            x,
            lambda x: ours.begin(engine, "tree", "", partial(engine.tree_all_reduce, x.array), 2).wait() and x,
        )
    return {"tried": tried + 4}


def streams() -> Told:
    """Reduce, on its stream, what the current stream is still computing, in memory that is given out at once again."""
    import lucid
    from lucid import distributed as dist

    size, rounds = (64, 3) if device.simulated() else (2048, 50)
    wrong = 0
    with lucid.cuda.stream(lucid.cuda.Stream()):
        product = lucid.eye(size, device="cuda")
        for number in range(rounds):
            x = lucid.full((size, size), float(number), device="cuda")
            for _ in range(4):
                x = x @ product
            half = size // 2
            parts = x[:half], x[half:, :half]
            works: list[Any] = [dist.all_reduce(part, group=group(), async_op=True) for part in parts]
            for work in works:
                work.wait()
            wrong += int((x != number).sum().item())
            del x, parts, works
    return {"ok": not wrong, "wrong": wrong, "rounds": rounds}


def capture(reduction: str) -> Told:
    """Return whether a captured step of DistributedDataParallel has the bits of the eager one."""
    import lucid
    from lucid import nn
    from lucid.nn.parallel import DistributedDataParallel

    found: list[list[Any]] = []
    for captured in (False, True):
        lucid.manual_seed(0)
        model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8)).to("cuda")
        wrapped = DistributedDataParallel(model, process_group=group(), bucket_cap_mb=0.005, reduction=reduction)
        wrapped.reducer.attach()  # which a process that is alone does not need
        optimizer = lucid.optim.AdamW(wrapped.parameters(), lr=1e-2, capturable=True)

        def step(x: Any, wrapped: Any = wrapped, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = (wrapped(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        x = lucid.ones(16, 32, device="cuda")
        call = lucid.cuda.graphed_step(step, x) if captured else step
        losses = [call(x).item() for _ in range(8)]
        found.append([losses, [p.detach().cpu().array.tobytes() for p in model.parameters()]])
    return {"ok": found[0] == found[1], "losses": found[0][0], "captured_losses": found[1][0]}


def abort() -> Told:
    """Give a communicator up while something is under way: the device goes on, and the group says why it does not."""
    import lucid
    from lucid import distributed as dist
    from lucid.errors import DistributedError

    ours = joined()
    engine = ours.engine("cuda")
    dist.all_reduce(lucid.ones(1, device="cuda"), group=ours)
    x = lucid.ones(1000 if device.simulated() else 10_000_000, device="cuda")
    work: Any = dist.all_reduce(x, group=ours, async_op=True)
    begun = time.perf_counter()
    work.fail(DistributedError("as of a process that has failed"))
    engine.abort()
    device.synchronize()
    took = time.perf_counter() - begun
    said = ""
    try:
        dist.all_reduce(x, group=ours)
    except DistributedError as error:
        said = str(error)
    usable = lucid.ones(10, device="cuda").sum().item() == 10.0
    return {"ok": usable and "no use any more" in said, "seconds_of_abort": round(took, 4), "said": said}


def cost(mib: float) -> Told:
    """Return how long the device and the host take for an all_reduce of one process, and the host for beginning it."""
    import lucid
    from lucid import distributed as dist

    x = lucid.ones(int(mib * 2 ** (11 if device.simulated() else 18)) + 1, device="cuda")
    call = partial(dist.all_reduce, x, group=group())
    rounds = 3 if device.simulated() else 30
    seconds = device.seconds(call, rounds=rounds)
    begun = time.perf_counter()
    for _ in range(rounds):
        call()
    host = (time.perf_counter() - begun) / rounds
    device.synchronize()
    return {"microseconds": round(seconds * 1e6, 1), "host_microseconds": round(host * 1e6, 1)}


def rows(_: Scope) -> Sequence[Row]:
    from lucid.base.dtype import DTYPES

    return [
        Row("connect", connect),
        *[Row(f"numbers {name}", partial(numbers, name)) for name in DTYPES],
        Row("streams", streams),
        *[Row(f"capture {each}", partial(capture, each)) for each in ("engine", "tree")],
        *[Row(f"cost {mib:g} MiB", partial(cost, mib)) for mib in (0.001, 1, 25)],
        Row("abort", abort),
    ]


STAGE = Stage(working(rows), rehearsed=8)
