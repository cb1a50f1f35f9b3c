"""`python -m benchmarks.host`: what lucid's CUDA path costs the host, beside what PyTorch costs it on the CPU.

lucid runs on a simulated device that does no work (LUCID_SIMULATOR_EXECUTE=0), so that nothing is timed but Python,
CuPy and the calls of the driver, which are cheaper there than a GPU's. PyTorch runs on CPU tensors of the smallest
sizes, so that its kernels cost next to nothing. One thread, one process. Times are no times of a GPU.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks import command
from benchmarks.hooks import identity, ignore
from benchmarks.measure import Peer, Row, looped
from benchmarks.models import blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.measure import Result, Sampler

    Op = tuple[Callable[..., Any], tuple[Any, ...]]  # a function, and its operands behind the first

THREADS = 1
ENVIRONMENT = {
    "LUCID_CUDA_SIMULATOR": "1",
    "LUCID_SIMULATOR_EXECUTE": "0",
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(THREADS)),
}
LENGTH = 50  # nodes of a graph
PARAMETERS = 150
COUNTED = "launches", "library", "copies", "allocations"


class Work(NamedTuple):
    """What is called, what makes the argument of each call, and how many items a call works through."""

    call: Callable[..., object]
    prepare: Callable[[], object] | None = None
    per: int = 1


def on_the_host(
    peer: Peer, call: Callable[..., object], prepare: Callable[[], object] | None = None, per: int = 1
) -> Sampler:
    """Return the sampler of the processor's time: nothing waits here, but for processors that others use."""
    return looped(peer, call, prepare=prepare, per=per, clock=time.process_time)


@dataclass(frozen=True)
class Case:
    """A row whose calls can also be counted."""

    name: str
    goal: float | None
    make: Callable[[Peer], Work]

    def row(self) -> Row:
        return Row(self.name, self.goal, self.sampler)

    def sampler(self, peer: Peer) -> Sampler:
        return on_the_host(peer, *self.make(peer))


# ---- the rows ----


def side(peer: Peer) -> int:
    """Return the length of a dimension: as in training where no work is done, else the least."""
    return 1 if peer.device == "cpu" else 128


def matrix(peer: Peer, *, requires_grad: bool = True) -> Any:
    return peer.tensor(np.ones((side(peer),) * 2, np.float32), requires_grad=requires_grad)


def vector(peer: Peer) -> Any:
    return peer.tensor(np.ones(side(peer), np.float32), requires_grad=True)


def linear(peer: Peer) -> Op:
    return peer.lib.nn.functional.linear, (matrix(peer), vector(peer))


def layer_norm(peer: Peer) -> Op:
    function, shape = peer.lib.nn.functional.layer_norm, (side(peer),)
    return lambda x, weight, bias: function(x, shape, weight, bias), (vector(peer), vector(peer))


def softmax(peer: Peer) -> Op:
    return partial(peer.lib.nn.functional.softmax, dim=-1), ()


def alone(function: Callable[..., Any]) -> Callable[[Peer], Op]:
    """Return what makes `function` and no further operand."""
    return lambda _: (function, ())


def with_a_matrix(function: Callable[..., Any], *, requires_grad: bool = True) -> Callable[[Peer], Op]:
    """Return what makes `function` and its second operand."""
    return lambda peer: (function, (matrix(peer, requires_grad=requires_grad),))


def forward(make: Callable[[Peer], Op]) -> Callable[[Peer], Work]:
    """Return the work of one op that is recorded."""

    def work(peer: Peer) -> Work:
        function, operands = make(peer)
        return Work(partial(function, matrix(peer), *operands))

    return work


def backward(make: Callable[[Peer], Op], *, hooked: bool = False) -> Callable[[Peer], Work]:
    """Return the work of one node of a chain; each has parameters of its own, without a gradient so far."""

    def work(peer: Peer) -> Work:
        function, operands = make(peer)
        x, upstream = matrix(peer, requires_grad=False), matrix(peer, requires_grad=False)

        def own(operand: Any) -> Any:
            if not operand.requires_grad:
                return operand
            leaf = operand.detach().requires_grad_()
            if hooked:
                leaf.register_post_accumulate_grad_hook(ignore)
            return leaf

        def graph() -> Any:
            y = x.detach().requires_grad_()
            for _ in range(LENGTH):
                y = function(y, *map(own, operands))
            return y

        return Work(lambda y: y.backward(upstream), graph, LENGTH)

    return work


def plain(call: Callable[..., Any], operands: int = 2) -> Callable[[Peer], Work]:
    """Return the work of an op that records nothing."""
    return lambda peer: Work(partial(call, *(matrix(peer, requires_grad=False) for _ in range(operands))))


def block(*, backward: bool) -> Callable[[Peer], Work]:
    """Return the work of a block of a GPT."""

    def work(peer: Peer) -> Work:
        batch, context, width, heads = (1, 1, 1, 1) if peer.device == "cpu" else (8, 64, 128, 4)
        model = blocks(peer, 1, context, width, heads)
        x = peer.tensor(np.ones((batch, context, width), np.float32), requires_grad=True)
        upstream = x.detach()

        def both() -> None:
            x.grad = None
            model.zero_grad()
            model(x).backward(upstream)

        return Work(both if backward else partial(model, x))

    return work


def step(layers: int) -> Callable[[Peer], Work]:
    """Return the work of a training step of a GPT's blocks: captured on CUDA, and on the CPU done as always."""

    def work(peer: Peer) -> Work:
        batch, context, width, heads = (1, 1, 1, 1) if peer.device == "cpu" else (8, 64, 128, 4)
        model = blocks(peer, layers, context, width, heads)
        optimizer = peer.lib.optim.AdamW(model.parameters(), lr=1e-3, foreach=True, capturable=peer.device != "cpu")
        x = peer.tensor(np.ones((batch, context, width), np.float32))

        def train(x: Any) -> Any:
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            peer.lib.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            return loss

        if peer.device == "cpu":
            return Work(partial(train, x))
        graphed = peer.lib.cuda.graphed_step(train, x)
        for _ in range(4):
            graphed(x)
        return Work(partial(graphed, x))

    return work


def parameters(peer: Peer) -> list[Any]:
    """Return parameters that have gradients."""
    made = [matrix(peer) for _ in range(PARAMETERS)]
    for parameter in made:
        parameter.grad = matrix(peer, requires_grad=False)
    return made


def adamw(peer: Peer) -> Work:
    return Work(peer.lib.optim.AdamW(parameters(peer), lr=1e-3, foreach=True).step)


def clipping(peer: Peer) -> Work:
    return Work(partial(peer.lib.nn.utils.clip_grad_norm_, parameters(peer), 1.0, foreach=True))


def module(registration: str | None = None) -> Callable[[Peer], Work]:
    """Return the work of a call of a module that returns its input, with one hook or without."""

    def work(peer: Peer) -> Work:
        made = identity(peer)
        if registration:
            getattr(made, registration)(ignore)
        return Work(partial(made, matrix(peer)))

    return work


def empty(peer: Peer) -> Work:
    return Work(partial(peer.lib.empty, side(peer), device=peer.device))


add = with_a_matrix(lambda x, y: x + y)
add_constant = with_a_matrix(lambda x, y: x + y, requires_grad=False)
times_constant = with_a_matrix(lambda x, y: x * y, requires_grad=False)
matmul = with_a_matrix(lambda x, y: x @ y)

CASES = [
    Case("add, recorded", 2.0, forward(add)),
    Case("add, no grad", 3.0, plain(lambda x, y: x + y)),
    Case("add_ in place, no grad", 3.0, plain(lambda x, y: x.add_(y))),
    Case("softmax", 2.5, forward(softmax)),
    Case("layer norm", 2.5, forward(layer_norm)),
    Case("sum", 2.5, forward(alone(lambda x: x.sum()))),
    Case("matmul", 2.5, forward(matmul)),
    Case("linear with bias", 2.5, forward(linear)),
    Case("backward per node: add of a constant", 1.0, backward(add_constant)),
    Case("backward per node: times a constant", 1.0, backward(times_constant)),
    Case("backward per node: softmax", 1.0, backward(softmax)),
    Case("backward per node: layer norm", 1.0, backward(layer_norm)),
    Case("backward per node: matmul", 1.0, backward(matmul)),
    Case("backward per node: linear with bias", 1.0, backward(linear)),
    Case("GPT block, forward", 1.5, block(backward=False)),
    Case("GPT block, forward and backward", 1.5, block(backward=True)),
    Case(f"AdamW of {PARAMETERS} parameters, foreach", 0.06, adamw),
    Case(f"clip_grad_norm_ of {PARAMETERS} parameters, foreach", 0.5, clipping),
    Case("step of a GPT block, captured", None, step(1)),
    Case("step of 12 GPT blocks, captured", None, step(12)),
    Case("module call", None, module()),
    Case("module call, forward hook", None, module("register_forward_hook")),
    Case("module call, full backward hook, recorded", None, module("register_full_backward_hook")),
    Case("backward per node: add of a parameter", None, backward(add)),
    Case("the same with a post-accumulate hook", None, backward(add, hooked=True)),
    Case("reshape", None, forward(alone(lambda x: x.reshape(-1)))),
    Case("transpose", None, forward(alone(lambda x: x.transpose(0, 1)))),
    Case("slice, x[:, :1]", None, forward(alone(lambda x: x[:, :1]))),
    Case("empty", None, empty),
]


# ---- what belongs to a row of lucid's beside its time ----


def asked(case: Case) -> dict[str, float]:
    """Return how often each of COUNTED is asked of the device for an item."""
    import cupy

    from lucid.cuda.simulator import counters

    call, prepare, per = case.make(Peer("lucid", "cuda"))
    handed_out = 0

    def hand_out(**_: int) -> None:
        nonlocal handed_out
        handed_out += 1

    # The simulator counts allocations by a hook too, which it leaves out where nothing is executed.
    hook = cupy.cuda.MemoryHook()
    hook.malloc_postprocess = hand_out
    for _ in range(2):  # by the second time what is made once is there
        arguments = () if prepare is None else (prepare(),)
        counters.reset()
        handed_out = 0
        with hook:
            call(*arguments)
    return {name: (handed_out if name == "allocations" else getattr(counters, name)) / per for name in COUNTED}


def parts(rounds: int) -> dict[str, float]:
    """Return the microseconds of a launch, a call of cuBLAS and an allocation, each done from Python at the least."""
    import cupy

    from lucid.base import gpu
    from lucid.cuda.launch import kernels
    from lucid.cuda.launch.parameters import Parameters

    peer, name, signature = Peer("lucid", "cuda"), "nothing", "PPPq"
    source = f'extern "C" __global__ void {name}(const void*, const void*, void*, long long) {{}}'
    handle = kernels.driver().load(kernels.Unit(name, name, source, {name: signature}))[name]
    parameters = Parameters(signature)
    words, start, extra = parameters.words, parameters.start, parameters.extra
    driver = kernels.driver()
    stream, make = driver.stream().ptr, gpu.array_maker()
    x = cupy.ndarray((128, 128), np.float32)
    cublas, blas, one = cupy.cuda.cublas, cupy.cuda.device.get_cublas_handle(), np.ones(1, np.float32)
    factor, operand, matrices = one.ctypes.data, (x.data.ptr, 128), (128, 128, 128)

    def launch() -> None:
        parameters.pack(words, start, x.data.ptr, x.data.ptr, x.data.ptr, x.size)
        driver.launch(handle, 1, 1, 1, 128, 1, 1, 0, stream, 0, extra)

    calls: dict[str, Callable[[], object]] = {
        "launches": launch,
        "library": lambda: cublas.sgemm(blas, 0, 0, *matrices, factor, *operand, *operand, factor, *operand),
        "allocations": lambda: make((128, 128), np.float32),
    }
    samplers = {name: on_the_host(peer, call) for name, call in calls.items()}
    return {name: min(sample() for _ in range(rounds)) for name, sample in samplers.items()}


def with_floor(told: dict[str, float], costs: dict[str, float]) -> dict[str, float]:
    """Add as `floor` the microseconds that what a row asks for takes alone."""
    return {**told, "floor": sum(cost * told[name] for name, cost in costs.items())}


def show(results: Sequence[Result], beside: Sequence[dict[str, float]], costs: dict[str, float], rounds: int) -> None:
    """Print the table, and what its floors are made of."""
    more = {
        heading: [f"{row[name]:{form}}" if row else "" for row in beside]
        for heading, name, form in (
            ("launches", "launches", "g"),
            ("cuBLAS", "library", "g"),
            ("allocations", "allocations", "g"),
            ("floor", "floor", ",.2f"),
        )
    }
    title = f"Host time of lucid on CUDA (simulated, nothing executed) and PyTorch on the CPU, {rounds} rounds"
    command.show(results, title, more)
    words = {"launches": "a launch", "library": "a call of cuBLAS", "allocations": "an allocation"}
    print("floor:", ", ".join(f"{words[name]} {cost:.2f} us" for name, cost in costs.items()))


def main(argv: Sequence[str] | None = None) -> int:
    given = sys.argv[1:] if argv is None else list(argv)
    options = command.parser("python -m benchmarks.host", __doc__).parse_args(given)
    if any(os.environ.get(name) != value for name, value in ENVIRONMENT.items()):
        # They are read when NumPy and lucid are imported.
        again = [sys.executable, "-m", "benchmarks.host", *given]
        return subprocess.run(again, env={**os.environ, **ENVIRONMENT}, check=False).returncode
    results = command.measured([case.row() for case in CASES], options, (Peer("lucid", "cuda"), Peer("torch")), THREADS)
    if not results:
        return 2
    costs, cases = parts(options.rounds), {case.name: case for case in CASES}
    beside = [{} if row.not_run else with_floor(asked(cases[row.name]), costs) for row in results]
    show(results, beside, costs, options.rounds)
    path = options.json
    if path is None and len(results) == len(CASES) and not options.quick:
        path = command.RESULTS / "host.json"
    if path is not None:
        import cupy

        head = {"device": "simulated, nothing executed", "threads": THREADS, "cupy": cupy.__version__}
        command.write(path, results, beside, **head, parts=costs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
