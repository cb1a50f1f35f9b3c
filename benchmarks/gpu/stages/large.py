"""Sizes that fill the chip, odd ones too, forward and backward, against float64.

The reference is PyTorch's on the device. Where PyTorch is not there, it is lucid's on the CPU, which shares no kernel
with the device.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.gpu import device
from benchmarks.gpu.rows import Group, Row, Stage, working

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.gpu.rows import Scope, Setting

    Shape = tuple[int, ...]

# Largest error of an output or gradient: of its norm, and WORST times as much of an element beside the largest.
BOUNDS = {"float32": 1e-4, "bfloat16": 2e-2, "float16": 3e-3}
WORST = 4
PROCESSES = 4


@dataclass(frozen=True)
class Case:
    """A function of the library's `nn.functional` and tensors; `scale` is the deviation of what goes in."""

    name: str
    call: Callable[..., Any]
    shapes: tuple[Shape, ...]
    scale: float = 1.0


def normalised(name: str) -> Callable[..., Any]:
    """Return a normalisation over the last dimension, whose length is that of its weight."""
    return lambda f, x, *parameters: getattr(f, name)(x, parameters[0].shape, *parameters)


def attention(*, causal: bool) -> Callable[..., Any]:
    """Return attention of queries, keys and values."""
    return lambda f, *heads: f.scaled_dot_product_attention(*heads, is_causal=causal)


SQUARE, ODD = (4096, 4096), (4099, 4097)
CASES = [
    Case("add", lambda _, a, b: a + b, (SQUARE, SQUARE)),
    Case("add, odd, broadcast", lambda _, a, b: a + b, (ODD, ODD[1:])),
    Case("add, transposed", lambda _, a, b: a.transpose(0, 1) + b, ((3001, 2003), (2003, 3001))),
    Case("slice", lambda _, a: a[1:, 3:-1] * 2, (ODD,)),
    Case("chain of products", lambda _, a, b: (a * b).tanh() * a.sigmoid(), ((2048, 2048),) * 2),
    Case("gelu", lambda f, a: f.gelu(a), (SQUARE,)),
    Case("gelu, tanh", lambda f, a: f.gelu(a, approximate="tanh"), (SQUARE,)),
    Case("silu", lambda f, a: f.silu(a), (SQUARE,)),
    Case("sum of all", lambda _, a: a.sum(), (SQUARE,)),
    Case("sum of rows", lambda _, a: a.sum(1), (SQUARE,)),
    Case("sum of columns", lambda _, a: a.sum(0), (ODD,)),
    Case("sum in the middle", lambda _, a: a.sum(1), ((64, 513, 257),)),
    Case("variance", lambda _, a: a.var(1), (SQUARE,)),
    Case("maximum of rows", lambda _, a: a.amax(1), (SQUARE,)),
    Case("logsumexp", lambda _, a: a.logsumexp(1), (SQUARE,)),
    Case("cumulative sum", lambda _, a: a.cumsum(1), ((1024, 4097),)),
    Case("softmax", lambda f, a: f.softmax(a, -1), (SQUARE,)),
    Case("softmax of long rows", lambda f, a: f.softmax(a, -1), ((64, 65537),)),
    Case("softmax of columns", lambda f, a: f.softmax(a, 0), ((4096, 1025),)),
    Case("log-softmax", lambda f, a: f.log_softmax(a, -1), ((256, 50257),)),
    Case("layer norm", normalised("layer_norm"), ((8192, 1024), (1024,), (1024,))),
    Case("layer norm of long rows", normalised("layer_norm"), ((512, 12289), (12289,), (12289,))),
    Case("rms norm", normalised("rms_norm"), ((2048, 4096), (4096,))),
    Case("group norm", lambda f, a: f.group_norm(a, 8), ((32, 64, 64, 64),)),
    Case("batch norm", lambda f, a, w, b: f.batch_norm(a, None, None, w, b, True), ((128, 16, 57, 57), (16,), (16,))),
    Case("max pooling", lambda f, a: f.max_pool2d(a, 3, 2, 1), ((64, 64, 57, 57),)),
    Case("matmul", lambda _, a, b: a @ b, ((2048, 4096), (4096, 1537)), 0.1),
    Case("products of a stack", lambda _, a, b: a @ b.transpose(-2, -1), ((8, 12, 512, 64),) * 2, 0.5),
    Case("linear", lambda f, a, w, b: f.linear(a, w, b), ((4096, 1024), (3072, 1024), (3072,)), 0.1),
    Case("convolution", lambda f, a, w: f.conv2d(a, w, padding=1), ((16, 64, 64, 64), (128, 64, 3, 3)), 0.1),
    Case("convolution, stride 2", lambda f, a, w: f.conv2d(a, w, stride=2), ((16, 3, 225, 223), (64, 3, 7, 7)), 0.1),
    Case("attention, causal", attention(causal=True), ((8, 8, 1024, 64),) * 3),
    Case("attention, odd", attention(causal=False), ((16, 12, 333, 40),) * 3),
]  # fmt: skip


def small(shape: Shape) -> Shape:
    """Return a shape that a simulated device is through with soon."""
    most = 64 if len(shape) < 4 else 16
    return tuple(min(size, most) for size in shape)


def results(lib: Any, case: Case, tensors: list[Any], upstream: Callable[[Any], Any]) -> list[Any]:
    """Return the output and the gradients."""
    y = case.call(lib.nn.functional, *tensors)
    y.backward(upstream(y))
    return [y.detach(), *(tensor.grad for tensor in tensors)]


def compared(case: Case, dtype: str) -> dict[str, object]:
    """Return the errors of output and gradients, each as a share of the norm and of the largest element."""
    import lucid
    import cupy  # isort: skip - lucid may simulate the device

    rng = np.random.default_rng(zlib.crc32(case.name.encode()))
    shapes = tuple(map(small, case.shapes)) if device.simulated() else case.shapes
    arrays = [rng.standard_normal(shape, np.float32) * np.float32(case.scale) for shape in shapes]
    kept: list[Any] = []

    def draw(y: Any) -> Any:
        kept.append(rng.standard_normal(tuple(y.shape), np.float32))
        return lucid.tensor(kept[0], device="cuda").to(y.dtype)

    try:
        ours = [lucid.tensor(a, device="cuda").to(getattr(lucid, dtype)).requires_grad_() for a in arrays]
        got = results(lucid, case, ours, draw)
        lib, place = (torch, "cuda") if (torch := device.torch()) else (lucid, "cpu")

        def exact(array: Any) -> Any:
            return lib.tensor(array, device=place).to(getattr(lib, dtype)).to(lib.float64)

        theirs = [exact(a).requires_grad_() for a in arrays]
        expected = results(lib, case, theirs, lambda _: exact(kept[0]))
        errors = [
            error(cupy, one.to(lucid.float64).array, cupy.asarray(other if torch else other.numpy()))
            for one, other in zip(got, expected, strict=True)
        ]
        bound = BOUNDS[dtype]
        right = all(norm <= bound and worst <= WORST * bound for norm, worst in errors)
        megabytes = max(math.prod(shape) for shape in shapes) * 4 / 1e6
        return {"ok": right, "errors": errors, "bound": bound, "mb_of_float32": round(megabytes, 1)}
    finally:
        ours = theirs = got = expected = None
        device.free()


def error(cupy: Any, got: Any, expected: Any) -> tuple[float, float]:
    """Return the norm of a difference as a share of the norm, and its largest element as one of the largest."""
    if got.shape != expected.shape:
        raise AssertionError(f"shape {got.shape}, expected {expected.shape}")
    off = got - expected
    norms = [float(cupy.sqrt((x * x).sum())) for x in (off, expected)]
    most = [float(cupy.abs(x).max()) for x in (off, expected)]
    return tuple(float(f"{part / max(whole, 1e-30):.2e}") for part, whole in (norms, most))


def rows(_: Scope) -> Sequence[Row]:
    return [Row(f"{case.name}, {dtype}", partial(compared, case, dtype)) for case in CASES for dtype in BOUNDS]


def groups(setting: Setting) -> Sequence[Group]:
    return [Group("", min(PROCESSES, setting.processors))]


STAGE = Stage(working(rows), rehearsed=6, groups=groups)
