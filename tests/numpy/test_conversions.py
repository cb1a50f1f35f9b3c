"""What Python and NumPy make of a recorded array: values where they are asked for, never in silence."""

import array
import math
import re
import warnings

import numpy as np
import pytest

import lucid
from lucid import numpy as lnp
from tests.device import DEVICE


def recorded(value):
    """Return a recorded array."""
    return lnp.asarray(lucid.tensor(value, dtype=lucid.float64, requires_grad=True)) * 1.0


def whole(y, x):
    y[:] = x


def element(y, x):
    y[0] = x


def chained(y, x):
    y[0] = y[1] = x


def unpacked(y, x):
    y[1], y[0] = 1.0, x


def deeper(y, x):
    y.reshape(1, 3)[0, 2] = x


@pytest.mark.cpu("into arrays of NumPy's")
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
@pytest.mark.parametrize("write", [whole, element, chained, unpacked, deeper])
def test_nothing_is_written_into_a_plain_array_in_silence(write, dtype):
    """It would be a number without a gradient: that is refused, and the array stays what it was."""
    y = np.zeros(3, dtype)
    with pytest.raises((TypeError, ValueError, RuntimeError)) as raised:
        write(y, recorded(2.0))
    # NumPy puts words of its own in front
    assert re.search("requires? grad", f"{raised.value} {raised.value.__cause__}")
    assert not y[0]
    assert not y[2]
    with lucid.no_grad():
        write(y, recorded(2.0))
    assert np.count_nonzero(y) >= 1


@pytest.mark.parametrize("convert", [float, complex, math.sin, math.sqrt])
def test_a_number_would_lose_the_gradient(convert):
    """What Python makes a number of is refused by name; a whole number, a bool, `item` and a format are plain."""
    x = recorded(2.0)
    with pytest.raises(TypeError, match=r"\(x\): x requires grad, .* x\.item\(\) is its number"):
        convert(x)
    with lucid.no_grad():
        assert convert(x) == convert(2.0)
    assert (int(x), bool(x), x.item(), f"{x:.1f}") == (2, True, 2.0, "2.0")


NUMBERS = {
    "float": float,
    "complex": complex,
    "math.sin": math.sin,
    "math.hypot": lambda x: math.hypot(x, 1.0),
    "%f": lambda x: "%f" % x,  # noqa: UP031 - what is asked about
    "element": lambda x: np.zeros(2).__setitem__(0, x),
    "complex element": lambda x: np.zeros(2, complex).__setitem__(0, x),
    "element of a matrix": lambda x: np.zeros((2, 2)).__setitem__((0, 1), x),
    "element of a masked array": lambda x: np.ma.zeros(2).__setitem__(0, x),
    "element of an array of Python's": lambda x: array.array("d", [0.0]).__setitem__(0, x),
    "fill": lambda x: np.zeros(2).fill(x),
    "flat": lambda x: np.zeros(2).flat.__setitem__(0, x),
    "float64": np.float64,
    "fromiter": lambda x: np.fromiter([x, x], float),
    "initial": lambda x: np.ones(2).sum(initial=x),
}
"""What makes a number of a tensor, and where."""


@pytest.mark.cpu("into arrays of NumPy's")
@pytest.mark.parametrize("make", NUMBERS.values(), ids=NUMBERS)
def test_no_gradient_is_lost_in_silence(make):
    """What a Tensor's number is made for has no gradient: that is warned of, as PyTorch does, and refused of an array.

    It is silent where no gradient is lost.
    """
    leaf = lucid.tensor(2.0, dtype=lucid.float64, requires_grad=True)
    for x in (leaf, leaf * 1.0, lucid.nn.Parameter(leaf.detach())):
        with pytest.warns(UserWarning, match=r"requires_grad=True to a number loses its gradient: .* x\.item\(\)"):
            make(x)
    with pytest.raises((TypeError, ValueError, RuntimeError)):
        make(recorded(2.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(leaf.detach())
        with lucid.no_grad():
            make(leaf)
        assert (leaf.item(), int(leaf), bool(leaf), f"{leaf:.1f}") == (2.0, 2, True, "2.0")


@pytest.mark.cpu("into arrays of NumPy's")
def test_what_to_do_is_said_where_parts_are_written():
    """The advice keeps the gradient: the array that is written into is recorded too, or parts are joined."""
    leaf = lucid.tensor([1.0, 2.0, 3.0], dtype=lucid.float64, requires_grad=True)
    for x in (leaf, recorded([1.0, 2.0, 3.0])):
        y = np.zeros(4)
        with pytest.raises(RuntimeError, match=r"requires grad: .* y = lucid\.numpy\.zeros\(n, like=x\) or"):
            y[1:] = x
    y = lnp.zeros(4, like=leaf)
    y[1:] = leaf
    (y * lnp.arange(4)).sum().backward()
    assert leaf.grad.tolist() == [1, 2, 3]


@pytest.mark.cpu("NumPy's assertions take NumPy's arrays")
def test_assertions_compare_values():
    """`testing` looks at the values of recorded arrays; functions that raise get what they were given."""
    x = lnp.asarray(lucid.tensor([1.0, 2.0], requires_grad=True))
    lnp.testing.assert_allclose(x, [1, 2])
    lnp.testing.assert_array_equal([x, x], np.array([[1, 2], [1, 2]]))
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        lnp.testing.assert_allclose(x, desired=np.array([1, 3]))
    lnp.testing.assert_raises(TypeError, lnp.roots, x)


def test_integers_of_recorded_numbers():
    """`math.floor` and its like give integers, as their slope is 0; other functions of `math` are refused."""
    x = recorded(-1.5)
    assert (math.floor(x), math.ceil(x), math.trunc(x), int(x), round(x)) == (-2, -1, -1, -1, -2)
    with pytest.raises(TypeError, match=r"np.sin\(x\) does, for math.sin\(x\)"):
        math.sin(x)


def test_values_and_gradients_are_those_of_the_elements(rng):
    """Arguments broadcast; branches, numbers and several results are those of each element."""
    values, other = rng.uniform(0.1, 2, (3, 1)), rng.uniform(0.1, 2, 4)
    first, second = lucid.tensor(values, requires_grad=True), lucid.tensor(other, requires_grad=True)

    @lnp.vectorize
    def both(a, b):
        return (a * lnp.sin(b) if a > b else a + b**2), math.floor(10 * a)

    made, floors = both(first, second)
    expected = np.where(values > other, values * np.sin(other), values + other**2)
    np.testing.assert_allclose(made.detach().cpu().numpy(), expected, rtol=1e-12)
    assert (floors == np.broadcast_to(np.floor(10 * values), (3, 4))).all()
    weights = rng.standard_normal((3, 4))
    lnp.sum(made * lnp.array(weights)).backward()
    of_first = (np.where(values > other, np.sin(other), 1) * weights).sum(1, keepdims=True)
    of_second = (np.where(values > other, values * np.cos(other), 2 * other) * weights).sum(0)
    np.testing.assert_allclose(first.grad.cpu().numpy(), of_first, rtol=1e-12)
    np.testing.assert_allclose(second.grad.cpu().numpy(), of_second, rtol=1e-12)


def test_of_numbers_and_dtypes():
    """A number gives a value; `otypes` names the dtype; what is plain is NumPy's own."""
    x = lnp.asarray(lucid.tensor(2.0, dtype=lucid.float64, requires_grad=True))
    doubled = lnp.vectorize(lambda v: v * 2)
    assert (doubled(x).ndim, doubled(x).item(), doubled(x).requires_grad) == (0, 4.0, True)
    assert lnp.vectorize(lambda v: v, otypes="f")(x[None]).dtype == np.float32
    assert type(doubled(np.ones(2))) is np.ndarray


def test_refusals():
    """What would need arguments apart from their elements is refused by name; no elements are NumPy's error."""
    x = lnp.asarray(lucid.tensor([1.0, 2.0], requires_grad=True))
    for function, call in (
        (lnp.vectorize(lambda v, k: v * k, excluded={1}), lambda f: f(x, 2)),
        (lnp.vectorize(np.sum, signature="(n)->()"), lambda f: f(x)),
        (lnp.vectorize(lambda v: v), lambda f: f(v=x)),
    ):
        with pytest.raises(TypeError, match=r"numpy.vectorize: .* given by place.*numpy.stack"):
            call(function)
    with lucid.no_grad():
        if DEVICE == "cpu":
            assert type(lnp.vectorize(lambda v: v * 2)(x)) is np.ndarray
            with pytest.raises(ValueError, match="size 0"):
                lnp.vectorize(lambda v: v)(x[:0])
        else:
            with pytest.raises(TypeError, match=r"on a device, .* use cupy\.vectorize"):
                lnp.vectorize(lambda v: v)(x)


def test_annotations_name_the_class():
    """``np.ndarray[tuple[int], np.dtype[float]]`` in a signature is NumPy's form."""
    assert lnp.ndarray[tuple[int], np.dtype[np.float64]].__origin__ is lnp.ndarray
