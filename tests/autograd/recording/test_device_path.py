"""The short path of planned ops: it records what the general path records, and takes nothing that it does not know."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.autograd.recording.namespace import PRIMITIVES
from lucid.autograd.recording.primitive import Primitive
from lucid.base import gpu
from lucid.errors import DeviceError, GraphError, InplaceError
from lucid.nn import functional as F
from tests.device import two_devices

pytestmark = pytest.mark.gpu

OPS = {
    "softmax": lambda x, w, b: F.softmax(x, -1),
    "log_softmax": lambda x, w, b: F.log_softmax(x, 0),
    "layer_norm": lambda x, w, b: F.layer_norm(x, (4,), b, b * 2),
    "layer_norm without weights": lambda x, w, b: F.layer_norm(x, (4,)),
    "sum": lambda x, w, b: x.sum(),
    "sum of rows": lambda x, w, b: x.sum(1, keepdim=True),
    "matmul": lambda x, w, b: x @ w,
    "matmul with itself": lambda x, w, b: x @ x,
    "linear": F.linear,
    "linear without bias": lambda x, w, b: F.linear(x, w),
    "addmm": lambda x, w, b: lucid.addmm(b, x, w, beta=0.5, alpha=2.0),
    "mean": lambda x, w, b: x.mean(0),
    "amax": lambda x, w, b: x.amax(1),
    "logsumexp": lambda x, w, b: lucid.logsumexp(x, 1),
    "norm": lambda x, w, b: lucid.norm(x),
    "prod": lambda x, w, b: x.prod(1),
    "masked_fill": lambda x, w, b: x.masked_fill(lucid.eye(4, device=x.device) > 0, -0.0),
    "reshape of a transpose": lambda x, w, b: x.T.reshape(2, 8),
    "pad": lambda x, w, b: F.pad(x, (1, 2)),
    "cross_entropy": lambda x, w, b: F.cross_entropy(x, lucid.arange(4, device=x.device), label_smoothing=0.1),
    "nll_loss": lambda x, w, b: F.nll_loss(x, lucid.arange(4, device=x.device), reduction="none"),
    "embedding": lambda x, w, b: F.embedding(lucid.tensor([[1, 3], [0, 1]], device=x.device), x),
    "gather": lambda x, w, b: x.gather(1, lucid.tensor([[1, 3], [0, 1]], device=x.device)),
    "max_pool2d": lambda x, w, b: F.max_pool2d(x.reshape(1, 4, 4), 2),
    "avg_pool2d": lambda x, w, b: F.avg_pool2d(x.reshape(1, 4, 4), 3, padding=1),
    "interpolate": lambda x, w, b: F.interpolate(x.reshape(1, 1, 4, 4), (3, 5), mode="bilinear"),
    "unfold": lambda x, w, b: F.unfold(x.reshape(1, 1, 4, 4), 2),
    "fold": lambda x, w, b: F.fold(x, (3, 3), 2),
    "view": lambda x, w, b: x.view(2, 8),
    "transpose": lambda x, w, b: x.T,
    "getitem": lambda x, w, b: x[1],
    "slice": lambda x, w, b: x[1:, ::2],
    "expand": lambda x, w, b: b.expand(3, 4),
    "attention written out": lambda x, w, b: (x[:2] @ x[2:].T).softmax(-1) @ w[:2],
}
every_op = pytest.mark.parametrize("op", [pytest.param(op, id=name) for name, op in OPS.items()])


@pytest.fixture
def operands(rng):
    """Return a function that makes three tensors of the same numbers, of which those that are named require grad."""
    values = [rng.standard_normal(shape).astype(np.float32) for shape in ((4, 4), (4, 4), (4,))]

    def make(needed=(True, True, True)):
        return [
            lucid.tensor(value, device="cuda", requires_grad=need) for value, need in zip(values, needed, strict=True)
        ]

    return make


def told(value):
    """Return what a node keeps in words: of arrays form and numbers."""
    return [(a.shape, a.dtype, a.get().tolist()) if hasattr(a, "get") else a for a in value]


def shown(out, operands):
    """Return what can be told of a result and of its node."""
    node = out.grad_fn
    if node is None:
        return out.tolist(), out.requires_grad, out.is_inference()
    plan, saved, versions, values = node.kept
    edges = [None if edge is None else (type(edge[0]).__name__, edge[1]) for edge in node.edges]
    counters = [any(counter is x.version for x in (*operands, out)) for counter in versions[::2]]
    return out.tolist(), node.name(), node.outputs, edges, plan, told(saved), versions[1::2], counters, values


@every_op
@pytest.mark.parametrize("needed", [(True, True, True), (True, False, False), (False, True, True), (False,) * 3])
def test_it_records_what_the_general_path_records(op, needed, operands, monkeypatch):
    """The second call of a form makes the same result and the same node as the first, which no plan served."""
    given = operands(needed)
    for x in given:
        x.version = [0]
    op(*given)
    with monkeypatch.context() as patch:
        patch.setattr(Primitive, "on_device", None)
        expected = shown(op(*given), given)
    monkeypatch.setattr(Primitive, "record", None)
    assert shown(op(*given), given) == expected


@every_op
def test_gradients_are_those_of_the_general_path(op, operands, monkeypatch):
    """Each operand gets its gradient, and the second derivative is there as well."""

    def gradients():
        given = operands()
        out = op(*given)
        first = lucid.autograd.grad(
            out, given, out.detach() + 1, create_graph=True, allow_unused=True, materialize_grads=True
        )
        second = lucid.autograd.grad(sum((g * g).sum() for g in first), given, allow_unused=True)
        return [None if g is None else g.tolist() for g in (*first, *second)]

    with monkeypatch.context() as patch:
        patch.setattr(Primitive, "on_device", None)
        expected = gradients()
    gradients()
    assert gradients() == expected


@every_op
def test_modes(op, operands, monkeypatch):
    """Under no_grad and in inference mode nothing is recorded; hooks of saved tensors see what is saved."""
    given = operands()

    def seen():
        found, packed = [], []
        for mode in (lucid.no_grad, lucid.inference_mode):
            with mode():
                out = op(*given)
            assert not out.requires_grad
            found.append((out.tolist(), out.is_inference()))
        with lucid.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t.tolist()) or t, lambda t: t):
            op(*given)
        with pytest.warns(UserWarning, match="anomaly"), lucid.autograd.detect_anomaly():
            out = op(*given)
        assert out.grad_fn.extra is not None  # where the op was called
        return found, packed, out.tolist()

    op(*given)
    short = seen()
    monkeypatch.setattr(Primitive, "on_device", None)
    assert short == seen()


@every_op
def test_each_call_is_of_its_own_numbers(op, rng):
    """Calls of one form give values and gradients of what they get, as on the CPU; also where others lie between."""
    shapes = (4, 4), (4, 4), (4,)
    for _ in range(4):
        values = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
        found = []
        for device in ("cuda", "cpu"):
            x, w, b = (lucid.tensor(value, device=device, requires_grad=True) for value in values)
            out = op(x, w, b)
            out.backward(out.detach() * 0.5 + 1)
            found.append([out.detach(), *[t.grad for t in (x, w, b) if t.grad is not None]])
        for one, other in zip(*found, strict=True):
            np.testing.assert_allclose(one.numpy(force=True), other.numpy(force=True), rtol=1e-4, atol=1e-5)


def test_a_saved_tensor_that_changes_is_found(operands):
    """An operand that was saved, or the output, has its version counted."""
    for _ in range(3):
        x, w, _ = operands()
        x = x * 1.0
        out = x @ w
        x.add_(1.0)
        with pytest.raises(InplaceError):
            out.sum().backward()
        out = F.softmax(w, -1)
        with lucid.no_grad():
            out.mul_(2.0)
        with pytest.raises(InplaceError):
            out.sum().backward()


def test_a_view_of_a_changed_base_is_taken_again(operands):
    """An operand that is a view gets its place in the graph from its base, as it is now."""
    for _ in range(3):
        x, w, _ = operands()
        base = x * 1.0
        view = base.view(4, 4)
        base.mul_(3.0)
        (view @ w.detach()).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(force=True), np.tile(3 * w.numpy(force=True).sum(1), (4, 1)), rtol=1e-5)


def test_operands_of_two_devices_are_refused(operands):
    """A form that is known says nothing of operands elsewhere."""
    x, w, _ = operands()
    x @ w
    x @ w
    for other in (w.detach().cpu(), w.detach().to("cuda:1")) if lucid.cuda.device_count() > 1 else (w.detach().cpu(),):
        with pytest.raises(DeviceError, match="same device"):
            x @ other


@two_devices
def test_the_device_of_the_operands(operands):
    """Operands of another device than the current one are computed on there."""
    x, _, _ = operands()
    expected = F.softmax(x, -1).tolist()
    y = x.detach().to("cuda:1").requires_grad_()
    for _ in range(3):
        out = F.softmax(y, -1)
        assert (out.device, out.tolist()) == (y.device, expected)


def test_inference_tensors_are_not_saved(operands):
    """They have no version, and the error says so, on this path too."""
    x, w, _ = operands()
    x @ w
    with lucid.inference_mode():
        other = w * 1.0
    for _ in range(2):
        with pytest.raises(GraphError, match="inference"):
            x @ other


def test_indices_are_read_at_each_call(rng):
    """A plan is of the form of indices, not of their values; and not of the switches that sums at indices look at."""
    table = lucid.tensor(rng.standard_normal((6, 4)).astype(np.float32), device="cuda", requires_grad=True)
    for ordered in (False, False, True, True):
        lucid.use_deterministic_algorithms(ordered)
        try:
            index = rng.integers(0, 6, 5)
            out = F.embedding(lucid.tensor(index, device="cuda"), table)
            np.testing.assert_array_equal(out.numpy(force=True), table.numpy(force=True)[index])
            table.grad = None
            out.sum().backward()
            np.testing.assert_array_equal(table.grad.numpy(force=True)[:, 0], np.bincount(index, minlength=6))
        finally:
            lucid.use_deterministic_algorithms(False)


def test_tf32_is_part_of_the_form(operands, monkeypatch):
    """A product that was planned without is not the one that is done with."""
    x, w, _ = operands()
    plans = PRIMITIVES["matmul"].launch_plans
    x @ w
    before = len(plans)
    monkeypatch.setattr(lucid.backends.cuda.matmul, "allow_tf32", not lucid.backends.cuda.matmul.allow_tf32)
    x @ w
    assert len(plans) == before + 1


ROWS = {
    "softmax": lambda x, w, b: F.softmax(x, -1),
    "layer_norm": lambda x, w, b: F.layer_norm(x, (4,), b, b),
    "rows summed": lambda x, w, b: x.sum(0),
    "mean": lambda x, w, b: x.mean(),
    "amax": lambda x, w, b: x.amax(0),
    "matmul": lambda x, w, b: x @ w,
    "matmul of columns": lambda x, w, b: w @ x.T,
    "linear": F.linear,
    "add": lambda x, w, b: x + w,
    "exp": lambda x, w, b: (x * 2.0).exp(),
    "cross_entropy": lambda x, w, b: F.cross_entropy(x, lucid.zeros(1, dtype=lucid.int64, device=x.device)),
    "in place": lambda x, w, b: (x * 1.0).add_(x).mul_(2.0),
}


@pytest.mark.parametrize("op", [pytest.param(op, id=name) for name, op in ROWS.items()])
@pytest.mark.parametrize("odd_first", [True, False])
def test_steps_of_one_element_do_not_matter(op, odd_first, rng):
    """A row is of one form, whatever its step to the next row would be: of a slice of every third, or alone."""
    for odd in (odd_first, not odd_first, odd_first):
        values = [rng.standard_normal(shape).astype(np.float32) for shape in ((7, 4), (4, 4), (4,))]
        found = []
        for device in ("cuda", "cpu"):
            base, w, b = (lucid.tensor(value, device=device, requires_grad=True) for value in values)
            x = base[::3][:1] if odd else base[:1].clone()
            out = op(x, w, b)
            out.sum().backward()
            found.append([out.detach(), *[t.grad for t in (base, w, b) if t.grad is not None]])
        for one, other in zip(*found, strict=True):
            np.testing.assert_allclose(one.numpy(force=True), other.numpy(force=True), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("apart", [4, 20])
def test_operands_that_overlap_elsewhere(apart, rng):
    """A plan that was made for operands that overlap is for no others of their form."""
    x = rng.standard_normal((3, 8)).astype(np.float32)
    values = gpu.cupy().asarray(rng.standard_normal(40).astype(np.float32))
    for second in (4, 4, apart, 8, 4):
        weight, bias = values[:8], values[second : second + 8]
        out = F.layer_norm(lucid.tensor(x, device="cuda"), (8,), lucid.as_tensor(weight), lucid.as_tensor(bias))
        expected = F.layer_norm(lucid.tensor(x), (8,), lucid.tensor(weight.get()), lucid.tensor(bias.get()))
        np.testing.assert_allclose(out.tolist(), expected.tolist(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_views_of_every_dtype_are_recorded(dtype, rng):
    """Gradients go through a view whatever its floating-point dtype; one of integers is in no graph."""
    x = lucid.tensor(rng.standard_normal((2, 3)), dtype=getattr(lucid, dtype), device="cuda", requires_grad=True)
    for _ in range(2):
        view = x.T[1]
        assert view.requires_grad
        (grad,) = lucid.autograd.grad(view.sum(), x)
        assert grad.tolist() == [[0.0, 1.0, 0.0]] * 2
    assert not lucid.ones(2, 3, dtype=lucid.int64, device="cuda").T.requires_grad


@every_op
def test_alignment_is_part_of_the_form(op, rng):
    """Operands that begin between two packs are not read by packs, whatever was planned for others of their form."""
    for shift in (0, 0, 1, 1, 0, 3):
        values = [rng.standard_normal(shift + size).astype(np.float32) for size in (16, 16, 4)]
        found = []
        for device in ("cuda", "cpu"):
            bases = [lucid.tensor(value, device=device, requires_grad=True) for value in values]
            x, w, b = (base[shift:] for base in bases)
            out = op(x.view(4, 4), w.view(4, 4), b)
            out.backward(out.detach() * 0.5 + 1)
            found.append([out.detach(), *[t.grad for t in bases if t.grad is not None]])
        for one, other in zip(*found, strict=True):
            np.testing.assert_allclose(one.numpy(force=True), other.numpy(force=True), rtol=1e-4, atol=1e-5)
