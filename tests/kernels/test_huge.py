"""More than 2**31 elements and 2**32 bytes: offsets, sizes and grids that pass 32 bits, without the memory for them.

On the simulated device large allocations are sparse: they begin as zeros, and take memory where they are written to.
Elements that differ from zero lie at the end, and only the first and last blocks of each launch run: what these write
must be what a small tensor of the same elements gives on the CPU. Where few elements lie far apart, whole launches run.
"""

from __future__ import annotations

import types

import numpy as np
import pytest

import lucid
from lucid.autograd.base import wrap
from lucid.base import gpu
from lucid.base.random.generator import default_generator_for
from lucid.cuda.simulator.runtime import capacity, only_blocks
from lucid.errors import ShapeError
from lucid.nn import functional
from tests.gradients import drawing, flat, numbers, outputs_and_gradients, tensors_of
from tests.ops.test_samples import GRADIENT, SAMPLES, check_close
from tests.optimizers import NAMES

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not gpu.is_simulated(), reason="needs the sparse memory of the simulated device"),
]

MORE = 2**31 + 2**10


@pytest.fixture(autouse=True)
def room():
    """Give devices more memory than any has."""
    with capacity(2**44):
        yield
        gpu.cupy().get_default_memory_pool().free_all_blocks()


BLOCKS = 4
END = 3


def empty(shape, dtype):
    """Return a tensor on the device, of zeros where it is large."""
    return wrap(gpu.cupy().empty(shape, getattr(lucid, dtype).numpy))


def host(tensor):
    """Return a device's elements as the host sees them, without a copy."""
    array = tensor.detach().array
    shown = types.SimpleNamespace(
        __array_interface__={
            "data": (array.data.ptr, False), "shape": array.shape, "strides": array.strides, "version": 3,
            "typestr": f"|V{array.itemsize}" if array.dtype.kind == "V" else array.dtype.str,
        }
    )  # fmt: skip
    return np.asarray(shown).view(array.dtype)


def huge(rng, shape, dtype="float16", *, dim=0):
    """Return a tensor on the device that is zero but for its end along `dim`, and this end on the CPU."""
    tensor = empty(shape, dtype)
    end = host(tensor)[end_of(dim)]
    drawn = rng.standard_normal(end.shape) if end.dtype.kind in "fV" else rng.integers(0, 100, end.shape)
    end[...] = drawn.astype(end.dtype)
    return tensor, lucid.tensor(end.copy(), device="cpu")


def end_of(dim):
    return slice(-END, None) if dim == 0 else (..., slice(-END, None))


def check_end(got, expected, dim=0, error=4e-3):
    """Compare the end of a huge tensor with what the small ones gave."""
    for one, other in zip(flat(got), flat(expected), strict=True):
        value, right = host(one)[end_of(dim)], numbers(other)
        if dim:
            # of several lines, the last blocks have the last one
            value, right = value[-1:] if value.ndim > 1 else value, right[-1:] if value.ndim > 1 else right
        check_close(np.array(value), right, error, "value")


def check(rng, op, shape, dtype="float16", *, dim=0, backward=True):
    """Run an op on a huge tensor and on its end, and their gradients with an upstream gradient that is zero before."""
    x, small = huge(rng, shape, dtype, dim=dim)
    with only_blocks(BLOCKS, BLOCKS):
        if backward:
            x.requires_grad_()
            small.requires_grad_()
        out, expected = op(x), op(small)
        check_end(out, expected, dim)
        if backward:
            upstream, end = huge(rng, out.shape, str(out.dtype).split(".")[-1], dim=dim)
            (grad,) = lucid.autograd.grad(out, x, upstream)
            (right,) = lucid.autograd.grad(expected, small, end)
            check_end(grad, right, dim, 1e-2)


# ---- elements and rows ----

COLUMNS = 20
ROWS = MORE // COLUMNS + END
WEIGHT = np.linspace(-1, 1, COLUMNS)


def like(x, array):
    """Return numbers as a tensor beside another one."""
    return lucid.tensor(array, dtype=x.dtype, device=x.device)


BY_ROW = {
    "exp": lambda x: x.exp(),
    "mul": lambda x: x * x,
    "broadcast": lambda x: x * like(x, WEIGHT),
    "bias_activation": lambda x: functional.bias_activation(x, like(x, WEIGHT), "gelu"),
    "where": lambda x: lucid.where(x > 0, x, like(x, WEIGHT)),
    "cast": lambda x: x.float(),
    "backwards": lambda x: x.flip(1).exp(),
    "dense": lambda x: x[:, ::2].contiguous(),
    "softmax": lambda x: functional.softmax(x, 1),
    "log_softmax": lambda x: functional.log_softmax(x[:, ::2], 1),
    "layer_norm": lambda x: functional.layer_norm(x, (COLUMNS,), like(x, WEIGHT), like(x, WEIGHT)),
    "group_norm": lambda x: functional.group_norm(x.reshape(-1, 4, 5), 2, like(x, WEIGHT[:4])),
    "batch_norm": lambda x: functional.batch_norm(x, like(x, WEIGHT).float(), like(x, WEIGHT**2).float()),
    "sum": lambda x: x.sum(1),
    "amax": lambda x: x.amax(1),
    "var": lambda x: x.var(1),
    "norm": lambda x: lucid.norm(x, dim=1),
    "prod": lambda x: x.prod(1),
    "max": lambda x: x.max(1)[0],
    "cumsum": lambda x: x.cumsum(1),
    "cumprod": lambda x: x.cumprod(1),
    "pad": lambda x: functional.pad(x, (1, 2)),
    "reflect": lambda x: functional.pad(x, (1, 2), mode="reflect"),
    "cat": lambda x: lucid.cat([x, x], 1),
    "stack": lambda x: lucid.stack([x, x], 1),
    "slice": lambda x: x[:, 3:7],
    "roll": lambda x: x.roll(3, 1),
    "tril": lambda x: x.reshape(-1, 4, 5).tril(),
    "cross_entropy": lambda x: functional.cross_entropy(x, classes(x), reduction="none"),
    "nll_loss": lambda x: functional.nll_loss(x, classes(x), reduction="none"),
    "mse": lambda x: functional.mse_loss(x, like(x, WEIGHT).expand(x.shape), reduction="none"),
}


def classes(x):
    return lucid.zeros(x.shape[0], dtype=lucid.int64, device=x.device)


@pytest.mark.parametrize("name", BY_ROW)
def test_rows(name, rng):
    """The last of more than 2**31 elements, in rows, and their gradients."""
    check(rng, BY_ROW[name], (ROWS, COLUMNS))


# Blocks along y are at most 65,535, of at most 256 planes each: as many planes as make the last one the last block's.
PLANES = 65_535 * 256 * 7
BY_PLANE = {
    "avg_pool": lambda x: functional.avg_pool2d(x, 2),
    "avg_pool of large windows": lambda x: functional.avg_pool2d(functional.pad(x, (2, 2, 3, 3)), 9),
    "max_pool": lambda x: functional.max_pool2d(x, 2, padding=1),
    "depthwise": lambda x: functional.conv2d(x, like(x, WEIGHT[:18].reshape(2, 1, 3, 3)), padding=1, groups=2),
}


@pytest.mark.parametrize("name", BY_PLANE)
def test_planes(name, rng):
    """The last of many images, more than a grid has blocks."""
    check(rng, BY_PLANE[name], (PLANES // 2, 2, 4, 5))


LONG = {
    "avg_pool": lambda x: functional.avg_pool1d(x, 3, 1, padding=1),
    "max_pool": lambda x: functional.max_pool1d(x, 2, 2),
    "depthwise": lambda x: functional.conv1d(x, like(x, WEIGHT[:6].reshape(2, 1, 3)), padding=1, groups=2),
}


@pytest.mark.parametrize("name", LONG)
def test_long_planes(name, rng):
    """The last elements of planes of so many pixels that a step of the grid from the last one passes 2**31."""
    shape = (1, 2, 2**31 - 2**20)
    x = empty(shape, "float16")
    host(x)[..., -100:] = rng.standard_normal((1, 2, 100))
    small = lucid.tensor(host(x)[..., -100:].copy(), device="cpu")
    with only_blocks(BLOCKS, BLOCKS):
        x.requires_grad_()
        small.requires_grad_()
        out, expected = LONG[name](x), LONG[name](small)
        check_close(host(out)[..., -40:].copy(), numbers(expected)[..., -40:], 4e-3, "value")
        upstream = empty(out.shape, "float16")
        host(upstream)[..., -40:] = rng.standard_normal((1, 2, 40))
        end = lucid.tensor(host(upstream)[..., -expected.shape[-1] :].copy(), device="cpu")
        (grad,), (right,) = lucid.autograd.grad(out, x, upstream), lucid.autograd.grad(expected, small, end)
        check_close(host(grad)[..., -60:].copy(), numbers(right)[..., -60:], 1e-2, "gradient")


# ---- lines that lie across memory ----

LINES = MORE // 2 + END


BY_LINE = {
    "softmax": lambda x: functional.softmax(x, 0),
    "turned softmax": lambda x: functional.softmax(x.T, 1).T,
    "sum": lambda x: x.sum(0),
    "mean of turned": lambda x: x.T.mean(1),
    "amin": lambda x: x.amin(0),
    "std": lambda x: x.std(0),
    "cumsum": lambda x: x.cumsum(0),
    "sub": lambda x: x - x[:1],
    "turned": lambda x: x.T.contiguous().T,
    "roll": lambda x: x.roll(1, 0),
    "cat": lambda x: lucid.cat([x, x], 0),
    "pad": lambda x: functional.pad(x, (0, 0, 1, 0)),
    "index": lambda x: x[lucid.tensor([0, 1], device=x.device)],
}


@pytest.mark.parametrize("name", BY_LINE)
def test_lines(name, rng):
    """The last of 2**30 lines of two elements, and their gradients."""
    dtype = "float32" if name == "index" else "float16"
    if name == "mean of turned":
        x, small = huge(rng, (2, LINES), dim=1)
        with only_blocks(BLOCKS, BLOCKS):
            check_end(BY_LINE[name](x), BY_LINE[name](small))
        return
    check(rng, BY_LINE[name], (2, LINES), dtype, dim=-1)


@pytest.mark.parametrize("name", ["argmax", "argmin", "max", "any", "all"])
def test_places(name, rng):
    """Places along the rows of a huge array."""
    x, small = huge(rng, (ROWS, COLUMNS))
    op = {
        "argmax": lambda x: x.argmax(1),
        "argmin": lambda x: x.argmin(1),
        "max": lambda x: x.max(1)[1],
        "any": lambda x: (x > 1.5).any(1),
        "all": lambda x: (x > -1.5).all(1),
    }[name]
    with only_blocks(BLOCKS, BLOCKS):
        check_end(op(x), op(small))


# ---- all elements ----


def test_full_reductions(rng):
    """Sums, extremes and places of all elements count the last ones, beyond 2**32 bytes."""
    x, _ = huge(rng, (2 * MORE,), "int8")
    host(x)[-2] = 101
    with only_blocks(BLOCKS, BLOCKS):
        assert x.sum().item() == host(x)[-END:].astype(np.int64).sum()
        assert (x.max().item(), x.argmax().item()) == (101, 2 * MORE - 2)
        host(x)[-2] = -7
        assert (x.min().item(), x.argmin().item()) == (-7, 2 * MORE - 2)
        assert (x > 0).any().item()


def test_norm_and_clipping(rng):
    """The norm of a huge gradient is that of its end, and clipping shortens this end."""
    gradients = huge(rng, (MORE,))
    norms = []
    with only_blocks(BLOCKS, BLOCKS):
        for grad in gradients:
            parameter = lucid.nn.Parameter(empty((MORE,), "float16") if grad is gradients[0] else grad.clone())
            parameter.grad = grad
            norms.append(lucid.nn.utils.clip_grad_norm_([parameter], 0.5))
            lucid.nn.utils.clip_grad_value_([parameter], 0.2)
    check_close(np.array(host(norms[0])), numbers(norms[1]), 2e-3, "norm")
    check_end(*gradients)


@pytest.mark.parametrize("name", NAMES)
def test_steps(name, rng):
    """An optimizer changes the last elements of a huge parameter."""
    grad, small_grad = huge(rng, (MORE,))
    x, small = huge(rng, (MORE,))
    with only_blocks(BLOCKS, BLOCKS):
        for values, gradient in ((x, grad), (small, small_grad)):
            values.requires_grad_()
            values.grad = gradient
            options = {"momentum": 0.9} if name == "SGD" else {}
            optimizer = getattr(lucid.optim, name)([values], lr=0.1, **options)
            optimizer.step()
            optimizer.step()
    check_end(x, small)


# ---- random numbers ----


def ones_at_end(n, device):
    """Return a tensor whose last elements are one, those before zero where there are many."""
    x = empty((n,), "float16") if device == "cuda" else lucid.ones(n, dtype=lucid.float16, device="cpu")
    x.array[-8:] = 1
    return x


DRAWS = {
    "rand": (lambda n, device: lucid.rand(n, dtype=lucid.float16, device=device), 4),
    "randn": (lambda n, device: lucid.randn(n, dtype=lucid.float16, device=device), 4),
    "integers": (lambda n, device: lucid.randint(0, 100, (n,), dtype=lucid.int8, device=device), 2),
    "exponential": (lambda n, device: lucid.empty(n, dtype=lucid.float16, device=device).exponential_(), 4),
    "dropout": (lambda n, device: functional.dropout(ones_at_end(n, device), 0.3), 4),
}


@pytest.mark.parametrize("offset", [0, 2**34])
@pytest.mark.parametrize("name", DRAWS)
def test_draws(name, offset):
    """The last values of a huge draw are those of a small one that begins so far into the stream."""
    draw, values_of_block = DRAWS[name]
    lucid.manual_seed(7)
    default_generator_for("cuda").reserve(offset)
    default_generator_for("cpu").reserve(offset + (MORE - 8) // values_of_block)
    with only_blocks(BLOCKS, BLOCKS):
        got, expected = draw(MORE, "cuda"), draw(8, "cpu")
    np.testing.assert_array_equal(host(got)[-8:], numbers(expected))


# ---- tables ----


def test_tables(rng):
    """Rows of a huge table are picked, and get their gradients, wherever they lie."""
    rows = MORE // COLUMNS
    x, small = huge(rng, (rows, COLUMNS), "float32")
    places = np.array([rows - 1, 5, rows - 3, rows - 1])
    index = lucid.tensor(places, device="cuda")
    ends = np.stack([np.zeros(COLUMNS) if place == 5 else numbers(small)[place - rows] for place in places])
    upstream = rng.standard_normal(ends.shape)
    total = np.zeros((END, COLUMNS))
    for place, grad in zip(places, upstream, strict=True):
        if place != 5:
            total[place - rows] += grad
    for pick in (
        lambda x: x[index],
        lambda x: x.index_select(0, index),
        lambda x: functional.embedding(index, x),
        lambda x: x.gather(0, index[:, None].expand(4, COLUMNS)),
        lambda x: lucid.take_along_dim(x, index[:, None], 0),
        lambda x: x.reshape(-1)[index[:, None] * COLUMNS + lucid.arange(COLUMNS, device="cuda")],
    ):
        table = x.detach().requires_grad_()
        out = pick(table)
        np.testing.assert_array_equal(numbers(out), ends.astype(np.float32))
        (grad,) = lucid.autograd.grad(out, table, lucid.tensor(upstream, dtype=lucid.float32, device="cuda"))
        check_close(np.array(host(grad)[-END:]), total.astype(np.float32), 1e-6, "gradient")
        check_close(np.array(host(grad)[5]), upstream[1].astype(np.float32), 1e-6, "gradient")
        del out, grad


def test_many_rows_are_shortened(rng):
    """The last of more rows than a grid has blocks is shortened, and rows that are not in use are not."""
    x, small = huge(rng, (MORE, 1))
    host(x)[-END:] = small.array[...] = np.array([[3.0], [-4.0], [5.0]])
    index = lucid.tensor([MORE - 1, MORE - 3], device="cuda")
    with only_blocks(2**10 + BLOCKS, BLOCKS):
        out = functional.embedding(index, x, max_norm=1.0)
    np.testing.assert_allclose(numbers(out), [[1.0], [1.0]], rtol=2e-3)
    np.testing.assert_allclose(host(x)[-END:], [[1.0], [-4.0], [1.0]], rtol=2e-3)


def test_many_strided_lines(rng):
    """Lines of two elements that lie apart: more than a grid has blocks."""
    check(rng, lambda x: functional.softmax(x.T, 1), (2, MORE), dim=-1, backward=False)


# ---- few elements, far apart ----


def far(array):
    """Return an array on the device whose rows are more than 2**32 bytes, and 2**31 elements, apart."""
    xp = gpu.cupy()
    if not array.ndim:
        return wrap(xp.array(array))
    inner = int(np.prod(array.shape[1:]))
    step = 2**32 // min(array.itemsize, 2) + inner
    whole = xp.empty(max(array.shape[0], 1) * step, array.dtype)
    strides = np.empty(array.shape[1:], array.dtype).strides
    view = xp.lib.stride_tricks.as_strided(whole, array.shape, (step * array.itemsize, *strides))
    host(wrap(view))[...] = array
    return wrap(view)


@pytest.mark.parametrize("sample", [pytest.param(s, id=s.name) for s in SAMPLES])
def test_far_apart(sample, rng):
    """Every op gives the same, and the same gradients, for rows that are more than 2**32 bytes apart."""
    arrays = [np.asarray(a) for a in sample.inputs(rng)]
    dtype = "float32" if "float32" in sample.dtypes else None
    small = tensors_of(arrays, sample.constants, dtype=dtype, requires_grad=sample.differentiable, device="cpu")
    large = [far(numbers(tensor)).requires_grad_(tensor.requires_grad) for tensor in small]
    if not sample.differentiable:
        results = [flat(sample.op(*tensors)) for tensors in (small, large)]
    else:
        draw = drawing(rng)
        pairs = [outputs_and_gradients(sample.op, tensors, draw) for tensors in (small, large)]
        results = [[*values, *[grad for grad in grads if grad is not None]] for values, grads in pairs]
    for expected, got in zip(*results, strict=True):
        check_close(numbers(got), numbers(expected), 2 * sample.tolerance.get("float32", GRADIENT["float32"]), "result")


@pytest.mark.parametrize(
    ("left", "right"),
    [((2**31, 1), (1, 1)), ((1, 2**31), (2**31, 1)), ((1, 1), (1, 2**31)), ((2**31, 1, 1), (2**31, 1, 1))],
    ids=["rows", "sums", "columns", "stack"],
)
def test_products_that_cublas_cannot_count(left, right):
    """A side or a stack beyond 32 bits is refused with its size, before anything runs."""
    with pytest.raises(ShapeError, match=r"2,147,483,648.*multiply parts"):
        empty(left, "float16") @ empty(right, "float16")


def test_products_far_from_the_beginning(rng):
    """The last rows of a matrix of more than 2**31 elements are multiplied where they lie."""
    wide = 2**21
    x, column = empty((1030, wide), "float16"), lucid.zeros(wide, 1, dtype=lucid.float16, device="cuda")
    host(x)[-2:, -END:] = [[1.0, 2.0, 3.0], [0.5, 0.0, -1.0]]
    host(column)[-END:, 0] = [4.0, 5.0, 6.0]
    assert host(x[-2:] @ column).tolist() == [[32.0], [-4.0]]
