"""Sizes whose product wraps around: every op that is given sizes refuses them, and nothing is made."""

from __future__ import annotations

import inspect
import math
import re
from pathlib import Path

import numpy as np
import pytest

import lucid
import lucid.nn.functional as F
from lucid import nn
from lucid.base.memory import END, SizeError, check_size
from lucid.errors import OutOfMemoryError, ShapeError
from tests.device import DEVICE
from tests.pieces.memory import traced

HALF, MORE = 1 << 32, 1 << 40
# 2 ** 64 + 4 elements: of an int that wraps around, memory for four of them would be made
FOUR = (2, 2, 5, 5581, 8681, 49477, 384773)
SHAPES = [(HALF, HALF), (MORE, MORE), FOUR, (1 << 62,), (1 << 63,), (1 << 64,), (-(1 << 64),), (MORE, MORE, 0)]


def one(*shape, dtype=None):
    """Return a tensor of zeros, of one element if no shape is given."""
    return lucid.zeros(shape or (1,), dtype=dtype)


def wide(size):
    """Return a vector that has no memory but for one element."""
    return one().expand(size)


def lengths(count):
    """Return how often each of four elements is to be repeated."""
    return lucid.tensor([count] * 4)


# bytes: what is imported, and lists of sizes
MOST_MADE = 1 << 24
# what is given a shape, with what makes or enlarges to it
TO_SHAPE = {
    "empty": lucid.empty,
    "zeros": lucid.zeros,
    "ones": lucid.ones,
    "full": lambda *s: lucid.full(s, 2.0),
    "rand": lucid.rand,
    "randn": lucid.randn,
    "randint": lambda *s: lucid.randint(3, s),
    "normal": lambda *s: lucid.normal(0.0, 1.0, s),
    "Tensor": lucid.Tensor,
    "Tensor.new": lambda *s: one().new(*s),
    "Tensor.new_zeros": lambda *s: one().new_zeros(s),
    "Tensor.new_ones": lambda *s: one().new_ones(s),
    "Tensor.new_empty": lambda *s: one().new_empty(s),
    "Tensor.new_full": lambda *s: one().new_full(s, 1.0),
    "Tensor.expand": lambda *s: one().expand(s),
    "broadcast_to": lambda *s: lucid.broadcast_to(one(), s),
    "Tensor.broadcast_to": lambda *s: one().broadcast_to(s),
    "Tensor.repeat": lambda *s: one().repeat(s),
    "tile": lambda *s: lucid.tile(one(), s),
    "Tensor.tile": lambda *s: one().tile(s),
    "as_strided": lambda *s: lucid.as_strided(one(), s, (0,) * len(s)),
    "Tensor.as_strided": lambda *s: one().as_strided(s, (0,) * len(s)),
    "as_strided_scatter": lambda *s: lucid.as_strided_scatter(one(), one(), s, (0,) * len(s)),
    "Tensor.as_strided_scatter": lambda *s: one().as_strided_scatter(one(), s, (0,) * len(s)),
    "reshape": lambda *s: lucid.reshape(one(0), s),
    "Tensor.reshape": lambda *s: one(4).reshape(s),
    "Tensor.view": lambda *s: one(4).view(s),
    "unflatten": lambda *s: lucid.unflatten(one(4), 0, s),
    "Tensor.unflatten": lambda *s: one(4).unflatten(0, s),
    "meshgrid": lambda *s: lucid.meshgrid(*map(wide, s), indexing="ij"),
}
# what is given a number, or computes a shape, with numbers that are too large for it
TO_NUMBERS = {
    "arange": [
        lambda: lucid.arange(0, math.inf),
        lambda: lucid.arange(math.nan),
        lambda: lucid.arange(1e30),
        lambda: lucid.arange(1 << 62),
        lambda: lucid.arange(1 << 63),
        lambda: lucid.arange((1 << 70), (1 << 70) + 4),
        lambda: lucid.arange(0, 1, 1e-30),
    ],
    "linspace": [lambda: lucid.linspace(0, 1, 1 << 62), lambda: lucid.linspace(0, 1, 1 << 64)],
    "logspace": [lambda: lucid.logspace(0, 1, 1 << 62)],
    "eye": [lambda: lucid.eye(HALF, HALF), lambda: lucid.eye(1 << 62)],
    "tril_indices": [lambda: lucid.tril_indices(HALF, HALF)],
    "triu_indices": [lambda: lucid.triu_indices(HALF, HALF)],
    "randperm": [lambda: lucid.randperm(1 << 62)],
    "bartlett_window": [lambda: lucid.bartlett_window(1 << 62)],
    "blackman_window": [lambda: lucid.blackman_window(1 << 62)],
    "hamming_window": [lambda: lucid.hamming_window(1 << 62)],
    "hann_window": [lambda: lucid.hann_window(1 << 62)],
    "kaiser_window": [lambda: lucid.kaiser_window(1 << 62)],
    "bincount": [lambda: lucid.bincount(lucid.tensor([0]), minlength=1 << 62), lambda: lengths(1 << 62).bincount()],
    "histc": [lambda: lucid.histc(one(), bins=1 << 62)],
    "vander": [lambda: lucid.vander(wide(HALF), N=HALF)],
    "linalg.vander": [lambda: lucid.linalg.vander(wide(HALF), N=HALF)],
    "multinomial": [lambda: lucid.multinomial(lucid.ones(2), 1 << 62, replacement=True)],
    "repeat_interleave": [
        lambda: lucid.repeat_interleave(one(4), 1 << 62),
        lambda: lucid.repeat_interleave(one(3), (1 << 62) + 5),
        lambda: lucid.repeat_interleave(one(4), lengths(1 << 62)),
        lambda: lucid.repeat_interleave(lengths(1 << 62)),
    ],
    "diag_embed": [lambda: lucid.diag_embed(one(), offset=HALF - 1)],
    "diag": [lambda: lucid.diag(one(), 1 << 62)],
    "F.pad": [
        lambda: F.pad(one(1, 1), (HALF - 1, 0, HALF - 1, 0)),
        lambda: F.pad(one(), ((1 << 63) - 1, 0)),
        lambda: F.pad(one(1, 1, 1), (1 << 62, 1 << 62), mode="replicate"),
    ],
    "F.interpolate": [
        lambda: F.interpolate(one(1, 1, 1, 1), size=(HALF, HALF)),
        lambda: F.interpolate(one(1, 1, 1, 1), size=(HALF, HALF), mode="bilinear"),
        lambda: F.interpolate(one(1, 1, 1, 1), scale_factor=1e30),
    ],
    "F.one_hot": [
        lambda: F.one_hot(lengths(0), 1 << 62),
        lambda: F.one_hot(lengths(0), 1 << 64),
        lambda: F.one_hot(lengths(1 << 62)),
    ],
    "F.affine_grid": [lambda: F.affine_grid(one(1, 2, 3), (1, 1, HALF, HALF))],
    "F.unfold": [lambda: F.unfold(one(1, 1, 1, 1).expand(1, 1, 1 << 20, 1 << 20), (1 << 19, 1 << 19))],
    "F.fold": [lambda: F.fold(one(1, 1, 1), (HALF, HALF), 1), lambda: F.fold(one(1, 1, 1), (HALF, HALF), (HALF, HALF))],
    "Tensor.unfold": [lambda: wide(2 * HALF).unfold(0, HALF, 1)],
    "F.pixel_shuffle": [lambda: F.pixel_shuffle(one(1, 1, 1, 1), 1 << 62)],
    "unravel_index": [lambda: lucid.unravel_index(lengths(0), (1 << 64,))],
    "fft.fftfreq": [lambda: lucid.fft.fftfreq(1 << 62)],
    "fft.rfftfreq": [lambda: lucid.fft.rfftfreq(1 << 63)],
    "add": [lambda: one(1, 1).expand(HALF, 1) + one(1, 1).expand(1, HALF)],
    "mul": [lambda: one(1, 1).expand(MORE, 1) * one(1, 1).expand(1, MORE)],
    "where": [lambda: lucid.where(one(1, 1, dtype=lucid.bool).expand(MORE, 1), one(1, 1).expand(1, MORE), 0.0)],
    "outer": [lambda: lucid.outer(wide(HALF), wide(HALF))],
    "kron": [lambda: lucid.kron(one(1, 1).expand(HALF, 1), one(1, 1).expand(1, HALF))],
    "einsum": [lambda: lucid.einsum("i,j->ij", wide(HALF), wide(HALF))],
    "cdist": [lambda: lucid.cdist(one(1, 1).expand(HALF, 1), one(1, 1).expand(HALF, 1))],
    "broadcast_tensors": [lambda: lucid.broadcast_tensors(one(1, 1).expand(HALF, 1), one(1, 1).expand(1, HALF))],
    "cartesian_prod": [lambda: lucid.cartesian_prod(wide(HALF), wide(HALF))],
    "combinations": [lambda: lucid.combinations(wide(HALF), 2)],
    "block_diag": [lambda: lucid.block_diag(one(1, 1).expand(HALF, 1), one(1, 1).expand(1, HALF))],
    "stack": [lambda: lucid.stack([wide(1 << 60)] * 4)],
    "cat": [lambda: lucid.cat([wide(1 << 60)] * 4)],
    "zeros_like": [lambda: lucid.zeros_like(wide(1 << 60), dtype=lucid.float64)],
    "relu": [lambda: F.relu(wide(1 << 61))],
    "nn.LayerNorm": [lambda: nn.LayerNorm((HALF, HALF))],
    "nn.Linear": [lambda: nn.Linear(HALF, HALF)],
    "nn.Embedding": [lambda: nn.Embedding(HALF, HALF)],
    "nn.Conv2d": [lambda: nn.Conv2d(HALF, HALF, 1)],
    "nn.LSTM": [lambda: nn.LSTM(MORE, MORE)],
    "nn.MultiheadAttention": [lambda: nn.MultiheadAttention(HALF, 1)],
    "nn.Upsample": [lambda: nn.Upsample(scale_factor=MORE)(one(1, 1, 1, 1))],
}
for _d in (1, 2, 3):
    _sizes = (1 << 62, HALF, 1 << 22)[_d - 1]
    for _name in (f"adaptive_avg_pool{_d}d", f"adaptive_max_pool{_d}d"):
        TO_NUMBERS[f"F.{_name}"] = [lambda f=getattr(F, _name), d=_d, n=_sizes: f(one(*(1,) * (d + 2)), (n,) * d)]
    TO_NUMBERS[f"F.conv{_d}d"] = [
        lambda f=getattr(F, f"conv{_d}d"), d=_d, n=_sizes: f(*[one(*(1,) * (d + 2))] * 2, padding=n)
    ]
    TO_NUMBERS[f"F.conv_transpose{_d}d"] = [
        lambda f=getattr(F, f"conv_transpose{_d}d"), d=_d, n=_sizes: f(
            one(*(1,) * (d + 2)).expand(1, 1, *(2,) * d), one(*(1,) * (d + 2)), stride=n, output_padding=n - 1
        )
    ]
    TO_NUMBERS[f"F.max_unpool{_d}d"] = [
        lambda f=getattr(F, f"max_unpool{_d}d"), d=_d, n=_sizes: f(
            one(*(1,) * (d + 2)), one(*(1,) * (d + 2), dtype=lucid.int64), 1, output_size=(n,) * d
        )
    ]
for _name in ("fft", "ifft", "hfft", "ihfft", "rfft", "irfft"):
    _many = {"irfft": 1 << 61}.get(_name, 1 << 62)
    TO_NUMBERS[f"fft.{_name}"] = [lambda f=getattr(lucid.fft, _name), n=_many: f(one(), n)]
    for _more in ("2", "n"):
        TO_NUMBERS[f"fft.{_name}{_more}"] = [
            lambda f=getattr(lucid.fft, _name + _more): f(one(1, 1), (HALF, HALF)),
        ]
# what has a parameter of such a name that is no size of a result, or is at most one of an operand
NOT_LARGER = {
    *("diff", "flip", "frombuffer", "istft", "lerp", "matrix_power", "narrow", "permute", "polygamma", "roll", "rot90"),
    *("slice_scatter", "diagonal", "diagonal_scatter", "sum_to_size", "scalar_tensor", "tensordot", "tensorsolve"),
    *(f"{kind}_pool{d}d" for kind in ("avg", "max", "lp", "fractional_max") for d in (1, 2, 3)),
    *("binomial", "local_response_norm"),
}
NAMED = {
    *("size", "sizes", "shape", "n", "m", "N", "steps", "repeats", "dims", "num_classes", "minlength", "bins", "end"),
    *("output_size", "window_length", "row", "col", "pad", "num_samples", "s", "scale_factor", "length", "offset"),
    *("padding", "upscale_factor", "count", "indexing"),
}


# or, of what cannot be so large beside an operand, that it does not fit to that
REFUSALS = (
    r"larger than any memory|sizes below 2 \*\* 63|unsupported range|negative|copies of zero or more|"
    r"is invalid for input of size|invalid shape dimension|expected (a multiple of|channels that are|output_size of)"
)


def too_large(call):
    """Assert that a call is refused as something that is too large, and that nothing is made before."""
    before = lucid.cuda.memory_allocated() if DEVICE == "cuda" else 0
    if DEVICE == "cuda":
        lucid.cuda.reset_peak_memory_stats()
    with traced() as memory, pytest.raises(RuntimeError, match=REFUSALS) as raised:
        call()
    assert isinstance(raised.value, ShapeError)
    assert memory.most < MOST_MADE
    if DEVICE == "cuda":
        assert lucid.cuda.max_memory_allocated() - before < MOST_MADE


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", TO_SHAPE)
def test_a_shape_that_wraps_around(name, shape):
    """It is refused by whatever takes a shape, also where a size of zero leaves nothing to be made."""
    too_large(lambda: TO_SHAPE[name](*shape))


@pytest.mark.parametrize("name", TO_NUMBERS)
def test_numbers_that_wrap_around(name):
    """So is one that an op computes of numbers, or of operands that are large because they repeat one element."""
    for call in TO_NUMBERS[name]:
        too_large(call)


def test_every_op_with_sizes_is_tried():
    """A new op that is given sizes has its row here."""
    tried = {name.rpartition(".")[2] for name in (*TO_SHAPE, *TO_NUMBERS)}
    spaces = (lucid, F, lucid.fft, lucid.linalg, lucid.Tensor)
    lost = set()
    for space in spaces:
        for name in dir(space):
            function = getattr(space, name)
            if name.startswith("_") or not callable(function) or inspect.isclass(function):
                continue
            try:
                parameters = set(inspect.signature(function).parameters)
            except (TypeError, ValueError):
                continue
            if parameters & NAMED and name not in tried | NOT_LARGER:
                lost.add(name)
    assert lost == set()


def test_who_makes_cuda_arrays():
    """CuPy's own makers, which let sizes wrap around, are called by nobody but what looks at sizes before."""
    root = Path(lucid.__file__).parent
    made = re.compile(r"(cupy\(\)|\bcp|\bcupy)\.(empty|zeros|ones|full|broadcast_to|ndarray)\(")
    found = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if path.name != "gpu.py"  # the door, which names what it gives
        and "simulator" not in path.parts
        and made.search(text := path.read_text(encoding="utf-8"))
        and "cp = cupy_functions()" not in text
    }
    assert found == set()


@pytest.mark.parametrize(
    ("shape", "itemsize"), [((), 8), ((0,), 8), ((1 << 60,), 4), ((END - 1,), 1), ((0, 1 << 60), 4)]
)
def test_what_may_fit(shape, itemsize):
    """Anything below 2 ** 63 bytes is left to the memory that there is."""
    check_size("test", shape, itemsize)


def test_what_is_said():
    """Of a shape its bytes; of one size that it is too large, by an error of each of the types that PyTorch has."""
    with pytest.raises(ShapeError, match=r"^empty: a tensor of shape \[4294967296, 4294967296\] with elements of 4"):
        lucid.empty(HALF, HALF)
    for kind in (SizeError, TypeError, OverflowError, ValueError):
        with pytest.raises(kind, match=r"zeros: expected sizes below 2 \*\* 63, got 18446744073709551616"):
            lucid.zeros(1 << 64)


@pytest.mark.cpu("what memory there is")
def test_what_does_not_fit_into_memory():
    """NumPy's MemoryError is a RuntimeError too, as PyTorch's error is."""
    for call in (lambda: lucid.empty(1 << 62, dtype=lucid.int8), lambda: wide(1 << 60).clone()):
        with pytest.raises(OutOfMemoryError, match="the CPU has no room left"):
            call()


def test_a_view_of_repeated_elements_within_bounds():
    """A view may have more elements than memory, as long as its bytes can be counted."""
    x = wide(1 << 60)
    assert x.numel() == 1 << 60
    assert np.prod(x.stride()) == 0
