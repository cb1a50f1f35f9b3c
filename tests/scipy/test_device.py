"""`lucid.scipy` on a CUDA device: recorded calls and plain ones, against the same on the CPU."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

import lucid
from lucid import numpy as lnp
from lucid.base import gpu
from lucid.errors import DeviceError
from tests.gradients import is_floating, random_like
from tests.pieces.elsewhere import default_device
from tests.scipy.checks import Row, between, drawn, parts, values
from tests.scipy.test_table import ALL, FUNCTIONS, NAMES

pytestmark = pytest.mark.gpu

ON_THE_CPU = {"odeint"}
"""Functions that have no arrays on a device, and say so."""
FIRST = [
    (module, row)
    for (module, _), rows in FUNCTIONS.items()
    for row in (rows if module == "interpolate" else rows[:1])
    if row.name not in ON_THE_CPU
]
"""A call of each function, and each of those of objects, whose arrays meet numbers of the host in every method."""


def recorded(row, module, arrays, device, upstream, default):
    """Return the results of a call and its gradients, on a device, under a default one."""
    with default_device(default):
        leaves = [lucid.tensor(array, device=device, requires_grad=True) for array in arrays]
        results = [each for each in parts(row.call(module, *leaves)) if isinstance(each, lucid.Tensor)]
        if not upstream:
            upstream += [random_like(np.random.default_rng(0), values(each)) for each in results]
        seeds = [lucid.tensor(each, device=device) for each in upstream]
        grads = lucid.autograd.grad(results, leaves, seeds, allow_unused=True)
    return [*results, *[each for each in grads if each is not None]]


@pytest.mark.parametrize(("name", "row"), FIRST, ids=[f"{name}.{row.name}" for name, row in FIRST])
def test_what_is_recorded(name, row, rng):
    """Values and gradients are those of the CPU, and lie on the device."""
    module, arrays, upstream = import_module(f"lucid.scipy.{name}"), drawn(row, rng), []
    expected = recorded(row, module, arrays, "cpu", upstream, "cpu")
    for x, y in zip(expected, recorded(row, module, arrays, "cuda", upstream, "cuda"), strict=True):
        assert y.device.type == "cuda"
        assert x.dtype == y.dtype
        np.testing.assert_allclose(values(y), values(x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("name", "row"), ALL, ids=NAMES)
def test_the_cpu_beside_another_default(name, row, rng):
    """Of operands on the CPU results are there, whatever the default device: constants lie beside the operands."""
    module, arrays, upstream = import_module(f"lucid.scipy.{name}"), drawn(row, rng), []
    expected = recorded(row, module, arrays, "cpu", upstream, "cpu")
    for x, y in zip(expected, recorded(row, module, arrays, "cpu", upstream, "cuda"), strict=True):
        assert y.device.type == "cpu"
        np.testing.assert_array_equal(values(y), values(x))


GIVEN = {
    "integrate": (
        lambda l, y: l.cumulative_simpson(y, initial=2.0),
        lambda l, y: l.cumulative_simpson([y, y], axis=0, initial=[[2.0] * 5]),
        lambda l, y: l.trapezoid(y, dx=[0.5, 1.0, 0.5, 1.0]),
        lambda l, y: l.cumulative_trapezoid(y, dx=[0.5, 1.0, 0.5, 1.0], initial=0),
    ),
    "interpolate": (
        lambda l, y: l.make_interp_spline(range(5), y, 3, [0] * 4 + [2] + [4] * 4)([0.3, 1.2]),
        lambda l, y: l.RegularGridInterpolator((range(5),), y)(([0.3, 1.2],)),
        lambda l, y: l.RegularGridInterpolator((range(2), range(5)), [y, y * y])((0.3, [1.2, 0.5])),
        lambda l, y: l.interpn((range(2), range(5)), [y, y * y], (0.3, 1.2)),
    ),
    "ndimage": (lambda l, y: l.affine_transform(y, [0.5], offset=[0.2]),),
    "special": (
        lambda l, y: l.jvp([0, 1, 2, 3, 4], y),
        lambda l, y: l.kvp([0.5, 1, 2, 3, 4], y, 2),
        lambda l, y: l.logsumexp(y, b=[1, 2, 1, 1, 3]),
        lambda l, y: l.polygamma([0, 1, 2, 1, 0], y),
    ),
}


@pytest.mark.parametrize(
    ("name", "call"),
    [(name, call) for name, calls in GIVEN.items() for call in calls],
    ids=lambda x: "" if callable(x) else x,
)
def test_lists_and_numbers_come_to_the_device(name, call, rng):
    """What is given beside an array on a device as a list or a number of Python's moves there by itself."""
    row, upstream = Row(name, call, (between(1, 2, 5),)), []
    module, arrays = import_module(f"lucid.scipy.{name}"), drawn(row, rng)
    expected = recorded(row, module, arrays, "cpu", upstream, "cpu")
    np.testing.assert_allclose(values(expected[0]), call(import_module(f"scipy.{name}"), *arrays), rtol=1e-9)
    for x, y in zip(expected, recorded(row, module, arrays, "cuda", upstream, "cpu"), strict=True):
        assert y.device.type == "cuda"
        np.testing.assert_allclose(values(y), values(x), rtol=1e-9, atol=1e-9)


PLAIN = {
    "fft": ("dct", "fft"), "integrate": ("simpson",), "interpolate": ("CubicSpline",), "linalg": ("cho_solve",),
    "ndimage": ("gaussian_filter", "map_coordinates"), "signal": ("fftconvolve", "detrend"),
    "special": ("gammaln", "logsumexp"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "row"), [(n, row) for n, row in FIRST if row.name in PLAIN[n]], ids=lambda x: getattr(x, "name", x)
)
def test_what_is_not_recorded(name, row, rng):
    """A call of plain arrays on a device is CuPy's, or the rule's where CuPy has none, and lies on the device."""
    arrays = drawn(row, rng)
    expected = parts(row.call(import_module(f"scipy.{name}"), *arrays))
    results = parts(
        row.call(import_module(f"lucid.scipy.{name}"), *[lnp.array(each, device="cuda") for each in arrays])
    )
    for one, other in zip(results, expected, strict=True):
        assert gpu.is_gpu_array(one)
        assert is_floating(one)
        np.testing.assert_allclose(one.get(), other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "row"), [(n, row) for n, row in FIRST if len(row.arrays) > 1], ids=lambda x: getattr(x, "name", x)
)
def test_two_devices(name, row, rng):
    """Operands on two devices are refused as such, whichever comes first, and not by an error of CuPy's."""
    module, arrays = import_module(f"lucid.scipy.{name}"), drawn(row, rng)
    for devices in (("cuda", "cpu"), ("cpu", "cuda")):
        operands = [lucid.tensor(array, requires_grad=True, device=devices[k > 0]) for k, array in enumerate(arrays)]
        with pytest.raises(DeviceError, match=r"one device|same device"):
            row.call(module, *operands)


def test_what_has_no_arrays_on_a_device(rng):
    """Functions that compute on the CPU alone say so, whichever of their arrays lies on a device."""
    for name, row in ALL:
        if row.name in ON_THE_CPU:
            arrays = drawn(row, rng)
            for k in range(len(arrays)):
                places = ["cuda" if i == k else "cpu" for i in range(len(arrays))]
                given = [lucid.tensor(x, device=where, requires_grad=True) for x, where in zip(arrays, places)]
                with pytest.raises(DeviceError, match=r"runs on the CPU, got an array on a CUDA device: .*\.cpu\(\)"):
                    row.call(import_module(f"lucid.scipy.{name}"), *given)
