"""Graphed steps: what training does by one graph is, bit for bit, what it does without, hooks of each step included."""

from __future__ import annotations

import gc
import itertools
import warnings
from functools import partial

import numpy as np
import pytest

import lucid
import lucid.nn.functional as F
from lucid import nn
from lucid.autograd.graph import register_multi_grad_hook
from lucid.base import gpu
from lucid.errors import ArgumentError, CaptureError, DeviceError, DtypeError, SettingError, ShapeError
from lucid.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from lucid.utils.checkpoint import checkpoint
from tests.device import two_devices
from tests.gradients import numbers
from tests.graphs.drawing import drawn
from tests.pieces import in_threads, no_collections

pytestmark = pytest.mark.gpu

WARMUP = 3


class Training:
    """A small model and what trains it, the same each time."""

    def __init__(self, seed):
        lucid.manual_seed(seed)
        self.model = nn.Sequential(nn.Linear(5, 8), nn.GELU(), nn.Dropout(0.3), nn.LayerNorm(8), nn.Linear(8, 3)).to(
            "cuda"
        )
        self.optimizer = lucid.optim.AdamW(self.model.parameters(), lr=0.02, capturable=True)

    def step(self, x, y):
        """Train on one batch, and return its loss."""
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
        self.optimizer.step()
        return loss

    def state(self):
        """Return the parameters."""
        return [numbers(p) for p in self.model.parameters()]


def batches(rng, count):
    """Return inputs and classes."""
    return [(drawn(rng, 6, 5), lucid.tensor(rng.integers(0, 3, 6), device="cuda")) for _ in range(count)]


def same(ours, theirs):
    """Fail unless arrays are the same, bit for bit."""
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


def is_the_same(rng, data, arrange=lambda training: None, before=lambda training, k: None):
    """Fail unless a graph leaves the same losses and parameters; return losses, and what was arranged for each."""
    seed, found, arranged = int(rng.integers(2**31)), [], []
    for graphed in (False, True):
        training = Training(seed)
        arranged.append(arrange(training))
        run = lucid.cuda.graphed_step(training.step, *data[0]) if graphed else training.step
        lucid.manual_seed(seed + 1)
        losses = []
        with warnings.catch_warnings(action="ignore"):
            for k, batch in enumerate(data):
                before(training, k)
                losses.append(run(*batch).item())
        found.append((losses, training.state()))
    (losses, state), (ours, own_state) = found
    assert ours == losses
    same(own_state, state)
    return losses, arranged


def alike(make, *data):
    """Fail unless a step that `make` returns, with what shows its state, does the same by a graph, for all data."""
    found = []
    for graphed in (False, True):
        step, shown = make()
        run = lucid.cuda.graphed_step(step, data[0]) if graphed else step
        found.append([*[numbers(run(x)).copy() for x in data], *shown()])
    same(*found)


def trained(training, data):
    """Return the graphed step of a training that has done these batches."""
    run = lucid.cuda.graphed_step(training.step, *data[0])
    for batch in data:
        run(*batch)
    return run


def gradient_for(w):
    """Return a step that gives the gradient of a leaf."""

    def step(x):
        w.grad = None
        (w * x).sum().backward()
        return w.grad

    return step


def captures(run, *calls):
    """Return how often a graphed step says in calls with these inputs that it captures anew."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        for inputs in calls:
            run(*inputs)
    return sum("captured anew" in str(warning.message) for warning in caught)


def is_refused(run, *inputs, words):
    """Fail unless a graphed step refuses these inputs with these words."""
    with pytest.raises(CaptureError, match=words):
        run(*inputs)


def is_missed(run, x):
    """Fail unless a graphed step says that something that it uses is gone, as it is after a collection."""
    gc.collect()
    is_refused(run, x, words="replaced or moved")


def test_a_hundred_steps(rng):
    """With dropout, AdamW and clipping; memory that the capture let go of holds garbage at each replay."""
    losses, _ = is_the_same(rng, batches(rng, 100))
    assert losses[0] != losses[-1]


@pytest.mark.parametrize("momentum", [None, 0.2])
def test_running_statistics(rng, momentum):
    """They move in each replay, also as the mean over all batches, whose number lies on the device."""
    data = [drawn(rng, 6, 5, 3) for _ in range(9)]
    found = []
    for graphed in (False, True):
        model = nn.Sequential(nn.BatchNorm1d(5, momentum=momentum)).to("cuda")
        run = lucid.cuda.graphed_step(model, data[0]) if graphed else model
        outs = [numbers(run(x)) for x in data[:6]]
        model[0].num_batches_tracked.fill_(2)
        outs += [numbers(run(x)) for x in data[6:]]
        assert model[0].num_batches_tracked.item() == 5
        found.append([*outs, numbers(model[0].running_mean), numbers(model[0].running_var)])
    same(*found)


def test_the_learning_rate_of_now(rng):
    """A scheduler that sets numbers of a group has its way with a graph, too."""

    def set_numbers(training, k):
        training.optimizer.param_groups[0].update(lr=0.05 / (k + 1), weight_decay=0.1 * (k % 3))

    is_the_same(rng, batches(rng, 12), before=set_numbers)


def test_each_call_is_one_step(rng):
    """The first calls run as always, the next is captured and done, later ones are replays."""
    x = lucid.zeros(3, device="cuda")
    calls = []

    def step(y):
        calls.append(1)
        x.add_(y)
        return x * 2

    run = lucid.cuda.graphed_step(step, lucid.empty(3, device="cuda"), warmup=2)
    assert not calls
    total = np.zeros(3, "f")
    for k in range(6):
        y = rng.integers(0, 100, 3).astype("f")
        out = run(lucid.tensor(y, device="cuda"))
        total += y
        np.testing.assert_array_equal(numbers(x), total)
        np.testing.assert_array_equal(numbers(out), 2 * total)
        assert len(calls) == min(k + 1, 3)
    run.reset()
    for _ in range(4):
        run(out)
    assert len(calls) == 6


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing_draws_again_what_it_drew(rng, reentrant):
    """What is computed again in backward drops what forward dropped, and later draws go on behind it."""
    seed = int(rng.integers(2**31))

    def make():
        lucid.manual_seed(seed)
        model = nn.Sequential(nn.Linear(5, 6), nn.Dropout(0.5), nn.Linear(6, 1)).to("cuda")

        def step(x):
            model.zero_grad()
            out = checkpoint(model, x, use_reentrant=reentrant).sum() + lucid.rand((), device="cuda")
            out.backward()
            with lucid.no_grad():
                for p in model.parameters():
                    p.sub_(p.grad * 0.1)
            return out

        return step, lambda: [numbers(t) for t in (*model.parameters(), lucid.rand(3, device="cuda"))]

    alike(make, *(drawn(rng, 4, 5, requires_grad=reentrant) for _ in range(7)))


# ---- inputs and outputs ----


def test_a_step_of_the_warm_up_that_fails_does_not_count(rng):
    """What a first step makes is not there yet: as many steps run as always before the capture as were asked for."""
    calls = []

    def step(x):
        calls.append(1)
        if len(calls) == 1:
            raise ZeroDivisionError
        return x * 2

    x = lucid.ones(3, device="cuda")
    run = lucid.cuda.graphed_step(step, x, warmup=1)
    with pytest.raises(ZeroDivisionError):
        run(x)
    for k in range(4):
        assert run(x).tolist() == [2.0] * 3
        assert len(calls) == 2 + min(k, 1)


def test_inputs_of_every_kind(rng):
    """Nested ones, strided ones, those on the CPU, and the static ones themselves; they may require grad."""
    a, b = rng.standard_normal((2, 4, 3)).astype("f")
    sample = {"a": lucid.empty(4, 3, device="cuda"), "b": [lucid.empty(4, 3, device="cuda", requires_grad=True)]}

    def step(given):
        (given["a"] * given["b"][0]).sum().backward()
        return given["b"][0].grad, (given["a"] + given["b"][0], 7)

    run = lucid.cuda.graphed_step(step, sample, warmup=1)
    (static,) = run.inputs
    assert static["b"][0].requires_grad
    wide = lucid.tensor(np.repeat(a.T, 2, 1), device="cuda")
    for given in (
        {"a": lucid.tensor(a, device="cuda"), "b": [lucid.tensor(b)]},
        {"a": wide[:, ::2].t(), "b": (lucid.tensor(b, device="cuda"),)},
        static,
        {"a": lucid.tensor(a), "b": [static["b"][0]]},
    ):
        static["b"][0].grad = None
        run.reset()
        for _ in range(3):
            run(given)
            static["b"][0].grad.zero_()
        grad, (total, seven) = run(given)
        np.testing.assert_array_equal(numbers(grad), a)
        np.testing.assert_array_equal(numbers(total), a + b)
        assert seven == 7
        assert not total.requires_grad


def test_inputs_by_their_keys(rng):
    """A dict is matched by its keys, in the warm-up too; others, and other nesting, are refused."""
    run = lucid.cuda.graphed_step(lambda b: b["x"] - b["y"], {name: lucid.zeros(2, device="cuda") for name in "xy"})
    for k in range(6):
        x, y = lucid.full((2,), k + 5.0, device="cuda"), lucid.full((2,), 3.0, device="cuda")
        assert run({"y": y, "x": x}).tolist() == [k + 2.0] * 2
        for bad in ({"x": x, "z": y}, {"x": x}, [x, y]):
            with pytest.raises(ArgumentError, match="expected inputs as it was made for"):
                run(bad)


def test_results_that_are_inputs(rng):
    """They do not change with the inputs of the next call, also if handed back in another order."""
    one = lucid.ones(1, device="cuda")
    run = lucid.cuda.graphed_step(lambda x, y: (y, x.view(1)), one, one)
    a, b = one * 0, one
    for _ in range(7):
        before = a.item(), b.item()
        a, b = run(a, b)
        assert (b.item(), a.item()) == before
    run.reset()
    kept = [run(one * k, one)[1] for k in range(WARMUP)]
    assert [t.item() for t in kept] == [*range(WARMUP)]
    run(one * 3, one * 8)
    first, second = run.inputs
    assert first.item() != second.item()
    for _ in range(3):
        before = first.item(), second.item()
        run(second, first)
        assert (second.item(), first.item()) == before


def test_outputs_are_overwritten_and_detached(rng):
    """The same tensors come out of each replay; what was cloned stays."""
    w = lucid.ones(2, device="cuda", requires_grad=True)
    run = lucid.cuda.graphed_step(lambda x: w * x, lucid.empty(2, device="cuda"), warmup=1)
    outs = [run(lucid.full((2,), float(k), device="cuda")) for k in range(4)]
    assert outs[1].data_ptr() == outs[2].data_ptr() == outs[3].data_ptr() != outs[0].data_ptr()
    assert (outs[0] == 0).all()
    assert (outs[1] == 3).all()
    assert not any(out.requires_grad for out in outs)


def test_bad_inputs(rng):
    """Other shapes, dtypes and counts are refused, and the graph goes on as before."""
    x = lucid.ones(3, device="cuda")
    seen = lucid.zeros(3, device="cuda")
    run = lucid.cuda.graphed_step(seen.add_, x)
    for _ in range(5):
        run(x)
    for given, error, words in (
        ((lucid.ones(4, device="cuda"),), ShapeError, r"input 0 of shape \(3,\)"),
        ((lucid.ones(3, dtype=lucid.float64, device="cuda"),), DtypeError, "float64"),
        ((), ArgumentError, "expected 1 entries, got 0"),
        ((x, x), ArgumentError, "expected 1 entries, got 2"),
        ((3.0,), ArgumentError, "expected tensors as inputs, got float 3.0"),
    ):
        with pytest.raises(error, match=words):
            run(*given)
    run(x)
    assert seen.tolist() == [6.0] * 3
    for bad, error, words in (
        (lambda: lucid.cuda.graphed_step(3, x), ArgumentError, "expected a callable"),
        (lambda: lucid.cuda.graphed_step(abs, 2.5), ArgumentError, "make it a CUDA tensor"),
        (lambda: lucid.cuda.graphed_step(abs, lucid.ones(3, device="cpu")), DeviceError, "expected inputs on cuda:0"),
        (lambda: lucid.cuda.graphed_step(abs, x, warmup=0), SettingError, "at least 1"),
        (lambda: lucid.cuda.graphed_step(abs, x, warmup="3"), ArgumentError, "as an integer"),
        (lambda: lucid.cuda.graphed_step(abs, x, pool=3), ArgumentError, "graph_pool_handle"),
    ):
        with pytest.raises(error, match=words):
            bad()
    if lucid.cuda.device_count() > 1:
        with lucid.cuda.device(1), pytest.raises(DeviceError, match=r"lucid.cuda.device\(0\)"):
            run(x)


# ---- what a graph must not miss ----


def replaced_data(training):
    """Give a parameter other memory."""
    training.model[0].weight.data = training.model[0].weight.data.clone()


def moved(training):
    """Move the model away and back."""
    training.model.to("cpu")
    training.model.to("cuda")


def other_parameter(training):
    """Give a layer another parameter; the optimizer keeps the old one."""
    training.model[4].weight = nn.Parameter(lucid.zeros(3, 8, device="cuda"))


def other_layer(training):
    """Give the model another layer."""
    training.model[4] = nn.Linear(8, 3).to("cuda")


def loaded_state(training):
    """Load the optimizer's state, which gets memory of its own."""
    training.optimizer.load_state_dict(training.optimizer.state_dict())


def assigned_state(training):
    """Load values by assigning tensors."""
    state = {name: t.clone() for name, t in training.model.state_dict().items()}
    training.model.load_state_dict(state, assign=True)


def frozen(training):
    """Let a parameter get no gradients."""
    training.model[0].weight.requires_grad_(False)


@pytest.mark.parametrize(
    "change", [replaced_data, moved, other_parameter, other_layer, loaded_state, assigned_state, frozen]
)
def test_tensors_that_were_replaced(rng, change):
    """A graph would go on with the old memory: the call says so and does nothing; after reset() all goes on."""
    data = batches(rng, 6)
    training = Training(0)
    run = trained(training, data)
    change(training)
    gc.collect()
    before = training.state()
    for _ in range(2):
        is_refused(run, *data[0], words=r"replaced or moved.*call reset\(\)")
    same(training.state(), before)
    run.reset()
    for batch in data:
        assert np.isfinite(run(*batch).item())


STATE_CHANGES = {
    "entry": lambda o, p, t: o.state[p].__setitem__("exp_avg", t),
    "update": lambda o, p, t: o.state[p].update(exp_avg=t),
    "or": lambda o, p, t: o.state[p].__ior__({"exp_avg": t}),
    "parameter": lambda o, p, t: o.state.__setitem__(p, {**o.state[p], "exp_avg": t}),
    "del": lambda o, p, t: o.state.__delitem__(p),
    "pop": lambda o, p, t: o.state[p].pop("exp_avg"),
    "clear": lambda o, p, t: o.state.clear(),
    "all": lambda o, p, t: setattr(o, "state", {**o.state, p: {**o.state[p], "exp_avg": t}}),
}


@pytest.mark.parametrize("given", ["own", "plain"])
@pytest.mark.parametrize("change", STATE_CHANGES)
def test_an_optimizers_state_that_was_replaced(rng, change, given):
    """The call says so also where somebody holds the old tensors, and state that a user gave in plain dicts."""
    data, training = batches(rng, 6), Training(0)
    run, p = lucid.cuda.graphed_step(training.step, *data[0]), training.model[0].weight
    for k, batch in enumerate(data):
        if k == WARMUP - 1 and given == "plain":
            training.optimizer.state = {key: dict(entries) for key, entries in training.optimizer.state.items()}
        run(*batch)
    held = [dict(entries) for entries in training.optimizer.state.values()]
    state = training.optimizer.state[p]
    state["exp_avg"] = state["exp_avg"]
    run(*data[0])
    STATE_CHANGES[change](training.optimizer, p, held[0]["exp_avg"].clone())
    is_refused(run, *data[0], words=r"replaced or moved.*call reset\(\)")
    if change == "pop":
        state["exp_avg"] = held[0]["exp_avg"]
    run.reset()
    for batch in data:
        assert np.isfinite(run(*batch).item())


def test_what_stays_where_it_is_may_change(rng):
    """Values that are loaded in place are those of the next replay."""
    data, training = batches(rng, 6), Training(0)
    run = trained(training, data)
    state = {name: t.clone() for name, t in training.model.state_dict().items()}
    first = run(*data[0]).item()
    training.model.load_state_dict({name: lucid.zeros_like(t) for name, t in state.items()})
    assert run(*data[0]).item() == pytest.approx(np.log(3), rel=1e-6)
    assert first != pytest.approx(np.log(3), rel=1e-6)


def test_gradients_that_the_step_adds_to(rng):
    """Where nobody clears them in the step they are the graph's, too: dropping them afterwards is told."""
    w = lucid.ones(3, device="cuda", requires_grad=True)

    def step(x):
        (w * x).sum().backward()

    x = lucid.ones(3, device="cuda")
    run = lucid.cuda.graphed_step(step, x)
    for k in range(6):
        run(x)
        assert w.grad.tolist() == [k + 1.0] * 3
    w.grad = None
    is_refused(run, x, words="has none now")
    assert w.grad is None
    run.reset()
    for k in range(6):
        run(x)
        assert w.grad.tolist() == [k + 1.0] * 3


READ_BY_CUPY = {
    "repeat": lambda b: b.repeat(2),
    "sort": lambda b: lucid.sort(b).values,
    "topk": lambda b: lucid.topk(b, 1).values,
    "product": lambda b: b @ lucid.ones(3, 2, device="cuda"),
    "product from the right": lambda b: lucid.ones(2, 3, device="cuda") @ b,
    "outer": lambda b: lucid.einsum("i,j->ij", b, b),
    "bernoulli": lambda b: lucid.bernoulli(b.clamp(0, 1)),
    "searchsorted": lambda b: lucid.searchsorted(b, b),
    "one_hot": lambda b: F.one_hot(b.long(), 5),
    "repeat_interleave": lambda b: b.repeat_interleave(2),
    "strided": lambda b: b[::2].contiguous(),
}


@pytest.mark.parametrize("name", READ_BY_CUPY)
def test_what_kernels_of_cupys_read(rng, name):
    """It is kept for the graph, and watched, as what lucid's own kernels read; what cuBLAS reads, too."""
    box = [lucid.tensor([1.0, 2.0, 3.0], device="cuda")]
    run = lucid.cuda.graphed_step(lambda x: READ_BY_CUPY[name](box[0]), lucid.ones(1, device="cuda"), warmup=1)
    lucid.manual_seed(3)
    for _ in range(4):
        run(lucid.ones(1, device="cuda"))
    box[0] = lucid.zeros(3, device="cuda")
    is_missed(run, lucid.ones(1, device="cuda"))


def test_what_a_kernel_of_the_users_reads(rng):
    """It is watched wherever among the parameters it is."""
    source = """extern "C" __global__ void copy(int n, float* to, const float* from) {
        if (threadIdx.x < n) to[threadIdx.x] = from[threadIdx.x];
    }"""
    copy, box = lucid.cuda.compile(source)["copy"], [lucid.ones(3, device="cuda")]

    def step(x):
        copy(1, 32, (3, x, box[0]))
        return x + 1

    x = lucid.zeros(3, device="cuda")
    run = lucid.cuda.graphed_step(step, x)
    for _ in range(5):
        assert run(x).tolist() == [2.0] * 3
    box[0] = lucid.zeros(3, device="cuda")
    is_missed(run, x)


def test_the_end_of_a_tensor_that_is_strided(rng):
    """It is used also where the graph reads nothing but its last elements, beyond as many bytes as it has."""
    every_fourth = [lucid.as_tensor(gpu.cupy().arange(64, dtype="f")[::4])]
    run = lucid.cuda.graphed_step(lambda x: every_fourth[0][12:] + x, lucid.ones(4, device="cuda"))
    x = lucid.ones(4, device="cuda")
    for _ in range(5):
        assert run(x).tolist() == [49.0, 53.0, 57.0, 61.0]
    every_fourth[0] = lucid.zeros(16, device="cuda")
    is_missed(run, x)


def test_a_tensor_that_ends_where_a_used_one_begins(rng):
    """It is none of the graph's business, and may get other memory."""
    both = gpu.cupy().arange(8, dtype="f")
    first, second = lucid.as_tensor(both[:4]), lucid.as_tensor(both[4:])
    x = lucid.ones(4, device="cuda")
    run = lucid.cuda.graphed_step(lambda x: second + x, x)
    for k in range(WARMUP + 3):
        assert run(x).tolist() == [5.0, 6.0, 7.0, 8.0]
        if k > WARMUP:
            first.data = first.data.clone()


def test_a_view_whose_base_is_in_a_graph_for_a_while(rng):
    """It has not moved, and is no leaf: the graph goes on with what lies there."""
    state, w = lucid.zeros(2, 3, device="cuda"), lucid.ones(3, device="cuda", requires_grad=True)
    first, other = state[0], lucid.ones(1, device="cuda")
    x = lucid.ones(3, device="cuda")
    run = lucid.cuda.graphed_step(lambda x: first * x, x)
    for _ in range(5):
        assert run(x).tolist() == [0.0] * 3
    state.add_(w * 2)
    assert first.requires_grad
    state.detach_()
    # asks all graphs to look at what they use
    other.data = other.data.clone()
    assert run(x).tolist() == [2.0] * 3


def test_a_leaf_that_is_a_view(rng):
    """It is frozen like others: the graph would go on to give it gradients, and is told."""
    w = lucid.ones(6, device="cuda")[3:].requires_grad_()
    assert w._base is not None
    upstream = drawn(rng, 3)

    def step(x):
        w.grad = None
        out = w * x
        if w.requires_grad:
            out.backward(upstream)
        return out

    x = drawn(rng, 3)
    run = lucid.cuda.graphed_step(step, x)
    for _ in range(5):
        run(x)
        np.testing.assert_array_equal(numbers(w.grad), numbers(x) * numbers(upstream))
    w.requires_grad_(False)
    is_refused(run, x, words="requires grad no longer")
    run.reset()
    for _ in range(5):
        run(x)
        assert w.grad is None


@two_devices
def test_inputs_on_a_second_device(rng):
    """They are copied after what writes them there, and before what is queued there next."""
    values = rng.standard_normal(300).astype("f")
    run = lucid.cuda.graphed_step(lambda x: x * 2, lucid.zeros(300, device="cuda"))
    there = lucid.tensor(values, device="cuda:1")
    lucid.cuda.synchronize(1)
    for _ in range(6):
        with lucid.cuda.stream(lucid.cuda.Stream("cuda:1")):
            x = there * 3
            with lucid.cuda.device(0):
                out = run(x)
            x.zero_()
        np.testing.assert_array_equal(numbers(out), values * np.float32(3) * 2)


@two_devices
@pytest.mark.parametrize("current", [0, 1])
def test_work_on_a_second_device(rng, current):
    """A graph would do it once: the capture refuses it, whichever device is the current one there."""
    y = lucid.zeros(2, device="cuda:1")
    y.add_(1)
    y.sub_(1)

    def step(x):
        with lucid.cuda.device(current):
            y.add_(1)
        return x * 2

    x = lucid.ones(2, device="cuda")
    run = lucid.cuda.graphed_step(step, x)
    for _ in range(WARMUP):
        run(x)
    for _ in range(2):
        is_refused(run, x, words="work on cuda:1")
    assert y.tolist() == [WARMUP] * 2


def test_gradients_after_a_replay(rng):
    """They are those of the step, whatever was there: an optimizer outside, and other steps, see what they would."""
    w = lucid.ones(1, device="cuda", requires_grad=True)
    optimizer, x = lucid.optim.SGD([w], lr=0.125), lucid.ones(1, device="cuda")

    def forward(x):
        loss = (w * x).sum()
        loss.backward()
        return loss

    run = lucid.cuda.graphed_step(forward, x)
    for k in range(8):
        run(x)
        optimizer.step()
        optimizer.zero_grad()
        assert w.item() == 1 - 0.125 * (k + 1)
    w.grad = lucid.ones(1, device="cuda")
    is_refused(run, x, words="had none then")
    optimizer.zero_grad()
    run(x)
    assert w.grad.item() == 1

    def times(factor):
        def step(x):
            optimizer.zero_grad()
            (w * x * factor).sum().backward()

        return lucid.cuda.graphed_step(step, x)

    small, large = times(1), times(100)
    for _ in range(7):
        small(x)
        assert w.grad.item() == 1
        large(x)
        assert w.grad.item() == 100
    assert lucid.autograd.grad((w * x * 7).sum(), w)[0].item() == 7

    def clears(x):
        w.grad = None
        (w * x).sum().backward()
        w.grad = None

    cleared = lucid.cuda.graphed_step(clears, x)
    for _ in range(7):
        w.grad = lucid.ones(1, device="cuda")
        cleared(x)
        assert w.grad is None
    large(x)
    (w * 0).sum().backward()
    assert w.grad.item() == 100


@pytest.mark.parametrize("kind", ["buffer", "variable", "data"])
def test_a_step_that_replaces_what_it_reads(rng, kind):
    """Each replay would read the old tensor: the capture refuses it, and nothing of the step is done."""
    module = nn.Module()
    module.register_buffer("state", lucid.ones(2, device="cuda"))
    leaf = lucid.ones(2, device="cuda")
    variable = [lucid.ones(2, device="cuda")]

    def step(x):
        if kind == "buffer":
            module.state = module.state + x
            return module.state
        if kind == "data":
            leaf.data = leaf + x
            return leaf
        variable[0] = variable[0] + x
        return variable[0]

    x = lucid.ones(2, device="cuda")
    run = lucid.cuda.graphed_step(step, x)
    for k in range(WARMUP):
        assert run(x).tolist() == [k + 2.0] * 2
    is_refused(run, x, words="change it in place")
    if kind == "data":
        assert leaf.tolist() == [4.0, 4.0]


def test_a_step_that_cannot_be_captured(rng):
    """The error comes from where it reads; gradients are as before, and a mended step goes on."""
    data, training = batches(rng, 6), Training(0)
    reads = [True]

    def step(x, y):
        loss = training.step(x, y)
        if reads and training.model[0].weight.grad.norm().item() > 1e9:
            raise AssertionError
        return loss

    run = lucid.cuda.graphed_step(step, *data[0])
    for batch in data[:WARMUP]:
        run(*batch)
    grads = [p.grad for p in training.model.parameters()]
    values, before = [numbers(grad) for grad in grads], training.state()
    for _ in range(2):
        is_refused(run, *data[3], words=r"item\(\) cannot be captured")
    assert all(p.grad is grad for p, grad in zip(training.model.parameters(), grads, strict=True))
    same([numbers(grad) for grad in grads], values)
    same(training.state(), before)
    reads.clear()
    for batch in data[3:]:
        assert np.isfinite(run(*batch).item())


# ---- hooks ----


@pytest.mark.contract("11")
def test_a_hook_that_runs_at_the_capture_alone_is_named(rng):
    """What it queues on the device is in the graph; what it does on the host is done once, and said."""
    data, seen = batches(rng, 8), []

    def double(grad):
        seen.append(1)
        return grad * 2

    def arrange(training):
        return training.model[0].weight.register_hook(double)

    is_the_same(rng, data, arrange)
    assert len(seen) == len(data) + WARMUP + 1
    training = Training(0)
    training.model[0].weight.register_hook(double)
    training.model.register_forward_hook(print_nothing)
    run = lucid.cuda.graphed_step(training.step, *data[0])
    with warnings.catch_warnings(record=True, action="always") as caught:
        for batch in data:
            run(*batch)
    (warning,) = caught
    text = str(warning.message)
    assert "test_step.py" in text
    assert all(words in text for words in ("double", "tensor hook", "print_nothing", "forward hook", "every_step=True"))
    assert warning.filename == __file__


def test_hooks_of_all_parts_are_named(rng):
    """Those that ran before a hook of each step, and so in another part of the graph, too."""
    data, training = batches(rng, 1)[0], Training(0)
    training.model.register_forward_hook(print_nothing)
    training.optimizer.register_step_post_hook(lambda *_: None, every_step=True)
    run = lucid.cuda.graphed_step(training.step, *data, warmup=1)
    run(*data)
    with pytest.warns(UserWarning, match="print_nothing"):
        run(*data)


def print_nothing(module, args, output):
    """Look at an output."""


def norm_of(log):
    """Return a hook that notes the norms of the tensors it is given, which it has to wait for."""

    def note(*given):
        log.append([float(t.detach().norm()) for t in flat(given)])

    return note


def flat(given):
    """Return the tensors in nested tuples."""
    for each in given:
        if isinstance(each, lucid.Tensor):
            yield each
        elif isinstance(each, tuple | list):
            yield from flat(each)


def hook_kinds():
    """Return what registers a hook, `register(training, hook, every_step=True)`, by kind."""
    from lucid.nn.modules import module as everywhere

    def weight(training):
        return training.model[0].weight

    def accumulator(training):
        return lucid.autograd.graph.get_gradient_edge(weight(training)).node

    kinds = {
        "tensor": lambda t, hook, **k: weight(t).register_hook(hook, **k),
        "post-accumulate": lambda t, hook, **k: weight(t).register_post_accumulate_grad_hook(hook, **k),
        "node": lambda t, hook, **k: accumulator(t).register_hook(hook, **k),
        "node before": lambda t, hook, **k: accumulator(t).register_prehook(hook, **k),
        "multi-grad": lambda t, hook, **k: register_multi_grad_hook(list(t.model.parameters()), hook, **k),
        "multi-grad any": lambda t, hook, **k: register_multi_grad_hook(
            list(t.model.parameters()), hook, mode="any", **k
        ),
        "step before": lambda t, hook, **k: t.optimizer.register_step_pre_hook(hook, **k),
        "step after": lambda t, hook, **k: t.optimizer.register_step_post_hook(hook, **k),
        "any step before": lambda t, hook, **k: register_optimizer_step_pre_hook(hook, **k),
        "any step after": lambda t, hook, **k: register_optimizer_step_post_hook(hook, **k),
        "backward": lambda t, hook, **k: t.model.register_backward_hook(lambda tensor, grad: hook(tensor, grad), **k),
        "backward of three": lambda t, hook, **k: of_three(t.model[4].register_backward_hook, hook, **k),
        "any module's backward of three": lambda t, hook, **k: of_three(
            everywhere.register_module_backward_hook, hook, **k
        ),
    }
    for name in ("forward_pre", "forward", "full_backward_pre", "full_backward"):
        kinds[name] = lambda t, hook, name=name, **k: getattr(t.model[4], f"register_{name}_hook")(hook, **k)
        kinds[f"any module's {name}"] = lambda t, hook, name=name, **k: getattr(
            everywhere, f"register_module_{name}_hook"
        )(hook, **k)
    return kinds


def of_three(register, hook, **settings):
    """Register a hook of three arguments where it becomes a full backward hook, with a warning."""
    with pytest.warns(FutureWarning, match="full_backward_hook"):
        return register(lambda module, grad_inputs, grad_outputs: hook(grad_inputs, grad_outputs), **settings)


@pytest.mark.contract("11")
@pytest.mark.parametrize("kind", hook_kinds())
def test_a_hook_of_each_step(rng, kind):
    """It is called in each step, replayed or not, at its moment, with the values of that step."""
    data, logs, handles = batches(rng, 7), [], []

    def arrange(training):
        logs.append([])
        handles.append(hook_kinds()[kind](training, norm_of(logs[-1]), every_step=True))
        for handle in handles[:-1]:
            handle.remove()

    is_the_same(rng, data, arrange)
    handles[-1].remove()
    plain, graphed = logs
    assert len(plain) == len(graphed) >= len(data)
    assert plain == graphed


@pytest.mark.contract("11")
def test_a_hook_of_each_step_that_replaces(rng):
    """What it returns in a step is what that step goes on with, also where it reads values to decide."""
    data = batches(rng, 9)

    def arrange(training):
        count = itertools.count()

        def scale(grad):
            largest = float(grad.abs().max())
            return grad * (next(count) / (1 + largest))

        def shift(tensor, grad):
            next(count)

        training.model[0].weight.register_hook(scale, every_step=True)
        training.model[0].register_backward_hook(shift, every_step=True)

    is_the_same(rng, data, arrange)


def test_a_hook_of_each_step_that_records(rng):
    """Backward of what it records would be that of the capture each time: it is refused there; values may be new."""
    layer = nn.Linear(4, 4).to("cuda")
    factor = [2.0]
    x = drawn(rng, 2, 4)

    def step(x):
        layer.zero_grad()
        out = layer(x)
        if out.requires_grad:
            out.sum().backward()
        return out

    run = lucid.cuda.graphed_step(step, x)
    with layer.register_forward_hook(lambda module, args, output: output * factor[0], every_step=True):
        for _ in range(WARMUP):
            run(x)
        is_refused(run, x, words="recorded for backward")
    run.reset()
    plain = numbers(layer(x))
    with layer.register_forward_hook(lambda module, args, output: output.detach() * factor[0], every_step=True):
        for k in range(7):
            factor[0] = k + 1.0
            np.testing.assert_array_equal(numbers(run(x)), plain * np.float32(k + 1))


def test_a_hook_of_each_step_that_returns_the_users_tensors(rng):
    """They stay as they are: later parts read a copy."""
    w = lucid.ones(2, device="cuda", requires_grad=True)
    a, b = lucid.tensor([1.0, 2.0], device="cuda"), lucid.tensor([10.0, 20.0], device="cuda")
    count = itertools.count(1)
    w.register_hook(lambda grad: a if next(count) % 2 == 0 else b, every_step=True)
    run = lucid.cuda.graphed_step(gradient_for(w), a)
    for k in range(1, 9):
        assert run(a).tolist() == ([1.0, 2.0] if k % 2 == 0 else [10.0, 20.0])
    assert (a.tolist(), b.tolist()) == ([1.0, 2.0], [10.0, 20.0])


def test_a_hook_of_each_step_that_returns_another_of_its_arguments(rng):
    """Later parts read what it was given: to return something else than at the capture is refused."""
    layer, factor = nn.Sigmoid(), [1]
    w = lucid.tensor([0.3, -0.4], device="cuda", requires_grad=True)
    layer.register_forward_hook(lambda m, i, out: out if factor[0] == 1 else out.detach() * 2, every_step=True)

    def step(x):
        w.grad = None
        loss = layer(w * x).sum()
        loss.backward()
        return w.grad

    x = lucid.ones(2, device="cuda")
    run = lucid.cuda.graphed_step(step, x)
    for _ in range(5):
        first = run(x).tolist()
    factor[0] = 2
    is_refused(run, x, words="another tensor")
    factor[0] = 1
    assert run(x).tolist() == first


def test_a_hook_of_each_step_in_the_mode_of_its_moment(rng):
    """Whether gradients are recorded while it runs is what it was at the capture, and not what it is at the call."""
    layer, seen = nn.Linear(3, 3).to("cuda"), []
    layer.register_forward_hook(lambda *_: seen.append(lucid.is_grad_enabled()), every_step=True)
    layer.weight.register_hook(lambda grad: seen.append(lucid.is_grad_enabled()), every_step=True)

    def step(x):
        layer.zero_grad()
        with lucid.no_grad():
            layer(x)
        with lucid.enable_grad():
            layer(x).sum().backward()

    x = drawn(rng, 2, 3)
    run = lucid.cuda.graphed_step(step, x)
    for k in range(7):
        with lucid.set_grad_enabled(k % 2 == 0):
            run(x)
            assert lucid.is_grad_enabled() is (k % 2 == 0)
    assert seen == [False, True, False] * 7


def test_what_parts_before_a_hook_of_each_step_read(rng):
    """It is kept and watched as what the last part reads."""
    box, layer = [lucid.ones(3, device="cuda")], nn.Identity()
    layer.register_forward_hook(lambda *_: None, every_step=True)
    x = drawn(rng, 3)
    run = lucid.cuda.graphed_step(lambda x: layer(x * box[0]) * 2, x)
    for _ in range(5):
        np.testing.assert_array_equal(numbers(run(x)), numbers(x) * 2)
    box[0] = lucid.zeros(3, device="cuda")
    is_missed(run, x)


def test_a_hook_of_each_step_that_returns_its_argument_otherwise(rng):
    """Later parts read what it was given as it lay: the same memory in another order is refused."""
    layer, turned = nn.Identity(), []
    layer.register_forward_hook(lambda m, i, out: out.detach().t() if turned else out.detach(), every_step=True)
    x = drawn(rng, 3, 3)
    run = lucid.cuda.graphed_step(lambda x: layer(x * 2) + 1, x)
    for _ in range(5):
        np.testing.assert_array_equal(numbers(run(x)), numbers(x) * 2 + 1)
    turned.append(1)
    is_refused(run, x, words="another tensor")


@pytest.mark.parametrize("kind", ["assign", "step", "step hook"])
def test_a_hook_of_each_step_that_assigns_gradients(rng, kind):
    """What it assigns is what the optimizer steps by, also where it takes the step itself and drops the gradient.

    A step hook is given the optimizer alone: what it assigns to the parameters there counts.
    """

    def make():
        w = lucid.ones(64, device="cuda", requires_grad=True)
        optimizer, count = lucid.optim.SGD([w], lr=0.1), itertools.count(1)

        def assign(given, *_):
            for param in given.param_groups[0]["params"] if kind == "step hook" else [given]:
                param.grad = param.grad * next(count)

        def update(leaf):
            optimizer.step()
            optimizer.zero_grad()

        def step(x):
            optimizer.zero_grad()
            loss = (w * x).sum()
            loss.backward()
            if kind != "step":
                optimizer.step()
            return loss

        if kind == "step hook":
            optimizer.register_step_pre_hook(assign, every_step=True)
        else:
            w.register_post_accumulate_grad_hook(assign if kind == "assign" else update, every_step=True)
        return step, lambda: [numbers(w)]

    alike(make, *(drawn(rng, 64) for _ in range(9)))


def test_what_a_hook_of_each_step_keeps(rng):
    """A state that it makes when it first runs, at the capture, is its own: no replay writes there."""
    data = batches(rng, 9)

    def arrange(training):
        means = {}

        def smooth(grad):
            if "mean" not in means:
                means["mean"] = lucid.zeros_like(grad)
            return means["mean"].mul_(0.5).add_(grad)

        training.model[0].weight.register_hook(smooth, every_step=True)
        return means

    _, means = is_the_same(rng, data, arrange)
    same(*([numbers(each["mean"])] for each in means))


def test_a_hook_of_each_step_that_returns_another_kind(rng):
    """The parts of a graph read what was returned at the capture: something else is refused."""
    x = lucid.ones(2, device="cuda", requires_grad=True)
    returns = [None]
    x.register_hook(lambda grad: None if returns[0] is None else grad * returns[0], every_step=True)
    y = lucid.ones(2, device="cuda")
    run = lucid.cuda.graphed_step(gradient_for(x), y)
    for _ in range(5):
        assert run(y).tolist() == [1.0, 1.0]
    returns[0] = 3
    is_refused(run, y, words="returned a tensor of shape")
    run.reset()
    for _ in range(5):
        assert run(y).tolist() == [3.0, 3.0]


@pytest.mark.contract("11")
@pytest.mark.parametrize("kind", hook_kinds())
def test_a_hook_that_comes_or_goes(rng, kind):
    """The next call captures anew, and says so, if the hook would fire in the step, and else does not."""
    data, training, other = batches(rng, 1) * (WARMUP + 1), Training(0), Training(1)
    other.step(*data[0])
    run = trained(training, data)
    twice = data[:2]
    assert captures(run, *twice) == 0
    handle = hook_kinds()[kind](training, print_nothing_of)
    assert captures(run, *twice) == 1
    handle.remove()
    assert captures(run, *twice) == 1
    everywhere = kind.startswith("any ")
    handle = hook_kinds()[kind](other, print_nothing_of)
    assert captures(run, *twice) == everywhere
    handle.remove()
    assert captures(run, *twice) == everywhere


def print_nothing_of(*given):
    """Look at what a hook is given."""


@pytest.mark.contract("11")
def test_tables_of_hooks_that_are_replaced(rng):
    """It is as if hooks came and went, of the modules and optimizers that the step uses."""
    data, training, other = batches(rng, 1), Training(0), Training(1)
    run = lucid.cuda.graphed_step(training.step, *data[0])
    for _ in range(WARMUP + 1):
        run(*data[0])
    for owner, name, used in (
        (training.model[1], "_forward_hooks", True),
        (training.optimizer, "_optimizer_step_pre_hooks", True),
        (other.model[1], "_forward_hooks", False),
        (other.optimizer, "_optimizer_step_pre_hooks", False),
    ):
        for hooks in ({1: print_nothing_of}, {}):
            setattr(owner, name, hooks)
            assert captures(run, *data, *data) == used


@pytest.mark.contract("11")
def test_hooks_that_come_and_go(rng):
    """One that was added or removed makes the next call capture anew, and say so; others leave the graph alone."""
    data, training = batches(rng, 5), Training(0)
    run = lucid.cuda.graphed_step(training.step, *data[0])
    calls = []
    step = run._step
    run._step = lambda *args: (calls.append(1), step(*args))[1]
    for batch in data:
        run(*batch)
    assert len(calls) == WARMUP + 1

    def replay():
        with warnings.catch_warnings(record=True, action="always") as caught:
            for batch in data:
                run(*batch)
        return [str(warning.message) for warning in caught]

    seen = []
    handle = training.model[0].weight.register_hook(lambda grad: seen.append(1), every_step=True)
    assert ["captured anew" in text for text in replay()] == [True]
    assert (len(calls), len(seen)) == (WARMUP + 2, len(data))
    handle.remove()
    assert ["captured anew" in text for text in replay()] == [True]
    assert (len(calls), len(seen)) == (WARMUP + 3, len(data))
    # of a tensor that no step knows
    y = lucid.ones(3, device="cuda", requires_grad=True) * 2
    with y.register_hook(print):
        assert replay() == []
    training.model.register_state_dict_pre_hook(print)
    assert replay() == []


@pytest.mark.parametrize("kind", hook_kinds())
def test_a_hook_that_comes_and_goes(rng, kind):
    """Whatever it hangs on, the next step calls it, and the one after its end does not."""
    ((x, y),), training, seen = batches(rng, 1), Training(0), []
    run = lucid.cuda.graphed_step(training.step, x, y, warmup=1)
    assert [captures(run, (x, y)) for _ in range(3)] == [0] * 3
    handle = hook_kinds()[kind](training, lambda *_: seen.append(1), every_step=True)
    assert captures(run, (x, y)) == 1
    once = len(seen)
    assert once
    assert captures(run, (x, y)) == 0
    assert len(seen) == 2 * once
    handle.remove()
    assert [captures(run, (x, y)) for _ in range(2)] == [1, 0]
    assert len(seen) == 2 * once


def test_a_hook_that_raises(rng):
    """It raises at the call, in a replay, too, and the next call goes on."""
    x = lucid.zeros(2, device="cuda", requires_grad=True)
    bad = []

    def check(grad):
        if bad:
            raise FloatingPointError(bad.pop())

    x.register_hook(check, every_step=True)
    y = lucid.ones(2, device="cuda")
    run = lucid.cuda.graphed_step(gradient_for(x), y)
    for k in range(7):
        bad.append(k)
        with pytest.raises(FloatingPointError, match=str(k)):
            run(y * k)
        assert not lucid.cuda.is_current_stream_capturing()
        assert run(y * k).tolist() == [k, k]


@pytest.mark.parametrize("in_parts", [False, True])
@pytest.mark.parametrize("moment", ["unscaled", "stepped", "updated"])
def test_a_scaler_after_a_capture_that_failed(rng, moment, in_parts):
    """It is as before the step, which can be taken again, wherever in the step the capture failed."""
    w = lucid.ones(1, device="cuda", requires_grad=True)
    optimizer, scaler, reads = lucid.optim.SGD([w], lr=0.1), lucid.amp.GradScaler(), []
    if in_parts:
        optimizer.register_step_post_hook(lambda *_: None, every_step=True)

    def step(x):
        optimizer.zero_grad()
        loss = (w * x).sum()
        scaler.scale(loss).backward()
        for name, act in (
            ("unscaled", lambda: scaler.unscale_(optimizer)),
            ("stepped", lambda: scaler.step(optimizer)),
            ("updated", scaler.update),
        ):
            act()
            if name in reads:
                loss.item()
        return loss

    x = lucid.ones(1, device="cuda")
    run = lucid.cuda.graphed_step(step, x)
    for _ in range(WARMUP):
        run(x)
    reads.append(moment)
    for _ in range(2):
        is_refused(run, x, words="item")
    reads.clear()
    before = w.item()
    for _ in range(3):
        run(x)
    assert w.item() == pytest.approx(before - 0.3, rel=1e-5)


def test_a_scaler_without_a_first_step(rng):
    """Where all steps of the warm-up were left out, dampening waits for the first that is not, and the error says so.

    Without dampening, and for optimizers that count on the device, the graph does it, as without.
    """
    data = [lucid.full((3,), number, device="cuda") for number in (*[float("inf")] * 5, 1.0, 2.0, 4.0)]

    def make(optimizer=lucid.optim.SGD, **settings):
        w = lucid.ones(3, device="cuda", requires_grad=True)
        optimizer, scaler = optimizer([w], lr=0.1, **settings), lucid.amp.GradScaler()

        def step(x):
            optimizer.zero_grad()
            loss = (w * x).sum()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            return loss

        return step, lambda: [numbers(w)]

    for settings in (
        {"momentum": 0.9},
        {"momentum": 0.9, "nesterov": True},
        {"optimizer": lucid.optim.AdamW, "capturable": True},
        {"optimizer": lucid.optim.NAdam, "capturable": True},
        {"optimizer": lucid.optim.ASGD, "capturable": True, "t0": 1.0},
        {"optimizer": lucid.optim.Rprop, "capturable": True},
        {"optimizer": lucid.optim.Adagrad, "fused": True},
        {"optimizer": lucid.optim.Lion},
    ):
        alike(partial(make, **settings), *data)
    damped = partial(make, momentum=0.9, dampening=0.5)
    with pytest.raises(CaptureError, match=r"first step.*not finite each time.*smaller init_scale") as caught:
        alike(damped, *data)
    assert "capturable" not in str(caught.value)
    data[WARMUP - 1] = data[-1]
    alike(damped, *data)


def test_settings_that_a_graph_cannot_follow(rng):
    """A scaler's constants, and parameters that an optimizer gets or loses, are told at the next call."""
    w, other = (lucid.ones(1, device="cuda", requires_grad=True) for _ in range(2))
    optimizer, scaler = lucid.optim.SGD([w], lr=0.1), lucid.amp.GradScaler(growth_interval=2)

    def step(x):
        optimizer.zero_grad()
        loss = (w * other * x).sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    x = lucid.ones(1, device="cuda")
    run = lucid.cuda.graphed_step(step, x)
    for _ in range(5):
        run(x)
    scaler.load_state_dict({**scaler.state_dict(), "growth_factor": 4.0})
    is_refused(run, x, words="growth factor")
    run.reset()
    for _ in range(5):
        run(x)
    optimizer.add_param_group({"params": [other]})
    is_refused(run, x, words="added or removed")
    run.reset()
    before = other.item()
    for _ in range(5):
        run(x)
    assert other.item() != before


def test_memory_goes_with_the_last_reference(rng):
    """A graphed step that is dropped, or captures anew, leaves nothing to the collector of garbage."""
    data, training = batches(rng, 5), Training(0)
    gc.collect()
    with no_collections():
        sizes = []
        for _ in range(4):
            run = lucid.cuda.graphed_step(training.step, *data[0])
            for batch in data:
                run(*batch)
            training.optimizer.zero_grad()
            run.reset()
            sizes.append(lucid.cuda.memory_allocated())
        assert sizes[1] == sizes[2] == sizes[3]


def test_a_graph_is_collected(rng):
    """With the graphed step its memory goes, and the tensors that it kept."""
    data = batches(rng, 5)
    sizes = []
    for _ in range(3):
        training = Training(0)
        run = trained(training, data)
        del training, run
        gc.collect()
        lucid.cuda.empty_cache()
        sizes.append((lucid.cuda.memory_allocated(), lucid.cuda.memory_reserved()))
    assert sizes[1] == sizes[2]


def test_gradients_of_others_may_come_and_go():
    """A leaf that the step does not use may get other gradients between its calls, also one that had some before."""
    weight, other = (lucid.ones(3, device="cuda", requires_grad=True) for _ in range(2))
    other.sum().backward()

    def step(x):
        weight.grad = None
        loss = (weight * x).sum()
        loss.backward()
        return loss

    graphed = lucid.cuda.graphed_step(step, lucid.ones(3, device="cuda"), warmup=1)
    for count in range(4):
        assert graphed(lucid.full((3,), float(count), device="cuda")).item() == 3.0 * count
        assert weight.grad.tolist() == [count] * 3
        if not count:
            # it has one at the capture, too
            continue
        other.grad = None
        if count % 2:
            (other * count).sum().backward()
            assert other.grad.tolist() == [count] * 3


def test_autocast_in_a_captured_step(rng):
    """A step under autocast, with a GradScaler, does the same captured, bit by bit: no cast of a leaf outlives it."""
    start, *data = (drawn(rng, *shape) for shape in [(4, 3)] + [(6, 4)] * 8)

    def make():
        weight = start.clone().requires_grad_()
        optimizer, scaler = lucid.optim.SGD([weight], lr=0.1), lucid.amp.GradScaler(init_scale=256.0)

        def step(x):
            optimizer.zero_grad()
            with lucid.autocast("cuda"):
                loss = (x @ weight).softmax(1).pow(2).sum()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            return loss

        return step, lambda: [numbers(weight)]

    # around all steps, the cache would last from one to the next
    with lucid.autocast("cuda"):
        alike(make, *data)


def test_other_threads_are_left_alone(rng):
    """Gradients and memory that another thread gives its tensors during a capture stay its own, in replays too."""
    training, other = Training(0), nn.Linear(4, 2).to("cuda")
    given, moved = lucid.ones(3, 4, device="cuda"), lucid.ones(3, device="cuda")
    theirs = lucid.full((3,), 2.0, device="cuda")
    (x, y), *rest = batches(rng, 6)
    calls = itertools.count()

    def work():
        other(given).sum().backward()
        moved.data = theirs

    def step(x, y):
        loss = training.step(x, y)
        if next(calls) == WARMUP:
            in_threads(work)
        return loss

    run = lucid.cuda.graphed_step(step, x, y)
    for _ in range(WARMUP + 1):
        run(x, y)
    np.testing.assert_allclose(numbers(other.weight.grad), 3.0)
    other.zero_grad()
    for batch in rest:
        run(*batch)
    assert other.weight.grad is None

    def failing(x, y):
        step(x, y)
        return x.sum().item() if next(failures) == WARMUP else None

    calls, failures = itertools.count(), itertools.count()
    moved = lucid.ones(3, device="cuda")
    run = lucid.cuda.graphed_step(failing, x, y)
    with pytest.raises(CaptureError, match="item"):
        for _ in range(WARMUP + 1):
            run(x, y)
    np.testing.assert_allclose(numbers(other.weight.grad), 3.0)
    np.testing.assert_array_equal(numbers(moved), 2.0)


def test_gradients_that_a_hook_changes_before_a_failure_are_as_before(rng):
    """What a hook of each step gave a parameter that the step itself does not touch is put back with the rest."""
    training, (x, y) = Training(0), batches(rng, 1)[0]
    weight, idle = training.model[0].weight, lucid.ones(2, device="cuda", requires_grad=True)
    training.optimizer.add_param_group({"params": [idle]})
    calls = itertools.count()

    def hook(optimizer, *_):
        if next(calls) == WARMUP:
            idle.grad = lucid.ones_like(idle)
            raise KeyError(len(optimizer.param_groups))

    training.optimizer.register_step_pre_hook(hook, every_step=True)
    run = lucid.cuda.graphed_step(training.step, x, y)
    for _ in range(WARMUP):
        run(x, y)
    before = weight.grad
    with pytest.raises(KeyError):
        run(x, y)
    assert weight.grad is before
    assert idle.grad is None
