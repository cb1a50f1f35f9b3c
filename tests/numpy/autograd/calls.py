"""Functions to differentiate, of which the derivatives are known, and what results are compared as."""

import numpy as np

import lucid.numpy as lnp


def on_host(value):
    """Return a result that must not be recorded as an array of NumPy's."""
    assert not hasattr(value, "edge"), f"recorded: {value!r}"
    return np.asarray(value.get() if hasattr(value, "get") else value)


def equal(found, expected, rtol=1e-10):
    """Compare a result, which must be plain, with numbers."""
    np.testing.assert_allclose(on_host(found), expected, rtol=rtol, atol=1e-12)


def cubes(x):
    """Return a vector with the Jacobian ``3 x_j**2 + [j = k] x_k``, not symmetric in its parts."""
    return lnp.sum(x**3) + x**2 / 2 * lnp.asarray([1.0, 2.0, 3.0])


def jacobian_of_cubes(x):
    """Return the Jacobian of `cubes`."""
    return 3 * x**2 + np.diag(x * [1.0, 2.0, 3.0])


def product(x):
    """Return a number with the Hessian of `hessian_of_product`."""
    return x[0] ** 2 * x[1] + lnp.exp(x[2]) * x[0]


def gradient_of_product(x):
    """Return the gradient of `product`."""
    return np.array([2 * x[0] * x[1] + np.exp(x[2]), x[0] ** 2, np.exp(x[2]) * x[0]])


def hessian_of_product(x):
    """Return the Hessian of `product`."""
    e = np.exp(x[2])
    return np.array([[2 * x[1], 2 * x[0], e], [2 * x[0], 0, 0], [e, 0, e * x[0]]])
