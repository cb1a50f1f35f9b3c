"""Compiled softmax and layer norm: exact, and alike in special values."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import lucid
from lucid.backends import cpu
from lucid.nn import functional as F

EPS = 1e-5
NAMES = "softmax", "log_softmax", "layer_norm"
ULP = 2.0**-23
SHAPES = [
    (1, 1),
    (3, 2),
    (9000, 1),
    (4097, 2),
    (1000, 10),
    (600, 15),
    (600, 16),
    (500, 17),
    (300, 31),
    (40, 513),
    (8, 4, 17, 64),
    (1, 100000),
]


def exact(name, x, grad, weight, bias):
    """Return the result and the gradients in float64."""
    x, grad = x.astype("float64"), grad.astype("float64")
    if name == "layer_norm":
        centred = x - x.mean(-1, keepdims=True)
        r = 1 / np.sqrt((centred * centred).mean(-1, keepdims=True) + EPS)
        y, h = centred * r, grad * weight
        to_x = r * (h - h.mean(-1, keepdims=True) - y * (h * y).mean(-1, keepdims=True))
        lead = tuple(range(x.ndim - 1))
        return y * weight + bias, to_x, (grad * y).sum(lead), grad.sum(lead)
    exponentials = np.exp(x - x.max(-1, keepdims=True))
    total = exponentials.sum(-1, keepdims=True)
    y = exponentials / total
    if name == "softmax":
        return y, y * (grad - (grad * y).sum(-1, keepdims=True))
    return x - x.max(-1, keepdims=True) - np.log(total), grad - y * grad.sum(-1, keepdims=True)


def computed(name, x, grad, weight, bias):
    """Return the result and the gradients as lucid computes them."""
    tensors = [lucid.from_numpy(array).requires_grad_() for array in (x, weight, bias)]
    if name == "layer_norm":
        out = F.layer_norm(tensors[0], (x.shape[-1],), *tensors[1:], EPS)
    else:
        out = getattr(F, name)(tensors[0], -1)
    out.backward(lucid.from_numpy(grad))
    return [each.numpy() for each in (out.detach(), *[tensor.grad for tensor in tensors if tensor.grad is not None])]


def operands(shape, offset=0.0, dtype="float32"):
    """Return an input, an upstream gradient, weight and bias."""
    rng = np.random.default_rng(5)
    arrays = [rng.standard_normal(each) for each in (shape, shape, shape[-1:], shape[-1:])]
    return [(array + offset * (number == 0)).astype(dtype) for number, array in enumerate(arrays)]


def errors(ours, theirs):
    """Return the largest error of each array as a share of the largest number."""
    return [float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)) for a, b in zip(ours, theirs, strict=True)]


@pytest.mark.parametrize("offset", [0.0, 100.0, 1e4])
@pytest.mark.parametrize(
    ("name", "shape"),
    # the gradient of layer norm of one number is 0
    [(name, shape) for name in NAMES for shape in SHAPES if name != "layer_norm" or shape[-1] > 1],
)
def test_errors(compiled, monkeypatch, name, shape, offset):
    """No result is further from float64 than two last digits, or than NumPy's path is."""
    given = operands(shape, offset)
    expected = exact(name, *given)
    ours = errors(computed(name, *given), expected)
    own = "normalise_rows" if name == "layer_norm" else name
    assert compiled == [own, f"{own}_grad"]
    monkeypatch.setattr(cpu, "compiled", False)
    theirs = errors(computed(name, *given), expected)
    assert all(one <= max(other, 2 * ULP) for one, other in zip(ours, theirs, strict=True)), (ours, theirs)


SPECIAL_ROWS = {
    "NaN": [np.nan, 1.0],
    "infinity": [np.inf, 1.0],
    "both infinities": [np.inf, -np.inf],
    "masked": [-np.inf, 1.0],
    "all masked": [-np.inf],
    "far apart": [-1e30, 200.0],
    "huge": [3e38, -3e38],
    "subnormal": [1e-42, -1e-44],
    "zeros of both signs": [0.0, -0.0],
    "one number": [0.1],
}


@pytest.mark.parametrize("columns", [1, 15, 16, 17, 1000])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_special_values(compiled, monkeypatch, name, columns):
    """NaN, infinities and zeros lie where NumPy's path has them, and do not reach other rows."""
    rng = np.random.default_rng(2)
    special = [rng.permutation(np.resize(np.array(row), columns)) for row in SPECIAL_ROWS.values()]
    x, grad = operands((len(special) + 5, columns))[:2]
    x[: len(special)] = special
    weight = np.ones(columns, "float32")
    ours = computed(name, x, grad, weight, weight)
    assert compiled
    monkeypatch.setattr(cpu, "compiled", False)
    for one, other in zip(ours, computed(name, x, grad, weight, weight), strict=True):
        np.testing.assert_allclose(one, other, rtol=16 * ULP, atol=64 * ULP)


@pytest.mark.parametrize("row", ["NaN", "infinity", "both infinities", "all masked"])
def test_rows_that_have_no_mean(compiled, row):
    """Such rows are NaN, and others as they would be without them."""
    x, grad, weight, bias = operands((200, 64))
    expected = exact("layer_norm", x, grad, weight, bias)
    x[3] = np.resize(np.array(SPECIAL_ROWS[row]), 64)
    out, to_x, *_ = computed("layer_norm", x, grad, weight, bias)
    assert compiled
    assert np.isnan(out[3]).all()
    assert np.isnan(to_x[3]).all()
    others = np.arange(200) != 3
    assert max(errors([out[others], to_x[others]], [expected[0][others], expected[1][others]])) <= 4 * ULP


LAYOUTS = {
    "transposed": lambda x: np.asfortranarray(x),
    "every other column": lambda x: np.repeat(x, 2, 1)[:, ::2],
    "backwards": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": lambda x: np.broadcast_to(x, x.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("name", NAMES)
def test_layouts(compiled, name, layout):
    """Whatever the strides, the numbers are the same."""
    x, grad, weight, bias = operands((150, 64))
    expected = computed(name, x, grad, weight, bias)
    compiled.clear()
    ours = computed(name, layout(x) if name != "read-only" else x, layout(grad), weight, bias)
    assert len(compiled) == 2
    for one, other in zip(ours, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", [lucid.float16, lucid.bfloat16])
@pytest.mark.parametrize("name", NAMES)
def test_half_types(compiled, name, dtype):
    """They are computed in float32 and rounded once."""
    x, grad = [lucid.from_numpy(each).to(dtype) for each in operands((150, 64))[:2]]
    call = (lambda t: F.layer_norm(t, (64,))) if name == "layer_norm" else (lambda t: getattr(F, name)(t, -1))
    half, whole = x.clone().requires_grad_(), x.float().requires_grad_()
    out, wide = call(half), call(whole)
    assert len(compiled) == 2
    assert out.dtype == dtype
    assert (out == wide.to(dtype)).all()
    out.backward(grad)
    assert half.grad.dtype == dtype
    assert len(compiled) == 3


def test_what_is_wanted_of_layer_norm(compiled):
    """Each gradient is the same, whichever others are asked for; without weights there is one."""
    x, grad, weight, bias = operands((150, 64))
    whole = computed("layer_norm", x, grad, weight, bias)[1:]
    for number in range(3):
        tensors = [lucid.from_numpy(each).requires_grad_(at == number) for at, each in enumerate((x, weight, bias))]
        F.layer_norm(tensors[0], (64,), *tensors[1:], EPS).backward(lucid.from_numpy(grad))
        np.testing.assert_array_equal(tensors[number].grad.numpy(), whole[number])
    ones = computed("layer_norm", x, grad, np.ones_like(weight), np.zeros_like(bias))
    bare = lucid.from_numpy(x).requires_grad_()
    out = F.layer_norm(bare, (64,), eps=EPS)
    out.backward(lucid.from_numpy(grad))
    np.testing.assert_array_equal(out.detach().numpy(), ones[0])
    np.testing.assert_array_equal(bare.grad.numpy(), ones[1])


def test_what_is_compiled(compiled):
    """Other dtypes, other dimensions and no elements are NumPy's."""
    F.softmax(lucid.ones(200, 64, device="cpu", dtype=lucid.float64), -1)
    F.softmax(lucid.ones(64, 200, device="cpu"), 0)
    F.softmax(lucid.ones(0, 200, device="cpu"), -1)
    F.softmax(lucid.ones(200, 0, device="cpu"), -1)
    F.layer_norm(lucid.ones(200, 64, device="cpu", dtype=lucid.float64), (64,))
    F.layer_norm(lucid.ones(0, 64, device="cpu"), (64,))
    assert not compiled


def test_small_shares_are_not_lost(compiled):
    """Where a share is a subnormal number it is the float next to it, as its exponential alone is none."""
    x = np.array([[0.0, -80.0, -87.0, -90.0, -95.0, -100.0, -103.0, -104.0, -130.0, -1e38]], np.float32)
    out = F.softmax(lucid.from_numpy(x), -1).numpy()
    assert compiled
    true = exact("softmax", x, x, None, None)[0].astype("float32")
    np.testing.assert_allclose(out, true, rtol=4 * ULP, atol=2.0**-149)


WITHOUT_A_COMPILER = """
import numpy as np, lucid
from lucid.nn import functional as F
x = lucid.ones(1024, 1024, requires_grad=True)
optimizer = lucid.optim.Adam([x])
for _ in range(3):
    y = F.layer_norm(F.softmax(x, -1), (1024,)) + lucid.rand(1024, 1024)
    y.sum().backward()
    optimizer.step()
from lucid.cpu import functions
assert not any(each._loaded for unit in functions.UNITS for each in unit.libraries.values())
print(float(F.softmax(x, -1).sum()))
"""


def test_without_a_compiler(tmp_path):
    """NumPy does all of it."""
    environment = {name: value for name, value in os.environ.items() if "SIMULATOR" not in name}
    environment |= {"CXX": "/nonexistent", "LUCID_CACHE_DIR": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", WITHOUT_A_COMPILER], env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert float(ran.stdout) == pytest.approx(1024, rel=1e-5)
