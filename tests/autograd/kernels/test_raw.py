"""Kernels launched by grid and block, of CuPy's and of lucid.cuda.compile: what they write is the result."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import (
    ArgumentError,
    DeviceError,
    DtypeError,
    InplaceError,
    KernelError,
    NotDifferentiableError,
    ShapeError,
)  # fmt: skip
from tests.autograd.kernels.making import drawn, is_right, raw

pytestmark = pytest.mark.gpu
derivative = lucid.cuda.derivative
KINDS = ("RawKernel", "RawModule", "compile")
ADD = """
template <typename T>
__global__ void add(const T* __restrict__ x, T* y, T a, long long n) {
    for (long long i = threadIdx.x; i < n; i += blockDim.x) y[i] += a * sin(x[i]);
}
"""
SPLIT = """
extern "C" __global__ void split(const double* x, double *s, double c[], unsigned int n) {
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) { s[i] = sin(x[i]); c[i] = cos(x[i]); }
}
"""
ROWS = """
extern "C" __global__ void rows(const double* x, double* y, int n) {
    double total = 0;
    for (int i = 0; i < n; ++i) total += x[threadIdx.x * n + i];
    y[threadIdx.x] = total;
}
"""


def scaled(f, x, a=3.0):
    """Return what `scale` writes into a fresh tensor."""
    y = lucid.empty(x.shape, dtype=x.dtype, device="cuda")
    assert f(1, (32,), (x, y, a, x.numel())) is y
    return y


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("of", ["float", "double"])
def test_the_written_tensor_is_the_result(kind, of, rng):
    """It is the tensor that was given, changed in place and recorded; numbers become what the kernel declares."""
    f = derivative(raw(kind=kind, of=of), x="g * 2 * a * x", writes=("y",))
    x = drawn(rng, 2, 5, dtype="float32" if of == "float" else "float64")
    y = lucid.empty(2, 5, dtype=x.dtype, device="cuda")
    version = y._version
    assert f((1,), (32,), (x, y, 3, np.int64(10))) is y
    assert (y.requires_grad, y._version, type(y.grad_fn).__name__) == (True, version + 1, "scaleBackward")
    np.testing.assert_allclose(y.detach().cpu().numpy(), 3 * x.detach().cpu().numpy() ** 2, rtol=1e-6)
    np.testing.assert_allclose(
        lucid.autograd.grad(y.sum(), x)[0].cpu().numpy(), 6 * x.detach().cpu().numpy(), rtol=1e-6
    )
    if of == "double":
        assert is_right(lambda x: scaled(f, x), x)


@pytest.mark.parametrize("kind", ["RawKernel", "compile"])
def test_a_kernel_that_adds(kind, rng):
    """What a written tensor held gets the gradient of an expression under its name."""
    if kind == "compile":
        kernel = lucid.cuda.compile(ADD)["add<double>"]
    else:
        kernel = raw(
            ADD.replace("template <typename T>", 'extern "C"').replace("T*", "double*").replace("T a", "double a"),
            "add",
        )
    f = derivative(kernel, x="g * a * cos(x)", y="g", writes=("y",))
    x, y = drawn(rng, 4), drawn(rng, 4)
    assert is_right(lambda x, y: f(1, 32, (x, y * 1, 0.5, 4)), x, y)
    without = derivative(kernel, x="g * a * cos(x)", writes=("y",))
    with pytest.raises(
        NotDifferentiableError, match=r'the tensor given for y .*: "0" where what it held is lost, "g" where'
    ):
        without(1, 32, (x, y * 1, 0.5, 4))
    with pytest.raises(InplaceError, match="leaf"):
        f(1, 32, (x, y, 0.5, 4))


def test_several_written_tensors(rng):
    """Several results come in the order of the source, whatever `writes` says; expressions may read them."""
    f = derivative(raw(SPLIT, "split"), x="g_s * c - g_c * s", writes=("c", "s"))
    x = drawn(rng, 3)

    def call(x):
        return f(1, 32, (x, *(lucid.empty(3, dtype=x.dtype, device="cuda") for _ in range(2)), 3))

    s, c = call(x)
    assert (s - x.sin()).abs().max().item() < 1e-15
    assert (c - x.cos()).abs().max().item() < 1e-15
    assert is_right(call, x)


@pytest.mark.parametrize("form", ["dict", "tuple", "list"])
def test_a_function_for_backward(form, rng):
    """Any derivative can be a function, of gradients and arguments, which is recorded in its turn."""

    def back(g, args):
        _, y, n = args
        assert (y.shape, n) == ((2,), 3)
        grad = g.unsqueeze(1).expand(2, 3)
        return {"dict": {"x": grad}, "tuple": (grad, None, None), "list": [grad, None, None]}[form]

    f = derivative(raw(ROWS, "rows"), writes=("y",), backward=back)
    assert f.gradients == {}
    assert is_right(lambda x: f(1, 2, (x, lucid.empty(2, dtype=x.dtype, device="cuda"), 3)) ** 2, drawn(rng, 2, 3))


def test_what_a_function_gives_is_looked_at(rng):
    """A wrong number of gradients, and a name that is no argument's, are refused."""
    x = drawn(rng, 3, dtype="float32")
    for given, said in (({"z": x}, "scale: backward gave a gradient of z: expected names among x, y, a, n"),
                        ((x,), "scale: backward gave 1 gradients: expected one for each of x, y, a, n")):  # fmt: skip
        f = derivative(raw(), writes=("y",), backward=lambda g, args, given=given: given)
        with pytest.raises(KernelError, match=said):
            scaled(f, x).sum().backward()


def test_what_changes_later_is_found(rng):
    """Inputs and results that backward reads may not be changed in place in between."""
    x = drawn(rng, 3, dtype="float32", requires_grad=False)
    w = drawn(rng, 3, dtype="float32")
    for text, changed in (("g * 2 * a * x", "x"), ("g * 2 * y / x", "y")):
        f = derivative(raw(), x=text, writes=("y",))
        z = w * 1
        y = scaled(f, z)
        loss = y.sum()
        {"x": z, "y": y}[changed].add_(x)
        with pytest.raises(InplaceError, match=r"scaleBackward: one of the variables needed .* inplace"):
            loss.backward()


# ---- what is refused when the kernel is wrapped ----


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"x": "g"}, KernelError, r"scale: y may be written to, .* name it, writes=\('y',\), or declare it const"),
        ({"x": "g", "writes": ("x",)}, KernelError, "writes names 'x', a parameter that is const or no pointer: .* y"),
        ({"x": "g", "writes": ("n",)}, KernelError, "writes names 'n', a parameter that is const or no pointer"),
        ({"x": "g", "writes": ("z",)}, KernelError, "scale: writes names 'z', no parameter of it: expected some of y"),
        ({"writes": ("y",)}, ArgumentError, r'derivative of a raw kernel is not found by itself: .*x="g \* ..."'),
        (
            {"a": "g", "writes": ("y",)},
            KernelError,
            "scale: a is a number, and only arrays have gradients|no input 'a'",
        ),
        ({"z": "g", "writes": ("y",)}, KernelError, "z"),
        ({"x": "g * k", "writes": ("y",)}, KernelError, "scale: 'k' in the gradient of x, 'g . k', is unknown"),
    ],
)
def test_wrong_declarations(kind, settings, error, said):
    """What is written and what has a gradient is compared with the source."""
    with pytest.raises(error, match=said):
        derivative(raw(kind=kind), **settings)


def test_sources_that_are_not_read():
    """A kernel without a result, or whose parameters are not found in its text, is refused with the reason."""
    with pytest.raises(KernelError, match="look writes to none of its parameters"):
        derivative(raw('extern "C" __global__ void look(const float* x) {}', "look"), x="g")
    hidden = '#define KERNEL extern "C" __global__ void\nKERNEL f(const float* x, float* y) {}'
    with pytest.raises(KernelError, match=r"f: its parameters cannot be read from its source: .*has no kernel 'f'"):
        derivative(raw(hidden, "f"), x="g", writes=("y",))


# ---- calls that cannot be ----


def test_wrong_calls(rng):
    """Arguments are compared with the parameters before the launch, and nothing has changed where one does not fit."""
    f = derivative(raw(), x="g * 2 * a * x", writes=("y",))
    x, y = drawn(rng, 3, dtype="float32"), lucid.zeros(3, device="cuda")
    for args, error, said in (
        ((x, y, 1.0), ArgumentError, r"scale: args: expected a tuple of 4 \(x, y, a, n\), got 3"),
        (x, ArgumentError, "scale: args: expected a tuple of 4 .* got Tensor"),
        ((x.double(), y, 1.0, 3), DtypeError, r"scale: float\* x points to float32, got an array of float64"),
        ((x, y, "a", 3), ArgumentError, "scale: a: expected a CUDA tensor, an array or a number, got str"),
        ((x, y, 1.0, 2.5), DtypeError, "scale: int n needs a number, got float 2.5"),
        ((x, y, 1.0, 2**31), DtypeError, "scale: int n holds"),
        ((x.cpu(), y, 1.0, 3), DeviceError, "scale: x is a tensor on the CPU"),
        ((x, y.cpu(), 1.0, 3), DeviceError, "scale: y is a tensor on the CPU"),
        ((x, 0, 1.0, 3), ArgumentError, "scale: y is written to: expected a CUDA tensor, got 0"),
        ((x, None, 1.0, 3), ArgumentError, "scale: y is written to: expected a CUDA tensor, got None"),
        ((x.expand(2, 3).T, lucid.zeros(3, 2, device="cuda"), 1.0, 6), KernelError, "x got an array that is not"),
        ((x, lucid.zeros(1, device="cuda").expand(3), 1.0, 3), InplaceError, "shares read-only or broadcast memory"),
        ((x, lucid.zeros(4, device="cuda"), 1.0, 3), ShapeError, r"x has the shape \(3,\), y has the shape \(4,\)"),
    ):  # fmt: skip
        with pytest.raises(error, match=said):
            f(1, 32, args)
    with pytest.raises(ArgumentError, match="scale: these arguments do not fit"):
        f("a", 32, (x, y, 1.0, 3))
    assert (y.tolist(), y._version) == ([0.0] * 3, 0)
    assert f(np.int64(1), [32], (x, y, 1.0, 3)) is y


def test_an_array_of_cupy_as_a_result(rng):
    """It cannot carry a graph: it is written to where nothing is recorded, and refused where something would be."""
    f = derivative(raw(), x="g * 2 * a * x", writes=("y",))
    x, y = drawn(rng, 3, dtype="float32"), lucid.zeros(3, device="cuda").array
    with pytest.raises(lucid.errors.GraphError, match=r"scale: y is an array of CuPy's, which cannot carry the graph"):
        f(1, 32, (x, y, 1.0, 3))
    assert y.tolist() == [0.0] * 3
    with lucid.no_grad():
        f(1, 32, (x, y, 1.0, 3))
    np.testing.assert_allclose(y.get(), x.detach().cpu().numpy() ** 2, rtol=1e-6)


def test_shared_memory(rng):
    """What is written may not share memory with what backward reads, nor with another written tensor."""
    f = derivative(raw(), x="g * 2 * a * x", y="0", writes=("y",))
    whole = drawn(rng, 6, dtype="float32", requires_grad=False)
    w = drawn(rng, 6, dtype="float32")
    x = w * whole
    for written in (x, x[:], x[0:6].view(2, 3).view(6)):
        with pytest.raises(InplaceError, match="scale: y, which is written to, shares memory with x, whose values"):
            f(1, 32, (x, written, 1.0, 6))
    g = derivative(raw(SPLIT, "split"), x="g_s * c", writes=("s", "c"))
    y = lucid.empty(3, dtype=lucid.float64, device="cuda")
    with pytest.raises(InplaceError, match="s, which is written to, shares memory with c, which is written to as well"):
        g(1, 32, (drawn(rng, 3), y, y, 3))


def test_a_view_is_written_to(rng):
    """A part of a tensor may be written to: the whole is on the graph from then on."""
    f = derivative(raw(of="double"), x="g * 2 * a * x", writes=("y",))

    def call(x):
        whole = lucid.zeros(2, 3, dtype=x.dtype, device="cuda")
        f(1, 32, (x, whole[1], 2.0, 3))
        return whole

    assert is_right(call, drawn(rng, 3))
