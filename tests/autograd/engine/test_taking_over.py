"""The first gradient of a leaf becomes its `.grad` without a copy, but only where nobody else can see its memory."""

from __future__ import annotations

import subprocess
import sys
import types
import weakref

import numpy as np
import pytest

import lucid
from lucid.autograd.engine import loop, node
from lucid.autograd.recording.namespace import CPU
from lucid.base import ownership
from tests.pieces import function_of

# small gradients of leaves go another way through the engine on the CPU
each_size = pytest.mark.parametrize("size", [6, 8192])
each_device = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])


def address(tensor):
    array = tensor.array
    return array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr


def made_by(make):
    """Return a function of a tensor whose gradient is what `make` returns, and the list of its addresses."""
    addresses = []

    def backward(ctx, grad):
        made = make(grad)
        addresses.append(address(made))
        return made

    Identity = function_of(lambda ctx, x: x.clone(), backward, name="Identity")

    return Identity.apply, addresses


def run(device, size, make):
    """Run backward through it; return the leaf and the address of the gradient that it was given."""
    leaf = lucid.zeros(size, device=device, requires_grad=True)
    function, addresses = made_by(make)
    function(leaf).backward(lucid.arange(size, dtype=lucid.float32, device=device))
    assert leaf.grad.tolist()[:3] == [0, 2, 4]
    return leaf, addresses[0]


@each_device
@each_size
def test_a_gradient_that_nobody_holds_is_taken_over(device, size):
    """Also one that was reshaped, whose memory belongs to an array that nobody holds either."""
    for make in (lambda grad: grad * 2, lambda grad: (grad.reshape(2, -1) * 2).reshape(-1)):
        leaf, given = run(device, size, make)
        assert address(leaf.grad) == given


@each_size
def test_a_gradient_that_a_hook_has_given_is_taken_over(size):
    """What a leaf's tensor hook returns on the CPU, unless the hook keeps it."""
    given, kept = [], []

    def hook(grad, keep=False):
        made = grad * 2
        given.append(address(made))
        if keep:
            kept.append(made)
        return made

    for keep in (False, True):
        x = lucid.zeros(size, device="cpu", requires_grad=True)
        x.register_hook(lambda grad, keep=keep: hook(grad, keep))
        (x * 1.0).backward(lucid.ones(size, device="cpu"))
        assert (address(x.grad) == given[-1]) is not keep
        assert x.grad.tolist()[:2] == [2, 2]


def recording(function, made):
    """Return `function`, each array that it returns remembered in `made` and not held."""

    def call(*arrays, **settings):
        out = function(*arrays, **settings)
        made.append(weakref.ref(out))
        return out

    return call


def copies(tensors, made):
    """Return how many of the gradients are no arrays that were made by a rule, but copies of these."""
    arrays = [reference() for reference in made]
    return sum(not any(tensor.grad.array is array for array in arrays) for tensor in tensors)


@each_size
@pytest.mark.parametrize("hooked", [False, True], ids=["plain", "hooks"])
def test_a_pass_copies_no_gradient_that_a_rule_has_made(size, hooked, monkeypatch):
    """Every leaf of a graph keeps the very array: one leaf of an op or two, one at the end, one with a hook, a sum."""
    made = []
    monkeypatch.setattr(CPU, "mul", recording(np.multiply, made))
    x = lucid.ones(size, device="cpu")
    leaves = [lucid.ones(size, device="cpu", requires_grad=True) for _ in range(6)]
    for leaf in leaves if hooked else ():
        leaf.register_hook(lambda grad: None)
    a, b, c, d, e, f = leaves
    ((a * x + b * c) * d * x + e * 2.0 + (f * 3.0) * x).sum().backward()
    assert len(made) >= 7
    assert copies(leaves, made) == 0
    assert a.grad.tolist() == b.grad.tolist() == [1.0] * size


def test_a_small_gradient_is_replaced_by_the_sum(monkeypatch):
    """What a later pass adds to a small `.grad` is not copied back into an array that nobody else holds."""
    x = lucid.ones(6, device="cpu", requires_grad=True)
    (x * 2.0).backward(lucid.ones(6, device="cpu"))
    made = []
    monkeypatch.setattr(node, "add", recording(np.add, made))
    for passes in range(2, 4):
        (x * 2.0).backward(lucid.ones(6, device="cpu"))
        assert copies([x], made) == 0
        assert x.grad.tolist() == [2.0 * passes] * 6
    shown = x.grad.array
    (x * 2.0).backward(lucid.ones(6, device="cpu"))
    assert x.grad.array is shown


@pytest.mark.parametrize("watch", ["trace", "profile"])
def test_a_debugger_that_watches_the_measurement_counts_for_nothing(watch):
    """What it keeps of the frames that it sees would pass for the engine's own; afterwards it watches again."""
    kept = []

    def debugger(frame, event, argument):
        kept.append(dict(frame.f_locals))
        return debugger

    before = getattr(sys, f"get{watch}")()
    getattr(sys, f"set{watch}")(debugger)
    try:
        counted = loop.references_in_loop()
        after = getattr(sys, f"get{watch}")()
    finally:
        getattr(sys, f"set{watch}")(before)
    assert counted == loop.alone_in_loop
    assert after is debugger
    assert kept


@pytest.mark.parametrize("tool", [None, 0, 3, 5])
def test_a_tool_of_the_interpreter_watches(monkeypatch, tool):
    """One that Python 3.12 and later know, under any of their numbers, as one of coverage is; none does not."""
    get_tool = {tool: "coverage"}.get
    monkeypatch.setattr(sys, "monitoring", types.SimpleNamespace(get_tool=get_tool), raising=False)
    monkeypatch.setattr(sys, "gettrace", lambda: None)
    monkeypatch.setattr(sys, "getprofile", lambda: None)
    assert ownership.is_watched() is (tool is not None)


NOTE = """
import sys
kept = []
def note(frame, *_):
    # of the functions that are measured alone: Python 3.12.1 and 3.13.0 do not bear that those of others are read
    if frame.f_code.co_name in {"_run", "backward", "references", "_of_argument"}:
        kept.append(dict(frame.f_locals))
    return note
"""


@pytest.mark.parametrize(
    "watch",
    ["import cProfile; cProfile.Profile().enable()", f"{NOTE}sys.setprofile(note)", f"{NOTE}sys.settrace(note)"],
)
def test_lucid_is_imported_under_a_profiler_or_debugger(watch):
    """What is measured at the import is the same then, and training goes on under it: `python -m cProfile train.py`."""
    code = f"""{watch}
import lucid
x = lucid.ones(2, requires_grad=True)
(x * x).sum().backward()
from lucid.autograd.engine import loop
from lucid.base import ownership
print(loop.alone_in_loop, ownership.SOLE, ownership.ARGUMENT, x.grad.tolist())"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split(maxsplit=3) == [
        str(loop.alone_in_loop), str(ownership.SOLE), str(ownership.ARGUMENT), "[2.0, 2.0]\n",
    ]  # fmt: skip


@each_device
@each_size
def test_memory_that_somebody_holds_is_copied(device, size):
    """A gradient that is kept, whose base is kept, of which another view is kept, or that is part of more memory."""
    kept = []

    def keep(part):
        def make(grad):
            doubled = (grad * 2).reshape(2, -1)
            kept[:] = [part(doubled)]
            return doubled.reshape(-1)

        return make

    for make in (
        keep(lambda doubled: doubled),
        keep(lambda doubled: doubled[1]),
        keep(lambda doubled: doubled.detach().reshape(-1)),
        lambda grad: lucid.cat([grad * 2, grad])[:size],
    ):
        leaf, given = run(device, size, make)
        assert address(leaf.grad) != given
        before = [tensor.tolist() for tensor in kept]
        leaf.grad.fill_(7.0)
        assert [tensor.tolist() for tensor in kept] == before


@each_device
@each_size
@pytest.mark.parametrize("create_graph", [False, True])
def test_what_a_pass_leaves_behind_shares_no_memory(device, size, create_graph):
    """Gradients of roots, intermediates and leaves, what a hook has kept, and the gradient given are apart."""
    x = lucid.zeros(size, device=device, requires_grad=True)
    y = x + 0
    z = y + 0
    kept = []
    for tensor in (z, y):
        tensor.retain_grad()
        tensor.register_hook(kept.append)
    given = lucid.ones(size, device=device)
    z.backward(given, create_graph=create_graph)
    left = [given, x.grad, y.grad, z.grad]
    for number, tensor in enumerate(left):
        with lucid.no_grad():
            tensor.fill_(float(number + 2))
    assert [tensor[0].item() for tensor in left] == [2, 3, 4, 5]
    assert all(grad[0].item() in {1, 2} for grad in kept)  # the given gradient itself may come to hooks


@each_device
def test_a_recorded_gradient_can_be_changed(device):
    """Under create_graph `.grad` has memory of its own too, where the gradient is one number that was expanded."""
    x = lucid.zeros(6, device=device, requires_grad=True)
    y = x * 1
    y.retain_grad()
    y.sum().backward(create_graph=True)
    for tensor in (x, y):
        assert tensor.grad.is_contiguous()
        with lucid.no_grad():
            tensor.grad[0] = 5.0
        assert tensor.grad.tolist() == [5, 1, 1, 1, 1, 1]


@each_device
@each_size
def test_gradients_of_inference_mode(device, size):
    """A `.grad` made in inference mode is added to there; in normal mode that is refused, and nothing changes."""
    x = lucid.zeros(size, device=device, requires_grad=True)
    y = (x * 2).sum()
    with lucid.inference_mode():
        y.backward(retain_graph=True)
        y.backward(retain_graph=True)
    assert x.grad.is_inference()
    with pytest.raises(RuntimeError, match="inference tensors"):
        y.backward(retain_graph=True)
    assert x.grad.unique().tolist() == [4]
    x.grad = None
    y.backward(retain_graph=True)
    with lucid.inference_mode():
        y.backward()
    assert x.grad.unique().tolist() == [4]
    assert not x.grad.is_inference()


@each_device
@each_size
def test_each_accumulation_counts_as_a_change(device, size, rng):
    """What saved `.grad` for its own backward hears of every later pass that adds to it, not of the first alone."""
    x = lucid.zeros(size, device=device, requires_grad=True)
    given = lucid.tensor(rng.standard_normal(size), dtype=lucid.float32, device=device)
    for passes in range(1, 4):
        (x * 2).backward(given)
        assert x.grad._version == passes - 1
    w = lucid.ones(size, device=device, requires_grad=True)
    y = w * x.grad
    (x * 2).backward(given)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward(given)


@each_device
@each_size
@pytest.mark.parametrize(
    "part", [lambda flat: flat[2:-2].reshape(2, -1), lambda flat: flat[2:-2].reshape(-1, 2).t()], ids=["slice", "t"]
)
def test_a_gradient_that_is_part_of_other_memory_is_added_to_there(device, size, part):
    """Code that keeps all gradients in one flat buffer sees every pass in it, whatever its size and layout."""
    flat = lucid.ones(size + 4, device=device)
    x = lucid.zeros(2, size // 2, device=device, requires_grad=True)
    x.grad = part(flat)
    upstream = lucid.arange(size, dtype=lucid.float32, device=device).reshape(2, -1)
    for _ in range(2):
        (x * 1.0).backward(upstream)
    assert part(flat).tolist() == x.grad.tolist() == (1 + 2 * upstream).tolist()
    assert flat[:2].tolist() == flat[-2:].tolist() == [1, 1]


@each_device
@each_size
def test_a_gradient_in_a_graph_is_added_to(device, size, rng):
    """A plain pass adds to a recorded `.grad` in place: its derivative is still that of the part that was recorded."""
    numbers = rng.standard_normal((2, size))
    x, given = (lucid.tensor(row, dtype=lucid.float32, device=device) for row in numbers)
    x.requires_grad_()
    (x**3).backward(given, create_graph=True)
    recorded = x.grad
    (x * 2).backward(given)
    assert x.grad is recorded
    assert x.grad._version == 1
    expected = 3 * numbers[0] ** 2 * numbers[1] + 2 * numbers[1]
    np.testing.assert_allclose(x.grad.detach().cpu().numpy(), expected, rtol=1e-4, atol=1e-5)
    (second,) = lucid.autograd.grad(x.grad, x, given)
    expected = 6 * numbers[0] * numbers[1] ** 2
    np.testing.assert_allclose(second.detach().cpu().numpy(), expected, rtol=1e-4, atol=1e-5)


@each_device
@each_size
@pytest.mark.parametrize("retained", [False, True], ids=["leaf", "retained"])
def test_recorded_gradients_add_up_beside_each_other(device, size, retained, rng):
    """A recorded pass leaves the `.grad` that it finds as it was, and the new one is differentiated in both parts."""
    numbers = rng.standard_normal((2, size))
    x, given = (lucid.tensor(row, device=device) for row in numbers)
    x.requires_grad_()
    y = x * 1.0 if retained else x
    y.retain_grad()
    (y**3).backward(given, create_graph=True)
    first = y.grad
    (y**2).backward(given, create_graph=True)
    numpy_x, numpy_given = numbers
    assert y.grad is not first
    assert first._version == 0
    for grad, slope, bend in (
        (first, 3 * numpy_x**2, 6 * numpy_x),
        (y.grad, 3 * numpy_x**2 + 2 * numpy_x, 6 * numpy_x + 2),
    ):
        np.testing.assert_allclose(grad.detach().cpu().numpy(), slope * numpy_given, rtol=1e-12, atol=1e-12)
        (second,) = lucid.autograd.grad(grad, y, given, retain_graph=True)
        np.testing.assert_allclose(second.cpu().numpy(), bend * numpy_given**2, rtol=1e-12, atol=1e-12)


@each_device
@each_size
@pytest.mark.parametrize("rows", [0, 2])
def test_an_expanded_gradient_is_added_to(device, size, rows):
    """A `.grad` whose elements share memory, or that is empty, gets the sum in memory of its own."""
    x = lucid.zeros(rows, size, device=device, requires_grad=True)
    number = lucid.full((1, 1), 3.0, device=device)
    x.grad = number.expand(rows, size)
    upstream = lucid.arange(rows * size, dtype=lucid.float32, device=device).reshape(rows, size)
    for _ in range(2):
        (x * 1.0).backward(upstream)
    assert x.grad.tolist() == (3 + 2 * upstream).tolist()
    assert number.item() == 3
