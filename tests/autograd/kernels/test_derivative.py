"""`lucid.cuda.derivative` as it is called: what it takes and refuses; and kernels that are not wrapped."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.base import gpu
from lucid.errors import ArgumentError, CudaUnavailableError, GraphError, KernelError, NotDifferentiableError
from lucid.tensor.interop import ExportError
from tests.autograd.kernels.making import SCALE, drawn, elementwise, raw, reduction
from tests.pieces import function_of, raising

derivative = lucid.cuda.derivative
REMEDY = r"use tensor.detach\(\) first; .*f = lucid.cuda.derivative\(kernel\)"


def test_without_a_device(monkeypatch):
    """The name is there without CUDA; a call says that there is none, and what to do."""
    monkeypatch.setattr(gpu, "cupy", raising(CudaUnavailableError("a CUDA device needs CuPy, which is not installed")))
    with pytest.raises(CudaUnavailableError, match="needs CuPy"):
        lucid.cuda.derivative(object(), x="g")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"writes": "y"}, r"derivative: writes: expected names, such as \(\"y\",\), got"),
        ({"writes": (1,)}, "derivative: writes: expected names"),
        ({"writes": None}, "derivative: writes: expected names"),
        ({"backward": 1}, "derivative: backward: expected a function or None, got"),
        ({"backward": print, "x": "g"}, r"expected either backward, or expressions \(x\), got both"),
        ({"x": 2.0}, "derivative: x: expected the text of an expression"),
        ({"x": ""}, "derivative: x: expected the text of an expression"),
        ({"x": "g; y = 2"}, "derivative: x: expected the text of an expression"),
        ({"x": "{ g }"}, "derivative: x: expected the text of an expression"),
        ({"x": "g\n#define x"}, "derivative: x: expected the text of an expression"),
    ],
)
def test_arguments_of_a_wrong_type(settings, said):
    """They are refused by name, whether there is a device or not."""
    with pytest.raises(ArgumentError, match=said):
        derivative(object(), **settings)


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", [None, "y = x", np.sin, lambda x: x])
def test_what_is_no_kernel(kernel):
    """What is none of the kinds is refused with their names; so is a ufunc of CuPy's."""
    for each in (kernel, gpu.cupy().sin):
        with pytest.raises(ArgumentError, match=r"derivative: kernel: expected a RawKernel, Elementwise.* got"):
            derivative(each)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"z": "g"}, "wave has no input 'z' that can have a gradient: it has x, a"),
        ({"y": "g"}, "wave has no input 'y' that can have a gradient: it has x, a"),
        ({"x": "g * k"}, r"wave: 'k' in the gradient of x, 'g \* k', is unknown: expected names among T, a, g, x, y"),
        ({"x": "g_y * a"}, "wave: 'g_y' in the gradient of x"),
        ({"writes": ("x",)}, "wave: writes names 'x': expected some of y"),
    ],
)
def test_names_that_are_unknown(settings, said):
    """Expressions are of inputs, and made of inputs, outputs and gradients: a wrong name is found at once."""
    with pytest.raises(KernelError, match=said):
        derivative(elementwise("T x, T a", "T y", "y = x * a"), **settings)


@pytest.mark.gpu
def test_a_long_operation():
    """One that is too long to be differentiated is refused with words, and not by a full stack."""
    with pytest.raises(NotDifferentiableError, match=r"wave: its derivative is not found: .* nested too deep"):
        derivative(elementwise("T x", "T y", f"y = {' + '.join(['x'] * 999)}"))
    text = " + ".join(["x"] * 20_000)
    with pytest.raises(NotDifferentiableError, match=r"wave: its derivative is not found: .*too long to be read"):
        derivative(elementwise("T x", "T y", f"y = {text}"))
    assert derivative(elementwise("T x", "T y", f"y = {text}"), x="g * 20000").gradients == {"x": "g * 20000"}


# ---- kernels that are not wrapped ----


def kernels():
    """Return a call of each kind of kernel with a tensor, by its name."""

    def plus(x):
        return gpu.cupy().exp(x) + x

    square, total = elementwise("T x", "T y", "y = x * x"), reduction("T x", "x")
    fused, out = gpu.cupy().fuse(plus), lucid.zeros(3, device="cuda")
    return {
        "ElementwiseKernel": square,
        "an output": lambda x: square(out, x),
        "ReductionKernel": total,
        "RawKernel": lambda x: raw()((1,), (32,), (x, out, np.float32(2), np.int32(3))),
        "RawModule": lambda x: raw(kind="RawModule")((1,), (32,), (x, out, np.float32(2), np.int32(3))),
        "fuse": fused,
        "compile": lambda x: lucid.cuda.compile(SCALE)["scale"](1, 32, (x, out, 2, 3)),
        "ufunc": gpu.cupy().sin,
    }


# CuPy's raw and reduction kernels take arrays of its own alone; ufuncs are recorded, and what is made of them.
REFUSED = dict.fromkeys(("RawKernel", "RawModule", "ReductionKernel"), "Unsupported type .*Tensor")
RECORDED = {"fuse", "ufunc"}


@pytest.mark.gpu
@pytest.mark.parametrize("kind", list(kernels()) if lucid.cuda.is_available() else ["ElementwiseKernel"])
def test_no_kernel_detaches_in_silence(kind, rng):
    """One that is given a Tensor that requires grad records it, or raises; one that requires none is an array."""
    call = kernels()[kind]
    x = drawn(rng, 3, dtype="float32")
    if kind in REFUSED:
        for tensor in (x, x.detach()) if kind != "ReductionKernel" else (x,):
            with pytest.raises(TypeError, match=REFUSED[kind]):
                call(tensor)
        return
    if kind in RECORDED:
        assert call(x).requires_grad
        return
    with pytest.raises(ExportError, match=REMEDY):
        call(x)
    assert x.grad_fn is None
    call(x.detach())


@pytest.mark.gpu
def test_kernels_of_lucid_in_no_grad_and_functions(rng):
    """Where nothing is recorded, as in the forward of a Function, a kernel takes what requires grad."""
    kernel, out = lucid.cuda.compile(SCALE)["scale"], lucid.zeros(3, device="cuda")
    x = drawn(rng, 3, dtype="float32")
    with lucid.no_grad():
        kernel(1, 32, (x, out, 2, 3))
    np.testing.assert_allclose(out.cpu().numpy(), 2 * x.detach().cpu().numpy() ** 2, rtol=1e-6)

    def forward(ctx, x):
        ctx.save_for_backward(x)
        y = lucid.empty_like(x)
        kernel(1, 32, (x, y, 2, 3))
        return y

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        y = lucid.empty_like(x)
        kernel(1, 32, (x, y, 2, 3))
        return g * y * 2 / x

    Scale = function_of(forward, backward, name="Scale")

    (grad,) = lucid.autograd.grad(Scale.apply(x).sum(), x)
    assert grad.tolist() == pytest.approx((4 * x).tolist())
    with pytest.raises(GraphError, match=f"can't call the kernel scale on Tensor that requires grad: {REMEDY}"):
        lucid.autograd.grad(Scale.apply(x).sum(), x, create_graph=True)
