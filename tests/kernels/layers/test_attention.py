"""Attention on a CUDA device: with the scores of some heads stored, and over tiles with none."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.backends import cudnn as switch
from lucid.base import gpu
from lucid.nn.functional import scaled_dot_product_attention
from lucid.ops.layers import attention_cuda as on_cuda
from tests.kernels.layers.attention_cases import CASES, Reference
from tests.kernels.near import FLOATS, assert_near, on_device

pytestmark = pytest.mark.gpu
every_float = pytest.mark.parametrize("dtype", FLOATS)

every_case = pytest.mark.parametrize("case", CASES)


@pytest.fixture(params=["stored", "tiles"])
def way(request, monkeypatch):
    """Run a test with stored scores and over tiles."""
    monkeypatch.setattr(switch, "enabled", False)
    if request.param == "tiles":
        monkeypatch.setattr(on_cuda, "LONGEST", 0)
    return request.param


@every_float
@every_case
def test_values(case, dtype, way, rng):
    """Output, logarithms of denominators and gradients, against formulas with all weights stored."""
    Reference(case, dtype, rng).check(dtype)


@every_float
@pytest.mark.parametrize("case", ["heads", "five dimensions"])
def test_dropout(case, dtype, way, rng):
    """Weights are dropped as the mask says, in both directions."""
    Reference(case, dtype, rng, drop=0.4).check(dtype)


def test_bias_that_steps_cannot_tell(rng):
    """A bias repeated along some of three leading dimensions is left to the array library, with the same results."""
    arrays = [
        rng.standard_normal(shape) for shape in ((2, 2, 3, 4, 5), (2, 2, 3, 6, 5), (2, 2, 3, 6, 5), (2, 1, 3, 4, 6))
    ]
    cpu, cuda = both_devices(scaled_dot_product_attention, arrays)
    assert_near(cuda.array, cpu.detach().numpy(), "float64")
    q, k, v, bias = (on_device(a, "float64").array for a in arrays)
    assert on_cuda.attention(q, k, v, bias, None, scale=1.0, drop=0.0, causal=False) is NotImplemented


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_float32_bias(dtype, way, rng):
    """The bias of half types may be of the dtype of the scores."""
    Reference("bias for all", dtype, rng).check(dtype, wide_bias=True)


@pytest.mark.parametrize("budget", [1, 3 * 33 * 70 * 4])
def test_blocks(budget, rng, monkeypatch):
    """Results do not depend on for how many heads scores are stored at a time."""
    monkeypatch.setattr(on_cuda, "BLOCK", budget)
    Reference("heads", "float32", rng).check("float32")


def test_features_beyond_tiles(rng, monkeypatch):
    """Where no tile holds the features, scores are stored however long the sequence."""
    monkeypatch.setattr(on_cuda, "LONGEST", 0)
    monkeypatch.setitem(CASES, "features", ((2,), 5, 7, 129, 3, None))
    Reference("features", "float32", rng).check("float32")


def test_memory_of_tiles(rng, monkeypatch):
    """Over tiles nothing of queries by keys is stored, forward or backward, not even for a causal mask."""
    monkeypatch.setattr(on_cuda, "LONGEST", 0)
    x = on_device(rng.standard_normal((320, 4)), "float32").requires_grad_()
    lucid.cuda.reset_peak_memory_stats()
    before = lucid.cuda.memory_allocated()
    scaled_dot_product_attention(x, x, x, is_causal=True).backward(x.detach())
    assert lucid.cuda.max_memory_allocated() - before < 320 * 320 * 4 / 4


LAYOUTS = {
    "heads inside": lambda a: a.reshape(2, 35, 2, 8).swapaxes(1, 2),
    "reversed": lambda a: a[:, ::-1, ::-1, ::-1],
    "every other": lambda a: a[:, :, ::2, ::2],
    "repeated": lambda a: gpu.cupy().broadcast_to(a[:, :1], a.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, way, rng):
    """Operands may lie in memory in any way: the same bits as of copies from tiles, which read both by one kernel.

    Products of scores that are stored are cuBLAS's or the kernel's of small products, which sum in different orders:
    those results are as near as any result must be.
    """
    q, k, v, g = (LAYOUTS[layout](on_device(rng.standard_normal((2, 2, 35, 8)), "float32").array) for _ in range(4))
    bias = on_device(rng.standard_normal((q.shape[2], 2 * q.shape[2])), "float32").array[::-1, ::2]
    settings = {"scale": 0.5, "drop": 0.0, "causal": False}
    results = []
    for operands in ((q, k, v, bias), [a.copy("C") for a in (q, k, v, bias)]):
        out, total = on_cuda.attention(*operands, None, **settings)
        given = g if operands[0] is q else g.copy("C")
        grads = on_cuda.attention_grad(given, *operands, None, out, total, needs=(True, True, True, False), **settings)
        results.append((out, total, *grads[:3]))
    for got, wanted in zip(*results, strict=True):
        if way == "tiles":
            np.testing.assert_array_equal(got.get(), wanted.get())
        else:
            assert_near(got, wanted.get().astype(np.float64), "float32")


def test_needs(way, rng):
    """Only the gradients that are needed are made."""
    r = Reference("heads", "float32", rng)
    q, k, v, g = (on_device(a, "float32").array for a in (r.q, r.k, r.v, r.g))
    settings = {"scale": r.scale, "drop": 0.0, "causal": False}
    out, total = on_cuda.attention(q, k, v, None, None, **settings)
    for index, wanted in enumerate(r.values()[2:]):
        needs = tuple(place == index for place in range(4))
        grads = on_cuda.attention_grad(g, q, k, v, None, None, out, total, needs=needs, **settings)
        assert [grad is not None for grad in grads] == list(needs)
        assert_near(grads[index], wanted, "float32")


def both_devices(function, arrays):
    """Return the results of a function of tensors on the CPU and on CUDA."""
    return [function(*[lucid.tensor(a, device=device).requires_grad_() for a in arrays]) for device in ("cpu", "cuda")]


def test_public_op(way, rng):
    """First and second derivatives agree on both devices, with a mask that has a gradient, with one of bool, causal."""
    arrays = [rng.standard_normal(shape) for shape in ((2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6), (3, 5, 7))]
    sees = rng.random((5, 7)) < 0.5
    sees[2] = False  # a query that sees nothing

    def derivatives(q, k, v, mask, **settings):
        out = scaled_dot_product_attention(q, k, v, mask, **settings)
        inputs = [x for x in (q, k, v, mask) if x is not None and x.requires_grad]
        first = lucid.autograd.grad([(out * out * out).sum()], inputs, create_graph=True)
        return [out, *first, *lucid.autograd.grad([sum((f * f).sum() for f in first)], inputs)]

    for function in (
        derivatives,
        lambda q, k, v, bias: derivatives(q, k, v, lucid.tensor(sees, device=q.device)),
        lambda q, k, v, bias: derivatives(q, k, v, None, is_causal=True),
    ):
        cpu, cuda = both_devices(function, arrays)
        for got, wanted in zip(cuda, cpu, strict=True):
            assert_near(got.array, wanted.detach().numpy(), "float64", slack=10)


def test_nan_and_infinity(way):
    """A NaN reaches the rows that see it and no other; an infinite score gives NaN as on the CPU."""
    q = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]])
    k = np.array([[1.0, 0.0], [0.5, 0.0], [np.nan, 1.0], [np.inf, 0.0]])
    v = np.arange(8.0).reshape(4, 2)
    see = np.array([[True, True, False, False], [True, False, True, False], [True, False, False, True]])
    cpu, cuda = both_devices(
        lambda *x: scaled_dot_product_attention(*x[:3], lucid.tensor(see, device=x[0].device)), [q, k, v]
    )
    np.testing.assert_array_equal(np.isnan(cuda.detach().cpu().numpy()), np.isnan(cpu.detach().numpy()))
    np.testing.assert_allclose(cuda.detach().cpu().numpy()[0], cpu.detach().numpy()[0], rtol=1e-12)


def test_no_elements():
    """No queries or no keys: nothing is launched."""
    for queries, keys in ((0, 3), (3, 0)):
        q, k = (lucid.tensor(np.ones((2, n, 4), np.float32), device="cuda").requires_grad_() for n in (queries, keys))
        if keys:
            out = scaled_dot_product_attention(q, k, k)
            assert out.shape == (2, queries, 4)
            out.sum().backward()
            np.testing.assert_array_equal(k.grad.cpu().numpy(), 0)
        assert (
            on_cuda.attention(q.array, k.array, k.array, None, None, scale=1.0, drop=0.0, causal=False)
            is NotImplemented
        )
