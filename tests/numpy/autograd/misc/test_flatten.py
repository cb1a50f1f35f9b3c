"""Nested containers as vectors, and back."""

from typing import NamedTuple

import numpy as np
import pytest

import lucid.numpy as lnp
from lucid.errors import ShapeError
from lucid.numpy.autograd import grad
from lucid.numpy.autograd.misc.flatten import flatten, flatten_func
from lucid.numpy.autograd.misc.optimizers import sgd
from tests.numpy.autograd.calls import equal, on_host

VALUE = (1.0, np.arange(6.0).reshape(2, 3), [np.ones((1, 2)), {"y": 2.0, "x": np.zeros(0)}, ()])


def test_numbers_come_in_order_and_go_back():
    """Dictionaries by their keys; shapes, containers and empty parts come back."""
    flat, unflatten = flatten(VALUE)
    equal(flat, [1, 0, 1, 2, 3, 4, 5, 1, 1, 2])
    back = unflatten(flat)
    assert type(back) is tuple
    assert (on_host(back[1]).shape, list(back[2][1]), back[2][2]) == ((2, 3), ["x", "y"], ())
    equal(flatten(back)[0], on_host(flat))
    with pytest.raises(ShapeError, match="expected an array of shape"):
        unflatten(flat[1:])


class Layer(NamedTuple):
    w: object
    b: object


def test_named_tuples_keep_their_names():
    """So that optimizers give the gradient of parameters in the form of these."""
    start = Layer(np.array([1.0, 2.0]), [3.0])
    back = flatten(start)[1](np.arange(3.0))
    assert type(back) is Layer
    equal(back.w, [0.0, 1.0])
    found = sgd(lambda p, i: Layer(2 * p.w, [p.b[0]]), start, num_iters=1, step_size=1.0, mass=0.0)
    equal(found.w, [-1.0, -2.0])
    equal(found.b[0], 0.0)


def test_it_is_differentiated_both_ways():
    """Vectors of recorded parts are recorded, and so are parts of recorded vectors."""
    equal(grad(lambda x: lnp.sum(flatten([x, {"a": x * x}])[0]))(3.0), 7.0)
    flat, unflatten = flatten([1.0, np.ones(2)])
    equal(grad(lambda v: lnp.sum(unflatten(v)[1] ** 2))(flat), [0, 2, 2])
    doubled, _, start = flatten_func(lambda p: {"a": 2 * p[0], "b": p[1] ** 2}, [1.0, np.ones(2)])
    equal(grad(lambda v: lnp.sum(doubled(v)))(start), [2, 2, 2])


def test_real_parts_of_complex_vectors_stay_real():
    """Mixed numbers come to complex ones, of which each part takes what it was."""
    flat, unflatten = flatten([1.0, 2j])
    assert on_host(flat).dtype == np.complex128
    back = unflatten(flat)
    assert (on_host(back[0]).dtype, on_host(back[1]).dtype) == (np.float64, np.complex128)
