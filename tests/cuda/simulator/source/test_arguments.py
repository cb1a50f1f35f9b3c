"""Arguments of raw kernels are compared with the parameters that the source declares, which CUDA does not do."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

from lucid.base import gpu

pytestmark = pytest.mark.usefixtures("simulated")

CODE = """
extern "C" __global__ void f(const float* __restrict__ x, float a, int n, unsigned char* bytes) {}
template <class T> __global__ void g(T* x, double a) {}
"""
FLOAT, INT = np.float32(3), np.int32(4)


@pytest.fixture
def cupy():
    """Give CuPy, on device 0."""
    with gpu.use_device(0):
        yield gpu.cupy()


def launch(cupy, *args, name="f"):
    """Call the kernel, made by itself and by a module."""
    if name == "f":
        cupy.RawKernel(CODE, name)((1,), (1,), args)
    cupy.RawModule(code=CODE, name_expressions=["g<float>"]).get_function(name)((1,), (1,), args)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x, rest: (x, *rest[:2]), "f takes 4 arguments, got 3"),
        (lambda x, rest: (x, *rest, INT), "f takes 4 arguments, got 5"),
        (
            lambda x, rest: (x.astype(np.float64), *rest),
            "x, is an array of float64, and the parameter a pointer to float",
        ),
        (lambda x, rest: (x.astype(np.int32), *rest), "x, is an array of int32, and the parameter a pointer to float"),
        (lambda x, rest: (3.0, *rest), "x, is 3.0, and the parameter a pointer: pass an array"),
        (lambda x, rest: (x, 3.0, *rest[1:]), "a, is 3.0, 8 bytes of float64, and the parameter float32"),
        (lambda x, rest: (x, 3, *rest[1:]), "a, is 3, 8 bytes of int64, and the parameter float32"),
        (lambda x, rest: (x, x[0], *rest[1:]), "a, is an array, and the parameter a number of float32"),
        (lambda x, rest: (x, FLOAT, np.int16(4), x), "4), 2 bytes of int16, and the parameter int32"),
        (lambda x, rest: (x, FLOAT, True, x), "n, is True, 1 bytes of bool, and the parameter int32"),
        (lambda x, rest: (x, FLOAT, FLOAT, x), "4 bytes of float32, and the parameter int32"),
    ],
)
def test_what_a_kernel_cannot_mean(cupy, change, words):
    """It is refused with its place, its name, and what to pass."""
    x = cupy.zeros(4, np.float32)
    with pytest.raises(TypeError, match=re.escape(words)):
        launch(cupy, *change(x, (FLOAT, INT, x)))


def test_what_it_may_mean(cupy):
    """Integers that CuPy makes long enough, bytes, parts of complex numbers, and memory as it is, pass in silence."""
    x = cupy.zeros((4, 6), np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for first in (x, x.T, x.data, x.data.ptr, x.view(np.uint8), x.astype(np.complex64), x[1:3]):
            launch(cupy, first, FLOAT, 4, x)
        launch(cupy, x, FLOAT, np.int64(4), x.astype(np.float64))
        launch(cupy, x[:, ::2], FLOAT, x.strides[0], x)  # whose strides the kernel knows


def test_views_whose_strides_a_kernel_does_not_know(cupy):
    """A kernel sees the memory and not the view, which a warning says."""
    x = cupy.zeros((4, 6), np.float32)
    with pytest.warns(RuntimeWarning, match=r"argument 1 of f, x, is a view of strides \(24, 8\), of which .* none"):
        launch(cupy, x[:, ::2], FLOAT, 3, x)


def test_kernels_that_are_templates(cupy):
    """Numbers are compared with the parameters that the instance has."""
    x = cupy.zeros(4, np.float32)
    launch(cupy, x, 3.0, name="g<float>")
    with pytest.raises(TypeError, match=r"argument 2 of g<float> is .*, 4 bytes of float32, and the parameter float64"):
        launch(cupy, x, FLOAT, name="g<float>")
