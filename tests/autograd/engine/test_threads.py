"""Section 10 of the hooks contract: hooks registered and removed by many threads while others run backward."""

from __future__ import annotations

import collections
import gc
import os
import sys
import threading
import time
import tracemalloc
from functools import partial
from pathlib import Path

import pytest

import lucid
from lucid import nn
from lucid.autograd.graph import register_multi_grad_hook
from tests.device import DEVICE
from tests.pieces import in_threads, leaf, raising

contract = pytest.mark.contract
THREADS = 100
# The whole million takes minutes; continuous integration runs a part of it.
CYCLES = int(os.environ.get("LUCID_HOOK_CYCLES", "2000" if DEVICE == "cpu" else "1000"))


# Where registries change and are read: between any two lines here another thread may come in.
RACY = tuple(
    str(Path("lucid", *path))
    for path in [
        ("autograd", "hooks", "table.py"),
        ("autograd", "hooks", "handle.py"),
        ("autograd", "hooks", "firing.py"),
        ("nn", "hooking", "calling.py"),
        ("autograd", "hooks", "gradients.py"),
        ("autograd", "graph.py"),
        ("autograd", "engine", "node.py"),
    ]
)


@pytest.fixture(autouse=True)
def switch_often():
    """Let Python switch threads as often as it can, and between the lines that matter, so that races show."""

    def at_line(frame, event, argument):
        if event == "line":
            time.sleep(0)
        return at_line

    def at_call(frame, event, argument):
        return at_line if frame.f_code.co_filename.endswith(RACY) else None

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threading.settrace(at_call)
    yield
    threading.settrace(None)
    sys.setswitchinterval(before)


def together(*works):
    """Run functions on a thread each, begun at the same moment; raise what the first of them raised."""
    barrier, errors = threading.Barrier(len(works)), []

    def run(work):
        barrier.wait()
        try:
            work()
        except BaseException as error:  # noqa: BLE001  it is raised where it is seen
            errors.append(error)

    in_threads(*[partial(run, work) for work in works])
    if errors:
        raise errors[0]


class Counter:
    """Counts its calls on any thread."""

    def __init__(self):
        self.calls = collections.deque()

    def __call__(self, *args):
        self.calls.append(threading.get_ident())

    def __len__(self):
        return len(self.calls)


@contract("10")
@pytest.mark.parametrize("recorded", [(True, True), (True, False), (False, False)])
def test_gradients_of_passes_of_any_kind_come_together(recorded):
    """Passes of several threads that reach one leaf each add their share, whether they are recorded or not."""
    w = leaf(1.0, 2.0, 3.0)

    def work(create_graph):
        for _ in range(20):
            (w * w.detach() + w).sum().backward(create_graph=create_graph)

    together(*[lambda create_graph=create_graph: work(create_graph) for create_graph in recorded * 2])
    assert w.grad.tolist() == [160.0, 240.0, 320.0]


@contract("10")
def test_hooks_come_and_go_while_backward_runs():
    """80 threads register and remove hooks of every kind on what 20 others run backward over: none of theirs is lost.

    The hooks that stay are called once for each pass, and the last of the others once more in a pass after all threads.
    """
    x = leaf(1.0)
    shared = x * 1.0
    node = shared.grad_fn
    stay = [Counter() for _ in range(6)]
    churn = Counter()
    x.register_hook(stay[0])
    x.register_post_accumulate_grad_hook(stay[1])
    shared.register_hook(stay[2])
    node.register_prehook(stay[3])
    node.register_hook(stay[4])
    register_multi_grad_hook([x, shared], stay[5])
    registrations = [
        x.register_hook,
        x.register_post_accumulate_grad_hook,
        shared.register_hook,
        node.register_prehook,
        node.register_hook,
        lambda hook: register_multi_grad_hook([x, shared], hook),
    ]

    def register(k):
        def work():
            for i in range(12):
                handle = registrations[(k + i) % len(registrations)](churn)
                if i % 3:
                    handle.remove()
                else:
                    with handle:
                        pass
                handle.remove()

        return work

    def run():
        for _ in range(10):
            (shared * 3.0).backward(retain_graph=True)

    together(*[register(k) if k % 5 else run for k in range(THREADS)])
    assert [len(counter) for counter in stay] == [200] * 6
    assert x.grad.tolist() == [600.0]
    before = len(churn)
    (shared * 3.0).backward(retain_graph=True)
    assert [len(counter) for counter in stay] == [201] * 6
    assert len(churn) == before


@contract("10")
def test_the_first_hooks_of_a_node_from_many_threads():
    """Hooks that many threads register at once on a tensor that had none are all called once, and all go."""
    for _ in range(4):
        x = leaf(1.0)
        y = x * 1.0
        counters = [Counter() for _ in range(THREADS)]
        kinds = [y.register_hook, y.grad_fn.register_hook, y.grad_fn.register_prehook, x.register_hook]
        handles = []
        together(
            *[lambda k=k, c=c: handles.append(kinds[k % len(kinds)](c)) for k, c in enumerate(counters)],
        )
        y.backward(retain_graph=True)
        assert [len(c) for c in counters] == [1] * THREADS
        together(*[handle.remove for handle in handles])
        y.backward(retain_graph=True)
        assert [len(c) for c in counters] == [1] * THREADS


@contract("10")
def test_one_callable_many_times():
    """Handles of one callable, registered often and removed by several threads twice each, take off one entry each."""
    x = leaf(1.0)
    counter, others = Counter(), [Counter() for _ in range(10)]
    handles = [x.register_hook(counter if k % 2 else others[k // 2 % 10]) for k in range(2 * THREADS)]
    doomed = handles[1::4]
    # each of the 50 by two threads
    together(*[handle.remove for handle in doomed * 2])
    (x * 2.0).backward()
    assert len(counter) == THREADS // 2
    assert [len(other) for other in others] == [THREADS // 10] * 10


@contract("10")
def test_hooks_over_several_tensors_in_concurrent_passes():
    """Each pass calls the "all" hook once with its own gradients and the "any" hook once, beside passes that raise."""
    x, y = leaf(1.0), leaf(2.0)
    sums, firsts = Counter(), Counter()
    wrong = []

    def check(grads):
        a, b = (g.item() for g in grads)
        if b != 2.0 * a:
            wrong.append((a, b))
        sums()

    register_multi_grad_hook([x, y], check)
    register_multi_grad_hook([x, y], firsts, mode="any")

    def run(k):
        def work():
            for _ in range(20):
                (x * float(k) + y * (2.0 * k)).backward()

        return work

    def fail():
        for _ in range(20):
            z = x * 1.0
            z.register_hook(raising(KeyError))
            with pytest.raises(KeyError):
                (z + y * 2.0).backward()

    together(*[run(k) if k % 10 else fail for k in range(1, 41)])
    assert wrong == []
    # each pass that raised had reached y before
    assert len(sums) == 36 * 20
    assert len(firsts) == 40 * 20


@contract("10")
def test_module_hooks_come_and_go_while_others_train():
    """80 threads register and remove module hooks of every kind while 20 run forward and backward: none is lost."""
    module = nn.Linear(2, 2, dtype=lucid.float64)
    stay = [Counter() for _ in range(4)]
    module.register_forward_pre_hook(stay[0])
    module.register_forward_hook(stay[1])
    module.register_full_backward_pre_hook(stay[2])
    module.register_full_backward_hook(stay[3])
    wrong = []

    def takes(count):
        def hook(*args):
            if len(args) != count:
                wrong.append((count, len(args)))

        return hook

    registrations = [
        lambda: module.register_forward_pre_hook(takes(2), prepend=True),
        lambda: module.register_forward_pre_hook(takes(3), with_kwargs=True),
        lambda: module.register_forward_hook(takes(3), prepend=True),
        lambda: module.register_forward_hook(takes(4), with_kwargs=True, always_call=True),
        lambda: module.register_full_backward_pre_hook(takes(2)),
        lambda: module.register_full_backward_hook(takes(3)),
        lambda: nn.register_module_forward_hook(takes(3)),
        lambda: nn.register_module_forward_hook(takes(4), with_kwargs=True),
    ]

    def register(k):
        def work():
            for i in range(8):
                handle = registrations[(k + i) % len(registrations)]()
                handle.remove()
                handle.remove()

        return work

    def run():
        x = lucid.ones(1, 2, dtype=lucid.float64, requires_grad=True)
        for _ in range(10):
            module(x).sum().backward()

    together(*[register(k) if k % 5 else run for k in range(THREADS)])
    assert wrong == []
    assert [len(counter) for counter in stay] == [200] * 4
    run()
    assert [len(counter) for counter in stay] == [210] * 4
    assert len(module._forward_hooks) == len(module._forward_pre_hooks) == len(module._backward_hooks) == 1
    assert len(module._forward_hooks_with_kwargs) == len(module._forward_hooks_always_called) == 0


@contract("10")
def test_checkpoints_in_concurrent_passes():
    """Threads that run backward over one checkpointed graph recompute for themselves and add up."""
    x = leaf(0.5)
    runs = Counter()

    def function(x):
        runs()
        return x.exp().sin()

    out = lucid.utils.checkpoint.checkpoint(function, x, use_reentrant=False, preserve_rng_state=False)
    out.backward(retain_graph=True)
    each = x.grad.item()
    x.grad = None

    def run():
        for _ in range(10):
            out.backward(retain_graph=True)

    together(*[run] * 10)
    assert x.grad.item() == pytest.approx(100 * each, rel=1e-12)
    assert len(runs) == 102


def test_cycles_of_registering_firing_and_removing_do_not_grow():
    """LUCID_HOOK_CYCLES cycles on tensors, nodes and modules leave no bytes and no objects behind."""
    module = nn.Identity()
    x = leaf(1.0)
    y = x * 2.0
    calls = [0]

    def hook(*args):
        calls[0] += 1

    def cycle(times):
        for _ in range(times):
            handle = x.register_hook(hook)
            after = y.grad_fn.register_hook(hook)
            y.backward(retain_graph=True)
            handle.remove()
            after.remove()
            with module.register_forward_hook(hook):
                module(x)

    cycle(100)
    calls[0] = 0
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        objects, (held, _) = len(gc.get_objects()), tracemalloc.get_traced_memory()
        cycle(CYCLES)
        more = len(gc.get_objects()) - objects
        # also empties the interpreter's lists of tuples to use again, which count as held
        in_cycles = gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - held
    finally:
        tracemalloc.stop()
        gc.enable()
    assert calls[0] == 3 * CYCLES
    assert more <= 20
    assert in_cycles <= 20
    assert grown <= 16_384
