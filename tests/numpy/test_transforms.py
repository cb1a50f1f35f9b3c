"""Transforms of `numpy.fft`: half precision, axes that are named twice or not at all."""

import numpy as np
import pytest

import lucid
import lucid.numpy as lnp

ONE = "fft ifft rfft irfft hfft ihfft"
SEVERAL = "fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn"
NORMS = "", ", norm='ortho'", ", norm='forward'"
SIZES = "", ", 5", ", axis=0", ", 7, 0"
OF_HALVES = [
    *[f"{name}(x{given}{norm})" for name in ONE.split() for given in SIZES for norm in NORMS],
    *[f"{name}(x{given}{norm})" for name in SEVERAL.split() for given in ("", ", (3, 6), (1, 0)") for norm in NORMS],
    "irfftn(x, axes=[1])", "rfftn(x, axes=(-1,))", "fftn(x, axes=())",
]  # fmt: skip
AXES = [
    f"{name}(x, axes={axes})"
    for name in SEVERAL.split()
    for axes in ("(0, 0)", "(1, -1, 0)", "np.array([1])", "[0]", "None", "(0, -2)")
]
AXES += ["fftn(x, axes=())", "ifftn(x, [], [])", "fft2(x, axes=[])", "ifft2(x, axes=())"]
AXES += ["rfftn(x, (4, 6), (0, 0))", "irfft2(x, (-1, 6), (0, 0))", "fft2(x, (-1, 2), None)"]
AXES += [f"{name}(x, {axes})" for name in ("fftshift", "ifftshift") for axes in ("()", "[1]", "np.array([0, 1])", "1")]
REFUSED = [
    f"{name}(x, axes={axes})" for name in SEVERAL.split() for axes in ("0", "True", "np.int64(1)", "np.array(1)")
]
REFUSED += ["rfftn(x, axes=())", "irfft2(x, axes=[])", "fftn(x, (2,), (0, 1))", "fftshift(x, '0')"]


def both(call, values):
    """Return a transform of a recorded array, and of NumPy's."""
    x = lnp.asarray(lucid.tensor(values, requires_grad=True))
    return eval(f"np.fft.{call}", {"np": lnp, "x": x}), eval(f"np.fft.{call}", {"np": np, "x": values})


def test_of_half_precision_as_numpys(rng):
    """Real results are halves, and the factor by which NumPy multiplies has the rounding of half precision."""
    values = rng.uniform(1, 2, (3, 6)).astype(np.float16)
    for call in OF_HALVES:
        got, wanted = both(call, values)
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), call
        rtol = 2e-3 if wanted.dtype == np.float16 else 1e-6
        np.testing.assert_allclose(got.detach().cpu().numpy(), wanted, rtol=rtol, atol=rtol, err_msg=call)


@pytest.mark.filterwarnings("ignore:`axes` should not be `None`:DeprecationWarning")
def test_over_any_axes_as_numpys(rng):
    """Axes may be named twice, or not at all: over none NumPy's result is the array itself, real as it was."""
    values = rng.standard_normal((3, 4))
    for call in AXES:
        got, wanted = both(call, values)
        assert isinstance(got, lucid.Tensor), call
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), call
        np.testing.assert_allclose(got.detach().cpu().numpy(), wanted, rtol=1e-12, atol=1e-12, err_msg=call)


def test_axes_are_refused_as_by_numpy(rng):
    """One axis is no sequence of axes, and a transform to or from real numbers needs one."""
    x = lnp.asarray(lucid.tensor(rng.standard_normal((3, 4)), requires_grad=True))
    for call in REFUSED:
        with pytest.raises((TypeError, ValueError, IndexError)) as caught:
            eval(f"np.fft.{call}", {"np": np, "x": x.detach().cpu().numpy()})
        with pytest.raises(TypeError if isinstance(caught.value, TypeError) else (ValueError, IndexError)):
            eval(f"np.fft.{call}", {"np": lnp, "x": x})
