"""What `autocast` makes of operands: the dtypes of all ops on its lists, and the casts of leaves that are kept."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.autograd.modes.casting import POLICIES
from lucid.autograd.modes.state import thread
from lucid.autograd.recording.namespace import PRIMITIVES
from lucid.base.capture import captures
from lucid.errors import DtypeError
from lucid.nn import functional as F
from lucid.utils.checkpoint import checkpoint
from tests.autocast import LOWER, PROMOTED, ROWS, SAME
from tests.device import DEVICE

HALF = lucid.float16 if DEVICE == "cuda" else lucid.bfloat16


def matrices(rng, *dtypes):
    made = [lucid.tensor(rng.uniform(0.1, 0.9, (4, 4)).astype(np.float32)).to(dtype) for dtype in dtypes]
    return [x.requires_grad_() for x in made]


def is_cast(tensor):
    """Return whether a tensor comes out of a cast."""
    return tensor.grad_fn is not None and tensor.grad_fn.name() == "CastBackward0"


def casts_of(tensor):
    """Return the casts that the operands of the op that made a tensor come out of."""
    return [node for node, _ in tensor.grad_fn.next_functions if node is not None and node.name() == "CastBackward0"]


def test_the_list_names_primitives():
    """Every name of the list is that of a primitive."""
    assert set(POLICIES) <= set(PRIMITIVES)


@pytest.mark.parametrize("half", [lucid.float16, lucid.bfloat16], ids=str)
def test_dtypes_of_results(rng, half):
    """Each op gives what its list says, of float32, of half operands and of both, and gradients of their dtypes."""
    for name, row in ROWS.items():
        what = row.cuda if DEVICE == "cuda" else row.cpu
        for dtypes in ((lucid.float32, lucid.float32), (half, half), (half, lucid.float32)):
            a, b = matrices(rng, *dtypes)
            with lucid.autocast(DEVICE, dtype=half):
                out = row.call(lucid, a, b)
            same = what == SAME or (what == PROMOTED and a.dtype is b.dtype)
            wanted = half if what == LOWER else a.dtype if same else lucid.float32
            assert out.dtype is wanted, (name, dtypes)
            if out.requires_grad:
                out.sum().backward()
            assert all(x.grad is None or (x.grad.dtype is x.dtype and x.grad.isfinite().all()) for x in (a, b)), name


def test_the_value_is_that_of_casts_by_hand(rng):
    """Results and gradients are, bit by bit, those of operands that were cast by hand."""
    a, b = matrices(rng, lucid.float32, lucid.float32)
    x, y = (t.detach().clone().requires_grad_() for t in (a, b))
    with lucid.autocast(DEVICE):
        out = F.linear(a, b).relu()
        loss = F.mse_loss(out, b.detach())
    by_hand = F.linear(x.to(HALF), y.to(HALF)).relu()
    F.mse_loss(by_hand.float(), y.detach()).backward()
    loss.backward()
    assert np.array_equal(out.detach().float().cpu().numpy(), by_hand.detach().float().cpu().numpy())
    for ours, theirs in ((a, x), (b, y)):
        assert np.array_equal(ours.grad.cpu().numpy(), theirs.grad.cpu().numpy())


def test_what_stays():
    """float64, integers and tensors of another type of device keep their dtypes."""
    other = "cpu" if DEVICE == "cuda" else "cuda"
    x = lucid.ones(2, 2)
    with lucid.autocast(DEVICE):
        assert (x.double() @ x.double()).dtype is lucid.float64
        assert (x.long() @ x.long()).dtype is lucid.int64
        with pytest.raises(DtypeError, match="expected operands of one dtype"):
            x @ x.double()
        with pytest.raises(DtypeError, match="not defined for bool"):
            x.bool() @ x.bool()
        with lucid.autocast(DEVICE, enabled=False):
            assert (x @ x).dtype is lucid.float32
            with pytest.raises(DtypeError, match="expected operands of one dtype"):
                x @ x.to(HALF)
    lucid.set_autocast_enabled(other, True)
    try:
        assert (x @ x).dtype is lucid.float32
        assert x.to(HALF).exp().dtype is HALF
        assert x.to(HALF).sum().dtype is HALF
    finally:
        lucid.set_autocast_enabled(other, False)


def test_masks_and_weights_are_cast_along():
    """A mask of float32 beside half queries, and the weights of classes beside half logits, are cast as well."""
    x = lucid.ones(1, 2, 4)
    logits, weight, classes = lucid.ones(2, 3).to(HALF), lucid.ones(3), lucid.zeros(2, dtype=lucid.int64)
    with lucid.autocast(DEVICE):
        assert F.scaled_dot_product_attention(x.to(HALF), x, x, lucid.zeros(2, 2)).dtype is HALF
        assert F.linear(x, x[0, 0], lucid.ones(2)).dtype is HALF
        assert F.scaled_dot_product_attention(x, x, x, lucid.ones(2, 2) > 0).dtype is HALF
        assert F.cross_entropy(logits, classes, weight).dtype is lucid.float32
        assert F.nll_loss(logits, classes, weight).dtype is lucid.float32
        assert lucid.dot(x[0, 0], x[0, 1].to(HALF)).dtype is lucid.float32


def test_losses_of_probabilities():
    """binary_cross_entropy computes in float32 on the CPU, and is refused on CUDA, with what to use instead."""
    chances = lucid.full((2,), 0.5).to(HALF)
    with lucid.autocast(DEVICE):
        if DEVICE == "cuda":
            with pytest.raises(RuntimeError, match=r"unsafe to autocast.*binary_cross_entropy_with_logits"):
                F.binary_cross_entropy(chances, chances)
        else:
            assert F.binary_cross_entropy(chances, chances).dtype is lucid.float32
    assert F.binary_cross_entropy(chances, chances).dtype is HALF


def test_a_leaf_is_cast_once():
    """A float32 leaf is cast once in the outermost block, with a gradient of all its uses; the cast goes with it."""
    weight = lucid.ones(2, 2, requires_grad=True)
    x = lucid.full((1, 2), 2.0)
    with lucid.autocast(DEVICE):
        one = x @ weight
        with lucid.autocast(DEVICE):
            two = x @ weight
        first, second = casts_of(one), casts_of(two)
        assert len(first) == len(second) == 1
        assert first[0] is second[0]
        # a cast of an intermediate is not kept
        wide = weight * 1
        assert casts_of(x @ wide)[0] is not casts_of(x @ wide)[0]
        kept = weakref.ref(first[0])
        lucid.clear_autocast_cache()
        assert casts_of(x @ weight)[0] is not first[0]
    (one + two).sum().backward()
    assert weight.grad.tolist() == [[4.0, 4.0], [4.0, 4.0]]
    del one, two, first, second
    gc.collect()
    assert kept() is None


def test_a_block_begins_without_the_casts_of_another():
    """What the outermost block has cast ends with it: each casts anew, so that each step can go backward."""
    weight, x = lucid.ones(2, 2, requires_grad=True), lucid.full((1, 2), 2.0)
    seen = []
    for _ in range(2):
        with lucid.autocast(DEVICE):
            with lucid.autocast(DEVICE):
                y = x @ weight
            seen.append(casts_of(y)[0])
            assert casts_of(x @ weight)[0] is seen[-1]
        y.sum().backward()
    assert seen[0] is not seen[1]
    assert weight.grad.tolist() == [[4.0, 4.0], [4.0, 4.0]]


def test_a_leaf_that_has_changed_is_cast_again():
    """What a leaf gets in place, or in its place, inside of the block is what is used from then on."""
    weight = lucid.ones(2, 2, requires_grad=True)
    x = lucid.ones(1, 2)
    with lucid.autocast(DEVICE):
        assert (x @ weight).tolist() == [[2.0, 2.0]]
        with lucid.no_grad():
            weight.mul_(3)
        assert (x @ weight).tolist() == [[6.0, 6.0]]
        weight.data = lucid.full((2, 2), 5.0)
        assert (x @ weight).tolist() == [[10.0, 10.0]]
        # and a cast that leads nowhere is not kept
        del weight
        weight = lucid.ones(2, 2, requires_grad=True)
        with lucid.no_grad():
            assert not (x @ weight).requires_grad
        assert (x @ weight).requires_grad


def test_what_is_not_kept(monkeypatch):
    """Without a block that ends nothing is kept, in a capture neither, and no tensor gets the cast of another."""
    weight, x = lucid.ones(2, 2, requires_grad=True), lucid.ones(1, 2)
    lucid.set_autocast_enabled(DEVICE, True)
    try:
        assert casts_of(x @ weight)[0] is not casts_of(x @ weight)[0]
    finally:
        lucid.set_autocast_enabled(DEVICE, False)
    with lucid.autocast(DEVICE):
        first = casts_of(x @ weight)[0]
        with monkeypatch.context() as patch:
            # another thread captures
            patch.setitem(captures, -1, object())
            assert casts_of(x @ weight)[0] is not first
        assert casts_of(x @ weight)[0] is first
        # as where a leaf is gone, and another one has its id
        other = weight.detach().requires_grad_()
        cache = thread.state.autocast_cache
        cache[id(other)] = cache[id(weight)]
        (x @ other).sum().backward()
    assert weight.grad is None
    assert other.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_changes_in_place_compute_in_their_dtype(rng):
    """An op that works in place, or writes into `out`, does what it does outside of the block, bit by bit."""
    x, a, b = (lucid.tensor(rng.standard_normal((3, 3)).astype(np.float32)) for _ in range(3))
    wanted, product = x.clone().addmm_(a, b), a @ b
    with lucid.autocast(DEVICE):
        got = x.clone().addmm_(a, b)
        assert (a @ b).dtype is HALF
        written = lucid.mm(a, b, out=lucid.empty(3, 3))
    assert np.array_equal(got.cpu().numpy(), wanted.cpu().numpy())
    assert np.array_equal(written.cpu().numpy(), product.cpu().numpy())


@pytest.mark.parametrize("cached", [True, False])
def test_the_dtype_is_part_of_what_is_kept(cached):
    """A leaf is cast anew for another dtype, and each time without the cache."""
    weight = lucid.ones(2, 2, requires_grad=True)
    with lucid.autocast(DEVICE, dtype=lucid.float16, cache_enabled=cached):
        one, two = weight @ weight, weight @ weight
        assert (casts_of(one)[0] is casts_of(two)[0]) == cached
        with lucid.autocast(DEVICE, dtype=lucid.bfloat16):
            assert (weight @ weight).dtype is lucid.bfloat16


def test_passes_through_the_graph_compute_as_recorded(rng):
    """Inside of the block backward, also with create_graph, computes in the dtypes that forward had."""
    x, b = matrices(rng, lucid.float32, lucid.float32)
    half = x.detach().to(HALF).requires_grad_()
    plain = x.detach().clone().requires_grad_()
    out, of_two = plain @ plain, plain @ b
    silu = F.silu(half)
    with lucid.autocast(DEVICE):
        (grad,) = lucid.autograd.grad(out.sum(), plain, create_graph=True)
        (half_grad,) = lucid.autograd.grad(silu.sum(), half, create_graph=True)
        (again,) = lucid.autograd.grad((grad * grad).sum(), plain)
        # towards one of two operands alone
        (part,) = lucid.autograd.grad(of_two.sum(), b, create_graph=True)
    (wanted_part,) = lucid.autograd.grad((plain @ b).sum(), b, create_graph=True)
    assert np.array_equal(part.detach().cpu().numpy(), wanted_part.detach().cpu().numpy())
    assert grad.dtype is again.dtype is lucid.float32
    assert half_grad.dtype is HALF
    other = x.detach().clone().requires_grad_()
    (wanted,) = lucid.autograd.grad((other @ other).sum(), other, create_graph=True)
    (twice,) = lucid.autograd.grad((wanted * wanted).sum(), other)
    assert np.array_equal(grad.detach().cpu().numpy(), wanted.detach().cpu().numpy())
    assert np.array_equal(again.cpu().numpy(), twice.cpu().numpy())


def test_second_derivatives(rng):
    """What was recorded in the block has second derivatives, in the dtypes of the leaves."""
    (x,) = matrices(rng, lucid.float32)
    with lucid.autocast(DEVICE):
        y = (x @ x).float().pow(2).sum()
    (grad,) = lucid.autograd.grad(y, x, create_graph=True)
    (again,) = lucid.autograd.grad(grad.sum(), x)
    wide = x.detach().double().requires_grad_()
    (g,) = lucid.autograd.grad((wide @ wide).pow(2).sum(), wide, create_graph=True)
    (wanted,) = lucid.autograd.grad(g.sum(), wide)
    assert again.dtype is lucid.float32
    np.testing.assert_allclose(again.cpu().numpy(), wanted.cpu().numpy(), rtol=0.03)


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpoint_runs_again_as_it_ran(rng, reentrant):
    """A checkpoint is run again under the mode of its first run, wherever backward is called."""
    x, weight = matrices(rng, lucid.float32, lucid.float32)
    seen = []

    def part(x):
        out = (x @ weight).tanh() @ weight
        seen.append(out.dtype)
        return out

    grads = []
    for run in (part, lambda x: checkpoint(part, x, use_reentrant=reentrant, early_stop=False)):
        x.grad = weight.grad = None
        with lucid.autocast(DEVICE):
            out = run(x)
        with lucid.autocast(DEVICE, enabled=False):
            out.float().sum().backward()
        grads.append([t.grad.cpu().numpy() for t in (x, weight)])
    assert seen == [HALF] * 3
    for ours, theirs in zip(*grads, strict=True):
        assert np.array_equal(ours, theirs)


def test_a_layer_keeps_what_it_is(rng):
    """Parameters, buffers and gradients of a model stay float32, as does batch norm beside half inputs."""
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 2))
    x = lucid.tensor(rng.standard_normal((3, 1, 4, 4)).astype(np.float32))
    with lucid.autocast(DEVICE):
        out = model(x)
        loss = F.cross_entropy(out, lucid.tensor([0, 1, 0]))
    loss.backward()
    assert (out.dtype, loss.dtype) == (HALF, lucid.float32)
    assert {t.dtype for t in (*model.parameters(), *model.buffers())} == {lucid.float32, lucid.int64}
    assert {p.grad.dtype for p in model.parameters()} == {lucid.float32}


def test_nothing_is_kept_without_recording():
    """Under no_grad and inference_mode ops choose their dtypes too."""
    x = lucid.ones(2, 2, requires_grad=True)
    for mode in (lucid.no_grad(), lucid.inference_mode()):
        with lucid.autocast(DEVICE), mode:
            out = x @ x
        assert out.dtype is HALF
        assert not out.requires_grad


def test_autocast_holds_after_a_block_without_it():
    """An op that finds nothing unusual in an inner block, or in a hook of a pass, does not end the mode around it."""
    x = lucid.ones(2, 2, requires_grad=True, device=DEVICE)

    def product_without(_=None):
        with lucid.autocast(DEVICE, enabled=False):
            return (lucid.ones(2, 2, device=DEVICE) @ lucid.ones(2, 2, device=DEVICE) + x).exp()

    lower = lucid.get_autocast_dtype(DEVICE)
    with lucid.autocast(DEVICE):
        assert product_without().dtype == lucid.float32
        assert (x @ x).dtype == lower

    lucid.set_autocast_enabled(DEVICE, True)
    try:
        y = (x @ x).sum()

        def hook(grad):
            lucid.set_autocast_enabled(DEVICE, False)
            with lucid.enable_grad():
                assert (x @ x).exp().dtype == lucid.float32

        y.register_hook(hook)
        y.backward()
        assert (x @ x).dtype == lower
    finally:
        lucid.set_autocast_enabled(DEVICE, False)
    assert (x @ x).dtype == lucid.float32
