"""Convolutions and attention through cuDNN: what NVIDIA's package is asked for, and when it is not."""

from __future__ import annotations

import types

import numpy as np
import pytest

import lucid
from lucid.backends import cudnn as switch
from lucid.base import gpu
from lucid.base.locks import Once
from lucid.cuda.libraries import cudnn, cudnn_attention, cudnn_convolution
from lucid.nn.functional import scaled_dot_product_attention
from lucid.ops.layers import attention_cuda as on_cuda
from lucid.ops.layers.convolution_primitives import convolution
from tests.kernels.layers.attention_cases import CASES, Reference
from tests.kernels.layers.cudnn_stand_in import STAGES, WORKSPACE, Package
from tests.kernels.near import assert_near, on_device
from tests.pieces import in_threads

pytestmark = pytest.mark.gpu
every_half = pytest.mark.parametrize("dtype", ["float16", "bfloat16"])

# As in attention_cases: what cuDNN is asked for.
ABLE = {
    "heads for cuDNN": ((2, 3), 33, 70, 24, 24, None),
    "causal, more keys": ((2, 2), 31, 97, 16, 16, "causal"),
    "causal, more queries": ((1, 2), 70, 33, 64, 64, "causal"),
    "a matrix": ((), 35, 33, 128, 128, "causal"),
    "three dimensions": ((3,), 2, 2, 8, 8, None),
    "five dimensions for cuDNN": ((2, 1, 3), 18, 33, 8, 8, None),
}
EXECUTED = ["sdpa", "sdpa_backward"]


@pytest.fixture(autouse=True)
def cases(monkeypatch):
    for name, case in ABLE.items():
        monkeypatch.setitem(CASES, name, case)


@pytest.fixture
def package(monkeypatch):
    """Return a stand-in for NVIDIA's package, of which lucid.cuda.libraries.cudnn believes that it runs on a GPU."""
    if not gpu.is_simulated():
        pytest.skip("the stand-in computes in the memory of the simulated device")
    package = Package()
    believed = types.SimpleNamespace(**{**vars(gpu), "is_simulated": lambda: False})
    monkeypatch.setattr(cudnn, "gpu", believed)
    monkeypatch.setattr(cudnn, "_package", lambda: package)
    monkeypatch.setattr(cudnn, "_graphs", Once())
    monkeypatch.setattr(cudnn, "_handles", {})
    return package


def operations(package):
    return [execution["operation"] for execution in package.called("execute")]


@every_half
@pytest.mark.parametrize("case", ABLE)
def test_attention(case, dtype, package, launched, rng):
    """Output, logarithms of denominators and gradients come from cuDNN, no kernel runs, and all are right."""
    Reference(case, dtype, rng).check(dtype)
    assert operations(package) == EXECUTED
    assert not launched


def operands(rng, dtype="float16", lead=(2, 3), queries=33, keys=40, features=16):
    """Return queries, keys, values and the gradient of the output."""
    shapes = (queries, features), (keys, features), (keys, features), (queries, features)
    return [on_device(rng.standard_normal((*lead, *shape)), dtype).array for shape in shapes]


SETTINGS = {"scale": 0.25, "drop": 0.0, "causal": False}
ALL = (True, True, True, False)


def both_ways(q, k, v, g, bias=None, keep=None, needs=ALL, **settings):
    """Return output, logarithms and gradients."""
    settings = SETTINGS | settings
    out, total = on_cuda.attention(q, k, v, bias, keep, **settings)
    return out, total, *on_cuda.attention_grad(g, q, k, v, bias, keep, out, total, needs=needs, **settings)


def test_calls_of_attention(package, rng):
    """Each call of the package in its order, once for each plan; layouts, scale, mask and precision as they are."""
    arrays = [x.swapaxes(1, 2) for x in operands(rng, lead=(2, 33), queries=3, keys=3)]  # heads inside
    for causal, times in ((True, 2), (False, 1)):
        for _ in range(times):
            both_ways(*arrays, causal=causal)
    plans = [name for name, _ in package.calls if name in STAGES and name not in ("tensor", "execute")]
    assert plans == [name for name in STAGES if name in plans] * 4
    assert package.called("pygraph") == ["HALF"] * 4
    assert operations(package) == EXECUTED * 3
    assert package.called("create_execution_plans") == [(["A", "FALLBACK"],)] * 4
    causal, free = package.called("sdpa")
    assert causal["diagonal_band_right_bound"] == 0
    assert "diagonal_band_right_bound" not in free
    assert causal["attn_scale"] == 0.25
    heads = {"dim": [2, 3, 33, 16], "stride": [33 * 48, 16, 48, 1], "data_type": "HALF"}
    assert [causal[name].facts for name in "qkv"] == [{"name": name, **heads} for name in "qkv"]
    given = package.called("sdpa_backward")[0]
    assert given["stats"].facts == {
        "name": "stats", "dim": [2, 3, 33, 1], "stride": [99, 33, 1, 1], "data_type": "FLOAT"
    }  # fmt: skip
    assert given["dO"].facts == {"name": "dO", **heads}
    assert given["o"].facts["stride"] == [3 * 33 * 16, 33 * 16, 16, 1]


@pytest.mark.parametrize("fixed", [False, True])
def test_deterministic(fixed, package, rng):
    """The sums of a gradient are in a fixed order if that is asked for; everything else always is."""
    before = lucid.are_deterministic_algorithms_enabled()
    lucid.use_deterministic_algorithms(fixed)
    try:
        both_ways(*operands(rng))
    finally:
        lucid.use_deterministic_algorithms(before)
    assert package.called("sdpa_backward")[0]["use_deterministic_algorithm"] is fixed
    assert package.called("deselect_numeric_notes") == [(["d", "r", "n"],), (["d", "r", "n"] if fixed else ["d", "r"],)]


def test_workspace(package, rng):
    """A plan is given the memory that it asks for."""
    arrays = operands(rng)
    lucid.cuda.reset_peak_memory_stats()
    before = lucid.cuda.memory_allocated()
    on_cuda.attention(*arrays[:3], None, None, **SETTINGS)
    assert lucid.cuda.max_memory_allocated() - before > WORKSPACE


def test_needs(package, rng):
    """Only the gradients that are needed are given, and they are the same."""
    arrays = operands(rng)
    every = both_ways(*arrays)[2:5]
    for index in range(3):
        needs = tuple(place == index for place in range(4))
        grads = both_ways(*arrays, needs=needs)[2:]
        assert [grad is not None for grad in grads] == list(needs)
        np.testing.assert_array_equal(grads[index].get(), every[index].get())
    assert operations(package) == EXECUTED * 4


@every_half
@pytest.mark.parametrize("tiles", [False, True])
@pytest.mark.parametrize("first", EXECUTED)
def test_one_way_through_cudnn(first, tiles, dtype, package, monkeypatch, rng):
    """Backward by lucid's kernels accepts a forward by cuDNN, and the other way round."""
    monkeypatch.setattr(on_cuda, "LONGEST", 0 if tiles else on_cuda.LONGEST)
    r = Reference("causal, more keys", dtype, rng)
    q, k, v, g = (on_device(a, dtype).array for a in (r.q, r.k, r.v, r.g))
    settings = {"scale": r.scale, "drop": 0.0, "causal": True}
    switch_on = first == "sdpa"
    monkeypatch.setattr(switch, "enabled", switch_on)
    out, total = on_cuda.attention(q, k, v, None, None, **settings)
    monkeypatch.setattr(switch, "enabled", not switch_on)
    grads = on_cuda.attention_grad(g, q, k, v, None, None, out, total, needs=ALL, **settings)
    for got, wanted in zip((out, total, *grads[:3]), r.values(), strict=True):
        assert_near(got, wanted, str(got.dtype))
    assert operations(package) == [first]


def misplaced(x):
    """Return the same numbers two bytes beyond a multiple of 16."""
    flat = gpu.cupy().empty(x.size + 1, x.dtype)[1:]
    flat[...] = x.ravel()
    return flat.reshape(x.shape)


def padded(x):
    """Return the same numbers with rows that begin at odd multiples of 8 bytes."""
    wide = gpu.cupy().zeros((*x.shape[:-1], x.shape[-1] + 4), x.dtype)
    wide[..., :-4] = x
    return wide[..., :-4]


def spread(x):
    """Return the same numbers with features apart, in rows that begin at multiples of 16 bytes."""
    wide = gpu.cupy().zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    wide[..., ::2] = x
    return wide[..., ::2]


# What is done to queries, keys, values, gradient; or other sizes and settings.
LAYOUTS = {
    "not aligned": misplaced,
    "rows not aligned": padded,
    "reversed rows": lambda x: x[..., ::-1, :],
    "features apart": spread,
    "repeated heads": lambda x: gpu.cupy().broadcast_to(x[:, :1], x.shape),
}
SIZES = {
    "float32": {"dtype": "float32"},
    "float64": {"dtype": "float64"},
    "features of 12": {"features": 12},
    "features of 136": {"features": 136},
    "one query": {"queries": 1},
    "one key": {"keys": 1},
}
OTHERS = {
    "negative scale": {"scale": -0.5},
    "scale of zero": {"scale": 0.0},
    "infinite scale": {"scale": float("inf")},
}


def assert_own(package, launched, *arrays, **settings):
    """Kernels of lucid's did both directions."""
    results = both_ways(*arrays, **settings)
    assert not package.calls
    assert launched
    return results


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_left_to_kernels(layout, place, package, launched, rng):
    """Queries, keys or values that do not lie as cuDNN wants them: lucid's kernels give the same numbers."""
    arrays = operands(rng, queries=40)
    arrays[place] = LAYOUTS[layout](arrays[place])
    got = assert_own(package, launched, *arrays)
    for own, other in zip(got[:5], both_ways(*[x.copy("C") for x in arrays]), strict=False):
        np.testing.assert_allclose(own.get().astype(float), other.get().astype(float), rtol=0, atol=0.02)
    assert operations(package) == EXECUTED


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_left_to_kernels(layout, package, launched, rng):
    """A gradient of the output that does not lie as cuDNN wants it goes to lucid's kernels, in backward only."""
    q, k, v, g = operands(rng)
    both_ways(q, k, v, LAYOUTS[layout](g))
    assert operations(package) == ["sdpa"]
    assert launched


@pytest.mark.parametrize("sizes", SIZES)
def test_sizes_left_to_kernels(sizes, package, launched, rng):
    """Dtypes and sizes that cuDNN is not asked for."""
    assert_own(package, launched, *operands(rng, **SIZES[sizes]))


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_scales_left_to_kernels(other, package, launched, rng):
    """Scales that cuDNN is not asked for."""
    assert_own(package, launched, *operands(rng), **OTHERS[other])


def test_masks_left_to_kernels(package, launched, rng):
    """Masks, dropout, and values of other features than the keys."""
    q, k, v, g = operands(rng)
    assert_own(package, launched, q, k, v, g, bias=on_device(rng.standard_normal((33, 40)), "float16").array)
    keep = lucid.tensor(rng.random((2, 3, 33, 40)) < 0.5, device="cuda").array
    assert_own(package, launched, q, k, v, g, keep=keep, drop=0.5)
    half = [x[..., :8].copy("C") for x in (v, g)]
    assert_own(package, launched, q, k, *half)


def test_more_heads_than_a_grid_holds(package, launched, monkeypatch, rng):
    """Heads beyond what a grid holds."""
    monkeypatch.setattr(cudnn_attention, "_LARGEST_GRID", 2)
    assert_own(package, launched, *operands(rng))


@pytest.mark.parametrize("why", ["switched off", "simulated", "missing"])
def test_without_cudnn(why, package, launched, monkeypatch, rng):
    """Nothing of the package is called where it is switched off, simulated or missing."""
    if why == "switched off":
        monkeypatch.setattr(switch, "enabled", False)
    elif why == "simulated":
        monkeypatch.setattr(cudnn, "gpu", gpu)
    else:
        monkeypatch.setattr(cudnn, "_package", lambda: None)
    assert_own(package, launched, *operands(rng))
    x, weight = images()
    assert cudnn_convolution.forward(x, weight, (2, 4, 4), **WINDOWS) is NotImplemented
    assert not package.calls


def test_no_plan(package, launched, rng):
    """What cuDNN does not support is asked for once, and done by lucid's kernels each time."""
    package.able = False
    r = Reference("heads for cuDNN", "bfloat16", rng)
    for _ in range(2):
        r.check("bfloat16")
    assert len(package.called("check_support")) == 2
    assert not package.called("execute")
    assert launched


def test_handles(package, rng):
    """Each thread has its own handle, set to the stream that is current at the call; plans are shared."""
    arrays = operands(rng)
    stream = gpu.cupy().cuda.Stream(non_blocking=True)
    on_cuda.attention(*arrays[:3], None, None, **SETTINGS)
    with stream:
        on_cuda.attention(*arrays[:3], None, None, **SETTINGS)
    in_threads(lambda: on_cuda.attention(*arrays[:3], None, None, **SETTINGS))
    first, second, third = package.called("execute")
    assert [x["stream"] for x in (first, second, third)] == [gpu.current_stream().ptr, stream.ptr, first["stream"]]
    assert first["handle"] is second["handle"]
    assert first["handle"] is not third["handle"]
    assert len(package.called("create_handle")) == 2
    assert len(package.called("build_plans")) == 1


def test_public_attention(package, rng):
    """Gradients of the public function, once and with a graph of their own, agree with the CPU."""
    arrays = [rng.standard_normal((2, 33, 16)) for _ in range(4)]
    results = []
    for device in ("cpu", "cuda"):
        q, k, v, g = (lucid.tensor(a, dtype=lucid.float16, device=device) for a in arrays)
        inputs = [x.requires_grad_() for x in (q, k, v)]
        out = scaled_dot_product_attention(*inputs, is_causal=True)
        plain = lucid.autograd.grad([out], inputs, [g], retain_graph=True)
        results.append([out, *plain, *lucid.autograd.grad([out], inputs, [g], create_graph=True)])
    assert operations(package) == EXECUTED
    for got, wanted in zip(results[1], results[0], strict=True):
        assert_near(got.detach().array, wanted.detach().numpy().astype(np.float64), "float16")


WINDOWS = {"stride": (2,), "before": (1,), "dilation": (1,)}


def images():
    return [on_device(np.zeros(shape), "float32").array for shape in ((2, 3, 7), (4, 3, 3))]


def test_convolution(package, monkeypatch):
    """One plan for each shape; a sequence is an image of height 1; uneven padding; precision as it is asked for."""
    x, weight = images()
    for _ in range(2):
        assert cudnn_convolution.forward(x, weight, (2, 4, 4), **WINDOWS).shape == (2, 4, 4)
    assert len(package.called("build_plans")) == 1
    assert operations(package) == ["conv_fprop"] * 2
    (given,) = package.called("conv_fprop")
    assert (given["pre_padding"], given["post_padding"]) == ((0, 1), (0, 1))
    assert (given["stride"], given["dilation"]) == ((1, 2), (1, 1))
    assert given["image"].facts == {"name": "image", "dim": [2, 3, 1, 7], "stride": [21, 7, 7, 1], "data_type": "FLOAT"}
    assert given["weight"].facts["dim"] == [4, 3, 1, 3]
    monkeypatch.setattr(lucid.backends.cuda.matmul, "allow_tf32", True)
    cudnn_convolution.forward(x, weight, (2, 4, 4), **WINDOWS)
    assert package.called("deselect_numeric_notes") == [(["d", "r", "n", "t"],), (["d", "r", "n"],)]


def test_convolution_of_volumes(package, monkeypatch, rng):
    """Volumes go to cuDNN as they are, with one number for each dimension, and get their bias behind it."""
    settings = {"out": (2, 3, 2), "stride": (1, 2, 3), "before": (1, 0, 2), "dilation": (2, 1, 1), "groups": 1}
    x, weight = (on_device(np.zeros(shape), "float32").array for shape in ((2, 3, 3, 7, 4), (4, 3, 2, 3, 5)))
    assert convolution.kernel(x, weight, None, **settings).shape == (2, 4, 2, 3, 2)
    (given,) = package.called("conv_fprop")
    assert (given["pre_padding"], given["post_padding"]) == ((1, 0, 2), (0, 0, 2))
    assert (given["stride"], given["dilation"]) == ((1, 2, 3), (2, 1, 1))
    assert given["image"].facts["dim"] == [2, 3, 3, 7, 4]
    assert given["weight"].facts["dim"] == [4, 3, 2, 3, 5]
    made = on_device(rng.standard_normal((2, 4, 2, 3, 2)), "float32").array
    bias = on_device(rng.standard_normal(4), "float32").array
    wanted = made.get() + bias.get().reshape(4, 1, 1, 1)
    monkeypatch.setattr(cudnn_convolution, "forward", lambda *operands, **settings: made.copy())
    np.testing.assert_array_equal(convolution.kernel(x, weight, bias, **settings).get(), wanted)


def test_convolutions_left_to_kernels(package):
    """NotImplemented where there is no such dtype, no such padding, or no plan, which is asked for once."""
    x, weight = images()
    # the last elements are left out: no padding behind says so
    assert cudnn_convolution.forward(x, weight, (2, 4, 5), **(WINDOWS | {"stride": (1,)})) is NotImplemented
    wide = x.astype(np.float64), weight.astype(np.float64)
    assert cudnn_convolution.forward(*wide, (2, 4, 4), **WINDOWS) is NotImplemented
    assert cudnn_convolution.forward(wide[0], weight, (2, 4, 4), **WINDOWS) is NotImplemented
    assert not package.calls
    package.able = False
    for _ in range(2):
        assert cudnn_convolution.forward(x, weight, (2, 4, 4), **WINDOWS) is NotImplemented
    assert len(package.called("check_support")) == 1
    assert not package.called("execute")


def test_names():
    """What is called exists in NVIDIA's package, where it is installed."""
    real = pytest.importorskip("cudnn")
    for name in ("backend_version", "create_handle", "set_stream", "cudnnGraphNotSupportedError"):
        assert hasattr(real, name)
    operations = "conv_fprop", "conv_dgrad", "conv_wgrad", "sdpa", "sdpa_backward"
    for name in (*operations, *(set(STAGES) - {"operation", "set_output"})):
        assert hasattr(real.pygraph, name)
    for kind in ("data_type", "heur_mode", "numerical_note"):
        assert all(hasattr(getattr(real, kind), name) for name in vars(getattr(Package, kind)))


@every_half
@pytest.mark.parametrize("case", ABLE)
def test_real_attention(case, dtype, launched, rng):
    """On a GPU with cuDNN, its attention agrees with formulas in float64 and with lucid's kernels."""
    if gpu.is_simulated() or cudnn._package() is None:
        pytest.skip("needs a GPU and cuDNN")
    r = Reference(case, dtype, rng)
    r.check(dtype)
    assert not launched
    through = r.run(dtype)
    switch.enabled = False
    try:
        own = r.run(dtype)
    finally:
        switch.enabled = True
    for got, wanted in zip(through, own, strict=True):
        assert_near(got, wanted.get().astype(np.float64), str(got.dtype))
