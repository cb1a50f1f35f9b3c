"""What tests of kernels are made of: kernels of CuPy's, and tensors on the device."""

from __future__ import annotations

import lucid
from lucid.base import gpu

SCALE = """
extern "C" __global__ void scale(const float* x, float* y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] * x[i];
}
"""
KINDS = ("ElementwiseKernel", "ReductionKernel", "RawKernel", "RawModule", "compile", "fuse")


def elementwise(inputs, outputs, operation, name="wave", **settings):
    """Return an ElementwiseKernel."""
    return gpu.cupy().ElementwiseKernel(inputs, outputs, operation, name, **settings)


def reduction(inputs, mapped, after="y = a", reduced="a + b", name="total", outputs="T y", **settings):
    """Return a ReductionKernel."""
    return gpu.cupy().ReductionKernel(inputs, outputs, mapped, reduced, after, "0", name, **settings)


def raw(source=SCALE, name="scale", kind="RawKernel", of="float"):
    """Return a kernel of a source, of numbers of another type if need be."""
    text = source.replace("float", of)
    if kind == "RawKernel":
        return gpu.cupy().RawKernel(text, name)
    return gpu.cupy().RawModule(code=text).get_function(name) if kind == "RawModule" else lucid.cuda.compile(text)[name]


def drawn(rng, *shape, dtype="float64", requires_grad=True, low=0.2, high=0.9):
    """Return a tensor on the device of numbers that most functions are defined for."""
    values = lucid.tensor(rng.uniform(low, high, shape)).to(getattr(lucid, dtype)).cuda()
    return values.requires_grad_(requires_grad)


def is_right(f, *inputs):
    """Return whether first and second derivatives agree with differences."""
    inputs = tuple(x.detach().requires_grad_() if x.requires_grad else x for x in inputs)
    return lucid.autograd.gradcheck(f, inputs) and lucid.autograd.gradgradcheck(f, inputs)
