"""What a training step costs in launches, memory and waiting: bounds that a change for the worse runs into.

The counts come from the simulated device, in a process of its own, so that they are the same on every machine.
"""

from __future__ import annotations

import functools
import importlib.util
import json
from collections import Counter
from importlib.util import find_spec

import pytest

from benchmarks.measure import Peer
from tests.cuda import counts
from tests.pieces.children import python

pytestmark = pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason="counts simulated devices: needs CuPy")

# The most that a step may ask for: operations of the device in all, those of them that are calls of cuBLAS or CuPy,
# allocations, bytes of memory above what is held between steps, and bytes that go between processors and memory, each
# access counted; under the sanitizer a few loads more are left. Lower them when a change makes a step cheaper.
BOUNDS = {
    "digits": {
        "operations": 42, "library": 14, "allocations": 44, "peak": 244_736,
        "bytes_loaded": 2_971_056, "bytes_stored": 1_969_868,
    },
    "gpt": {
        "operations": 221, "library": 71, "allocations": 241, "peak": 255_488,
        "bytes_loaded": 2_683_408, "bytes_stored": 1_460_124,
    },
    "example": {
        "operations": 80, "library": 22, "allocations": 81, "peak": 565_760,
        "bytes_loaded": 3_833_800, "bytes_stored": 2_545_048,
    },
}  # fmt: skip
# What PyTorch does on the host alone; the steps of its optimizers are counted there.
NO_KERNEL = {"empty", "empty_like", "empty_strided", "new_empty", "_unsafe_view", "lift_fresh", "_local_scalar_dense"}
# Operations that are at least so many kernels on a GPU: a convolution adds its bias apart; gradients that are gathered
# into zeros fill them first; the gradient of an embedding sorts; affine parameters have a kernel of their own.
SEVERAL = {
    "convolution": 2, "nll_loss_backward": 2, "max_pool2d_with_indices_backward": 2, "select_backward": 2,
    "native_layer_norm_backward": 2, "embedding_dense_backward": 3,
    # on the CPU dropout is four operations, on a GPU two: its mask's division and the product with it are in the first
    "bernoulli_": 1, "div_": 0,
}  # fmt: skip


@pytest.fixture(scope="module")
def counted():
    """Return what steps ask of the simulated device, by model."""
    if find_spec("cupy") is None:
        pytest.skip("needs CuPy, which the simulated device is under")
    child = python("-m", "tests.cuda.counts", settings={"cwd": counts.ROOT}, LUCID_CUDA_SIMULATOR="1")
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout)


@pytest.mark.parametrize("what", BOUNDS["digits"])
@pytest.mark.parametrize("model", BOUNDS)
def test_a_step_asks_for_no_more(counted, model, what):
    """Operations, calls of libraries, allocations, peak memory and traffic stay within what they once were."""
    assert counted[model][what] <= BOUNDS[model][what], counted[model]["kernels"]


@pytest.mark.parametrize("model", BOUNDS)
def test_a_step_neither_waits_nor_copies(counted, model):
    """The host never waits for the device, and no byte moves between them, as long as the loss is not read."""
    found = counted[model]
    assert (found["synchronisations"], found["to_host"], found["to_device"]) == (0, 0, 0)


def kernels_of_pytorch(step):
    """Return how many kernels PyTorch launches at least for a call, by name, and what bytes they load and store.

    Every ATen operation that reaches the dispatcher below autograd on the CPU and makes or changes memory is counted as
    one kernel, or as `SEVERAL` says. Views are none, and what a library launches within one operation is not seen.
    Each tensor that an operation is given is loaded once, and each that it makes or changes is stored once.
    """
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    found, moved = Counter(), Counter()

    def size(tree):
        return sum(x.numel() * x.element_size() for x in tree_leaves(tree) if hasattr(x, "element_size"))

    class Counting(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            name = function.overloadpacket.__name__
            if function.namespace == "aten" and not function.is_view and name not in NO_KERNEL:
                # of the three gradients of a convolution those that are wanted
                found[name] += sum(args[-1]) if name == "convolution_backward" else SEVERAL.get(name, 1)
                made = function(*args, **(kwargs or {}))
                moved["loaded"] += size((args, kwargs))
                # what gives nothing back changes what it is given first
                moved["stored"] += size(made) or size(args[0])
                return made
            return function(*args, **(kwargs or {}))

    with Counting():
        step()
    return found, moved


@pytest.mark.parametrize("model", counts.STEPS)
def test_a_step_launches_less_than_in_pytorch(counted, model, monkeypatch):
    """Kernels and library calls together are fewer than PyTorch's in eager mode, with optimizers as on a GPU.

    They load and store fewer bytes, each access counted, than PyTorch's operands have.
    """
    torch = pytest.importorskip("torch")
    for name in ("Adam", "AdamW"):
        monkeypatch.setattr(torch.optim, name, functools.partial(getattr(torch.optim, name), foreach=True))
    step = counts.STEPS[model](Peer("torch"))
    step()
    theirs, moved = kernels_of_pytorch(step)
    ours = counted[model]["operations"]
    print(f"{model}: operations     lucid {ours}, PyTorch {theirs.total()}: {dict(theirs.most_common())}")
    for what in ("loaded", "stored"):
        print(f"{model}: bytes {what}   lucid {counted[model][f'bytes_{what}']:,}, PyTorch {moved[what]:,}")
    assert ours < theirs.total()
    assert all(counted[model][f"bytes_{what}"] < moved[what] for what in moved)


def test_the_counter_of_pytorch_counts_kernels_and_no_views():
    """One product, one sum; a transposed view and an allocation are none."""
    torch = pytest.importorskip("torch")
    a, b = torch.ones(2, 3), torch.ones(2, 3)
    found, moved = kernels_of_pytorch(lambda: (a * b.T.contiguous().T + torch.empty(2, 3)).sum())
    assert found == {"mul": 1, "clone": 1, "add": 1, "sum": 1}
    assert moved == {"loaded": 24 * (2 + 1 + 2 + 1), "stored": 24 * 3 + 4}
    assert kernels_of_pytorch(lambda: torch._foreach_add_([a, b], 1))[1] == {"loaded": 48, "stored": 48}


def test_the_model_that_is_counted_is_the_example_s():
    """Parameters of the same shapes in the same order."""
    ours, theirs = counts.digits_model(Peer("lucid")), counts.example().DigitNet()
    assert [tuple(p.shape) for p in ours.parameters()] == [tuple(p.shape) for p in theirs.parameters()]
