"""What ops on CUDA devices do with layouts, devices, dtypes and indices that they did not hope for, and without memory.

Sizes beyond 32 bits are in test_huge.py, indices of each op also in test_indexing.py and test_embedding.py.
"""

from __future__ import annotations

import contextlib
import itertools

import numpy as np
import pytest

import lucid
from lucid import nn, optim
from lucid.autograd.base import wrap
from lucid.base import gpu
from lucid.base.random.generator import default_generator_for
from lucid.cuda.simulator.counting import counters
from lucid.errors import DeviceError, IndexOutOfRangeError, KernelError, OutOfMemoryError
from lucid.nn import functional
from tests.gradients import drawing, flat, is_floating, numbers, outputs_and_gradients, tensors_of
from tests.ops.test_samples import GRADIENT, SAMPLES, VALUE, check_close
from tests.optimizers import USUAL
from tests.pieces import function_of
from tests.sample_rows.linalg import decomposition
from tests.samples import FLOATS, INTEGERS, check_each

pytestmark = pytest.mark.gpu


def each(samples):
    """Return what makes a test of each row."""
    return pytest.mark.parametrize("sample", [pytest.param(s, id=s.name) for s in samples])


EVERY = each(SAMPLES)


def outcome(act):
    """Return what a call gives, or the class of what it raises."""
    try:
        return act()
    except Exception as error:  # noqa: BLE001 - whatever it is, both devices must raise it
        return type(error)


# ---- layouts ----


def turned(xp, array):
    return xp.ascontiguousarray(array.T).T if array.ndim > 1 else array


def backwards(xp, array):
    back = (slice(None, None, -1),) * array.ndim
    return xp.ascontiguousarray(array[back])[back] if array.ndim else array


def expanded(xp, array):
    """Return the first row in place of all, without a copy."""
    return xp.broadcast_to(array[:1], array.shape) if array.ndim > 1 and array.dtype.kind in "fV" else array


LAYOUTS = {"dense": lambda xp, array: array, "turned": turned, "backwards": backwards, "expanded": expanded}


def results_of(sample, tensors, upstream):
    """Return the outputs of a row's op, and the gradients of its inputs."""
    if not sample.differentiable:
        return flat(sample.op(*tensors)), []
    return outputs_and_gradients(sample.op, tensors, upstream, may_be_constant=True)


def check_like_cpu(sample, arrays, dtype, place, rng):
    """Fail unless a row's op gives on the device, for arrays that `place` lays out there, what it gives on the CPU."""
    dtype = dtype if dtype in sample.dtypes else None
    upstream, results = drawing(rng), []
    for device in ("cpu", "cuda"):
        xp = np if device == "cpu" else gpu.cupy()
        tensors = []
        for number, tensor in enumerate(tensors_of(arrays, dtype=dtype, requires_grad=False, device=device)):
            laid = wrap(place(xp, tensor.array))
            needs = sample.differentiable and is_floating(laid.array) and number not in sample.constants
            tensors.append(laid.requires_grad_(needs))
        results.append(outcome(lambda tensors=tensors: results_of(sample, tensors, upstream)))
    if isinstance(results[0], type):
        assert results[1] is results[0]
        return
    scale = 2 * sample.tolerance.get(dtype, VALUE[dtype or "float32"]) / VALUE[dtype or "float32"]
    errors = VALUE[dtype or "float32"], GRADIENT[dtype or "float32"]
    for what, error, here, there in zip(("value", "gradient"), errors, *results, strict=True):
        for expected, got in zip(here, there, strict=True):
            assert (got is None) == (expected is None)
            if got is not None:
                assert (got.dtype, got.device.type) == (expected.dtype, "cuda")
                check_close(numbers(got), numbers(expected), error * scale, what)


# Of rows that are equal, the variance or the gradient is zero, and rounding decides what is made of it; which of them
# is chosen is not said; and a matrix of them has no inverse, and factors that are not said.
UNSTEADY_IF_EQUAL = (
    "batch_norm", "corrcoef", "scaled_dot_product_attention", "topk", *sorted({row.name for row in decomposition.ROWS}),
)  # fmt: skip


@EVERY
def test_layouts(sample, rng):
    """Transposed, reversed and repeated inputs give on the device what they give on the CPU."""

    def check(how, dtype, rng):
        check_like_cpu(sample, [np.asarray(a) for a in sample.inputs(rng)], dtype, LAYOUTS[how], rng)

    cases = [("turned", "float32"), ("turned", "bfloat16"), *(("backwards", dtype) for dtype in FLOATS)]
    if not sample.name.startswith(UNSTEADY_IF_EQUAL):
        cases.append(("expanded", "bfloat16"))
    check_each(check, cases, rng)


@EVERY
def test_integers_of_any_layout(sample, rng):
    """Integers and bools, wherever they lie, give on the device what they give on the CPU, or the same error."""

    def check(how, dtype, rng):
        arrays = [np.nan_to_num(np.asarray(a)) for a in sample.inputs(rng)]
        # no zeros: the CPU looks for divisors of zero, the device does not wait for them
        whole = [(1 + np.abs(3 * a.clip(-9, 9)).astype(int)).astype(dtype) if is_floating(a) else a for a in arrays]
        results = []
        for xp, device in ((np, "cpu"), (gpu.cupy(), "cuda")):
            tensors = [wrap(LAYOUTS[how](xp, t.array)) for t in tensors_of(whole, requires_grad=False, device=device)]
            results.append(outcome(lambda: flat(sample.op(*tensors))))
        if isinstance(results[0], type):
            assert results[1] is results[0]
            return
        if sample.name.startswith("topk"):
            # which of equal elements it takes is not said
            results = [found[:1] for found in results]
        for expected, got in zip(*results, strict=True):
            assert (got.dtype, got.device.type) == (expected.dtype, "cuda")
            exact = not is_floating(expected.array)
            check_close(numbers(got), numbers(expected), 0 if exact else 2 * VALUE["float32"], dtype)

    check_each(check, list(itertools.product(["dense", "turned", "backwards"], (*INTEGERS, "bool"))), rng)


@each([sample for sample in SAMPLES if sample.empty])
def test_empty(sample, rng):
    """Inputs without elements give on the device what they give on the CPU, and so do their gradients."""

    def check(dtype, rng):
        check_like_cpu(sample, [np.asarray(a) for a in sample.empty(rng)], dtype, LAYOUTS["dense"], rng)

    check_each(check, [("float32",), ("bfloat16",)], rng)


# ---- devices and dtypes ----


# What only asks an operand for its shape, makes views, or reads counts on the host.
SHAPES_ONLY = {"view_as", "reshape_as", "expand_as", "broadcast_tensors", "meshgrid", "repeat_interleave"}
# What is made of several ops, of which the first may have made something new before another sees the second device.
COMPOSED = {
    "addbmm", "bilinear", "binary_cross_entropy", "binary_cross_entropy_with_logits", "block_diag", "cartesian_prod",
    "cdist", "cholesky_solve", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_embedding_loss",
    "cosine_similarity", "cross", "cross_entropy", "einsum", "embedding_bag", "gaussian_nll_loss",
    "getitem:mask and index", "getitem:mask of rows", "heaviside", "hinge_embedding_loss", "index_add", "istft",
    "ldexp", "linalg.cross", "linalg.lstsq", "linalg.lu_solve", "linalg.tensorsolve:dims", "logaddexp2", "lu_solve",
    "margin_ranking_loss", "mul:real and complex", "multi_margin_loss", "multilabel_margin_loss",
    "multilabel_soft_margin_loss", "nll_loss", "poisson_nll_loss", "polar", "scatter_reduce", "setitem",
    "soft_margin_loss", "special.xlog1py", "stft", "trapezoid", "triplet_margin_loss",
    "triplet_margin_with_distance_loss", "xlogy",
}  # fmt: skip


def op_of(sample):
    return sample.name.partition(":")[0]


def mixtures(tensors, others):
    """Yield operands of which one at a time is the other, and every second one."""
    for place in range(len(tensors)):
        yield [other if k == place else tensor for k, (tensor, other) in enumerate(zip(tensors, others, strict=True))]
    yield [(tensor, other)[k % 2] for k, (tensor, other) in enumerate(zip(tensors, others, strict=True))]


@each([s for s in SAMPLES if op_of(s) not in SHAPES_ONLY and len(s.inputs(np.random.default_rng(0))) > 1])
def test_mixed_devices(sample, rng, monkeypatch):
    """Operands on two devices are a DeviceError that names one, and nothing is launched; numbers may lie on the CPU."""
    if gpu.is_simulated():
        monkeypatch.setenv("LUCID_CUDA_SIMULATOR", "2")

    def check(here, there, rng):
        arrays = sample.inputs(rng)
        tensors, others = (tensors_of(arrays, sample.constants, requires_grad=False, device=d) for d in (here, there))
        for mixed in mixtures(tensors, others):
            if len({tensor.device for tensor in mixed if tensor.ndim or tensor.device.type != "cpu"}) < 2:
                continue
            before, values = launches(), [tensor.tolist() for tensor in mixed]
            with pytest.raises(DeviceError, match=f"{here}|{there}"):
                sample.op(*mixed)
            assert launches() == before or {op_of(sample), sample.name} & COMPOSED
            assert all(tensor._version == 0 for tensor in mixed)
            assert [tensor.tolist() for tensor in mixed] == values

    several = [("cuda:0", "cuda:1"), ("cuda:1", "cpu")] if gpu.device_count() > 1 else []
    check_each(check, [("cuda:0", "cpu"), ("cpu", "cuda:0"), *several], rng)


@pytest.mark.parametrize(("here", "there"), [("cpu", "cuda:0"), ("cuda:1", "cpu"), ("cuda:0", "cuda:1")])
def test_gradients_of_another_device(here, there):
    """What is given to backward, and what a Function's backward returns, lies where its tensor lies."""
    if "cuda:1" in (here, there) and lucid.cuda.device_count() < 2:
        pytest.skip("needs two CUDA devices")
    x, grad = lucid.ones(4, device=here, requires_grad=True), lucid.ones(4, device=there)

    Returning = function_of(lambda ctx, x: x * 2, lambda ctx, _: grad)

    with pytest.raises(ValueError, match=f"{there}.*{here}"):
        (x * 2).backward(grad)
    with pytest.raises(DeviceError, match=f"expected {here}, got .*{there}"):
        Returning.apply(x).sum().backward()
    assert x.grad is None


def launches():
    """Return how many kernels were launched on the simulated device; 0 on a real one."""
    return counters.launches if gpu.is_simulated() else 0


@EVERY
def test_other_dtypes(sample, rng):
    """A dtype that an op does not take on the CPU is refused on the device by the same error, and no other is."""

    def check(dtype, rng):
        arrays = [np.asarray(a) for a in sample.inputs(rng)]
        with np.errstate(all="ignore"):
            # no zeros: the CPU looks for divisors of zero, the device does not wait for them
            arrays = [np.abs(a).astype(dtype) + np.array(a == a).astype(dtype) if is_floating(a) else a for a in arrays]
            kinds = []
            for device in ("cpu", "cuda"):
                tensors = tensors_of(arrays, requires_grad=False, device=device)
                kinds.append(outcome(lambda: [str(out.dtype) for out in flat(sample.op(*tensors))]))
        assert kinds[0] == kinds[1]

    # integers and bools are compared above, and so are the errors of those that do not take them
    check_each(check, [("complex64",)], rng)


# ---- indices ----

BEYOND = {
    "embedding": lambda x, i: functional.embedding(i, x),
    "gather": lambda x, i: lucid.gather(x, 0, i[:, None].expand(3, 4)),
    "take_along_dim": lambda x, i: lucid.take_along_dim(x, i[:, None], 0),
    "index_select": lambda x, i: lucid.index_select(x, 0, i),
    "scatter": lambda x, i: lucid.scatter(x, 0, i[:, None].expand(3, 4), x),
    "scatter_add": lambda x, i: lucid.scatter_add(x, 0, i[:, None].expand(3, 4), x),
    "index_add": lambda x, i: lucid.index_add(x, 0, i, x),
    "getitem": lambda x, i: x[i],
    "cross_entropy": lambda x, i: functional.cross_entropy(x, i),
    "nll_loss": lambda x, i: functional.nll_loss(x, i),
    "one_hot": lambda x, i: functional.one_hot(i, 4) * x.sum(),
}


@pytest.mark.parametrize("wrong", [7, 4, -9, 2**40, -(2**40)])
@pytest.mark.parametrize("name", BEYOND)
def test_indices_outside(name, wrong):
    """An index outside is an IndexOutOfRangeError in debug mode; without it nothing outside of memory is touched."""
    x = lucid.randn(3, 4, device="cuda", requires_grad=True)
    index = lucid.tensor([0, wrong, 2], device="cuda")
    out = BEYOND[name](x, index)
    lucid.autograd.grad(out.sum(), x)
    lucid.cuda.set_debug(True)
    try:
        with pytest.raises(IndexOutOfRangeError, match=str(wrong)):
            BEYOND[name](x, index)
    finally:
        lucid.cuda.set_debug(False)
    assert lucid.is_grad_enabled()


# ---- memory ----


@contextlib.contextmanager
def failing(turn):
    """Let the allocation of that number, counted from 0, and those after it find no memory; tells how many there were.

    -1 lets all of them find some.
    """
    cupy = gpu.cupy()

    class Full(cupy.cuda.MemoryHook):
        name = "full"
        seen = 0

        def malloc_preprocess(self, **event):
            self.seen += 1
            if self.seen > turn >= 0:
                raise cupy.cuda.memory.OutOfMemoryError(event["size"], 0, 0)

    with Full() as hook:
        yield hook


class Training:
    """A small model, its optimizer, and steps on batches that repeat."""

    def __init__(self, optimizer, options):
        lucid.manual_seed(3)
        self.model = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.GELU(), nn.Dropout(0.25), nn.Linear(8, 5))
        self.model.to("cuda")
        self.optimizer = getattr(optim, optimizer)(self.model.parameters(), lr=0.05, **options)
        rng = np.random.default_rng(5)
        self.x = lucid.tensor(rng.standard_normal((4, 6)), dtype=lucid.float32, device="cuda")
        self.target = lucid.tensor(rng.integers(0, 5, 4), device="cuda")

    def step(self):
        self.optimizer.zero_grad()
        functional.cross_entropy(self.model(self.x), self.target).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()

    def parameters(self):
        return [numbers(p) for p in self.model.parameters()]

    def gradients(self):
        return [None if p.grad is None else numbers(p.grad) for p in self.model.parameters()]

    def state(self):
        return {
            (k, name): numbers(value).copy() if isinstance(value, lucid.Tensor) else value
            for k, p in enumerate(self.model.parameters())
            for name, value in self.optimizer.state.get(p, {}).items()
        }


def same(a, b):
    """Tell whether two lists, or dicts, of arrays are equal bit for bit."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and same(list(a.values()), list(b.values()))
    return len(a) == len(b) and all(
        (one is None and other is None) or (one is not None and other is not None and np.array_equal(one, other))
        for one, other in zip(a, b, strict=True)
    )


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(("optimizer", "options"), USUAL.items())
def test_memory_that_ends_at_any_allocation(optimizer, options, first):
    """Wherever in a step memory ends: no parameter and no state is half changed, and a repeated step is the step."""

    def prepared():
        training = Training(optimizer, options)
        if not first:
            training.step()
        return training

    training = prepared()
    with failing(-1) as hook:
        training.step()
    reference = training
    allocations = hook.seen
    assert allocations > 20
    for turn in range(allocations):
        training = prepared()
        before, state, drawn = training.parameters(), training.state(), default_generator_for("cuda").get_state()
        stream = lucid.cuda.current_stream()
        with failing(turn), pytest.raises(OutOfMemoryError, match=r"cuda:0 has no room left: .*Tensors hold [0-9,]+"):
            training.step()
        assert same(training.parameters(), before), f"allocation {turn} of {allocations}"
        # a state that is made at the first step may be there, as zeros
        held, kept = (
            {key: value for key, value in each.items() if not first or np.any(value)}
            for each in (training.state(), state)
        )
        assert same(held, kept), f"allocation {turn} of {allocations}"
        assert lucid.is_grad_enabled()
        assert lucid.cuda.current_stream() == stream
        for got, whole in zip(training.gradients(), training.model.parameters(), strict=True):
            assert got is None or (got.shape == whole.shape and np.isfinite(got).all())
        default_generator_for("cuda").set_state(drawn)
        training.step()
        assert same(training.parameters(), reference.parameters()), f"allocation {turn} of {allocations}"
        assert same(training.state(), reference.state()), f"allocation {turn} of {allocations}"


def test_one_number_keeps_its_shape(monkeypatch):
    """Tensors of no dimension have none after dropout and after a copy to another device."""
    x = lucid.tensor(3.0, device="cuda")
    assert functional.dropout(x, 0.5).shape == ()
    if gpu.is_simulated():
        monkeypatch.setenv("LUCID_CUDA_SIMULATOR", "2")
    if gpu.device_count() > 1:
        assert x.to("cuda:1").shape == ()


def test_the_error_is_one_of_memory():
    """What the error can be caught as."""
    assert issubclass(OutOfMemoryError, MemoryError)
    assert issubclass(OutOfMemoryError, RuntimeError)
    assert lucid.cuda.OutOfMemoryError is OutOfMemoryError


# ---- launches ----


def test_grids_that_cuda_refuses():
    """Too many blocks or threads, or too much shared memory, are refused before anything runs."""
    module = lucid.cuda.compile('extern "C" __global__ void nothing(float* x) { x[0] = 1; }')
    x = lucid.zeros(1, device="cuda")
    for grid, block in (
        (2**31, 1), ((1, 65_536), 1), ((1, 1, 65_536), 1), ((1, 2**32 + 1), 1), (1, 1025), (1, (1, 1, 65)), (0, 1)
    ):  # fmt: skip
        with pytest.raises(KernelError):
            module["nothing"](grid, block, (x,))
    with pytest.raises(KernelError, match="shared memory"):
        module["nothing"](1, 1, (x,), shared_mem=(227 << 10) + 1)
    assert x.item() == 0
