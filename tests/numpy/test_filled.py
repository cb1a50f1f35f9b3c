"""Arrays to be filled: made like a recorded one, they do not require grad until what does is written into them."""

import contextlib
import copy
import pickle

import numpy as np
import pytest

import lucid
from lucid import numpy as lnp
from lucid.autograd.graph import allow_mutation_on_saved_tensors
from lucid.errors import InplaceError
from lucid.numpy import border, results
from lucid.numpy.creation import CREATED
from lucid.numpy.writes import shares_memory
from lucid.scipy import interpolate, sparse
from tests.device import DEVICE
from tests.numpy.test_arrays import KEYS
from tests.pieces import in_threads
from tests.pieces.elsewhere import default_device
from tests.tensor.numpy_calls.samples import CALLS, OPERANDS

MAKERS = {
    "zeros": "np.zeros({shape}{like})", "ones": "np.ones({shape}, float{like})", "empty": "np.empty({shape}{like})",
    "full": "np.full({shape}, 2.5{like})", "array": "np.array(np.zeros({shape}).tolist(){like})",
    "list": "np.asarray(np.zeros({shape}).tolist(){like})",
}  # fmt: skip
LIKE = {
    "zeros_like": "np.zeros_like({x}, shape={shape})", "ones_like": "np.ones_like({x}, shape={shape})",
    "empty_like": "np.empty_like({x}, shape={shape})", "full_like": "np.full_like({x}, 0.5, shape={shape})",
}  # fmt: skip
WAYS = [
    *[(name, text.format(shape="{shape}", like=", like={x}"), False) for name, text in MAKERS.items()],
    *[(name, text, False) for name, text in LIKE.items()],
    *[(f"{name} in the block", text.format(shape="{shape}", like=""), True) for name, text in MAKERS.items()],
    *[(f"{name} of what is plain", text.replace("{x}", "np.zeros(2)"), True) for name, text in LIKE.items()],
]


def leaf_of(values):
    """Return a tensor that requires grad."""
    return lucid.tensor(values, requires_grad=True)


def made(text, shape, x):
    """Return an array that a maker makes, with numbers in it."""
    array = eval(text.format(shape=shape, x="x"), {"np": lnp, "x": x})
    array[...] = 0.5
    return array


@pytest.mark.parametrize(("text", "in_block"), [way[1:] for way in WAYS], ids=[way[0] for way in WAYS])
def test_an_array_is_filled(text, in_block, rng):
    """Rows, views of rows and sums are written in a loop: values and gradient are those of the parts put together."""
    values, weights = rng.standard_normal(4), rng.standard_normal((3, 4))
    leaf = leaf_of(values)
    x = lnp.asarray(leaf)

    def fill():
        y = made(text, (3, 4), x)
        assert type(y) is lnp.ndarray
        assert not y.requires_grad
        assert results.is_to_fill(y * 2 + 1)
        for k in range(3):
            row = y[k]
            row[1:] = lnp.sin(x[1:]) * k
            row += x
        y[2, 0] = x[3] ** 2
        lnp.sum(y * weights).backward()
        return y

    with allow_mutation_on_saved_tensors() if in_block else contextlib.nullcontext():
        y = fill()
    expected = 0.5 * (np.arange(4) == 0) + np.arange(3)[:, None] * np.sin(values) * (np.arange(4) > 0) + values
    expected[2, 0] = values[3] ** 2
    np.testing.assert_allclose(y.detach().cpu().numpy(), expected, rtol=1e-12)
    slopes = (np.arange(3)[:, None] * np.cos(values) * (np.arange(4) > 0) + 1) * weights
    slopes[2, 0] = 0
    gradient = slopes.sum(0)
    gradient[3] += weights[2, 0] * 2 * values[3]
    np.testing.assert_allclose(leaf.grad.cpu().numpy(), gradient, rtol=1e-12)


@pytest.mark.cpu("with arrays of NumPy's beside")
@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_each_index(key, rng):
    """What is written by an index has its gradient, and the rest keeps its numbers."""
    expected = np.zeros((3, 4, 5))
    part = rng.standard_normal(expected[key].shape)
    leaf = leaf_of(part)
    y = lnp.zeros((3, 4, 5), like=leaf)
    y[key] = leaf
    expected[key] = part
    np.testing.assert_array_equal(y.detach().numpy(), expected)
    weights = rng.standard_normal(expected.shape)
    lnp.sum(y * weights).backward()
    # of elements that are written twice the last one stays
    writer = np.full(expected.shape, -1)
    writer[key] = np.arange(part.size).reshape(part.shape)
    gradient = np.zeros(part.size)
    gradient[writer[writer >= 0]] = weights[writer >= 0]
    np.testing.assert_allclose(leaf.grad.numpy(), gradient.reshape(part.shape), rtol=1e-12)


VIEWS = [
    "y[1:, 2]", "y[::-1][0]", "y[None, :, ::2]", "y.T[1]", "y.reshape(-1)[:4]", "y.reshape(4, 3)[1]", "y.ravel()",
    "np.transpose(y)", "y.swapaxes(0, 1)[0]", "np.moveaxis(y, 0, -1)", "np.expand_dims(y, 0)", "y[1:2].squeeze()",
    "np.rollaxis(y, 1)", "next(iter(y))", "y.view()", "y.flat", "np.asarray(y)", "np.asanyarray(y)",
    "np.ascontiguousarray(y)[1]", "y.T.T[0][1:]", "np.array(y, copy=None)", "np.split(y, 3)[1]", "np.hsplit(y, 2)[0]",
    "np.vsplit(y, 3)[2]", "np.array_split(y, 2)[0]", "np.flip(y)", "np.flipud(y)", "np.fliplr(y)", "np.rot90(y)",
    "np.real(y)", "y.real", "np.atleast_1d(y)", "np.atleast_3d(y, [1.0])[0]", "np.permute_dims(y, (1, 0))", "y.mT",
    "np.matrix_transpose(y)", "np.require(y, requirements='C')", "np.asarray_chkfinite(y)", "np.unstack(y)[1]",
    "np.nan_to_num(y, copy=False)", "np.real_if_close(y)", "y[1, 2, ...]", "np.add(y, 0, out=y)", "np.squeeze(y[0])",
    "np.reshape(y.T, (12,), order='F')", "y.astype(float, copy=False)", "np.swapaxes(y, 0, 1)",
    "np.einsum('ij->ji', y)",
]  # fmt: skip
READ_ONLY = [
    "np.diagonal(y)", "y.diagonal(1)", "np.linalg.diagonal(y)", "np.broadcast_to(y, (2, 3, 4))",
    "np.lib.stride_tricks.sliding_window_view(y, 2, axis=0)", "np.broadcast_arrays(y, 0.0)[0]",
    *(["np.diag(y)"] if DEVICE == "cpu" else []),  # CuPy's is a copy
]  # fmt: skip


@pytest.mark.parametrize("view", VIEWS)
def test_what_is_written_into_a_view_is_in_the_array(view, rng):
    """A view of an array to be filled is one, too: the array requires grad, and its elements are those of the view."""
    values = np.zeros((3, 4))
    y = lnp.zeros_like(leaf_of(values))
    part, own = eval(view, {"np": lnp, "y": y}), eval(view.replace("y.flat", "y.reshape(-1)"), {"np": np, "y": values})
    new, weights = rng.standard_normal(own.shape), rng.standard_normal(values.shape)
    leaf = leaf_of(new)
    part[...] = leaf
    own[...] = new
    np.testing.assert_array_equal(y.detach().cpu().numpy(), values)
    lnp.sum(y * lnp.asarray(leaf_of(weights).detach())).backward()
    own[...] = 1
    values[...] = weights
    np.testing.assert_array_equal(leaf.grad.cpu().numpy(), own)


@pytest.mark.parametrize("view", [*VIEWS, *READ_ONLY])
def test_a_view_has_what_is_written_into_the_array(view, rng):
    """A view that was taken before has the new values, and their gradient."""
    values, new = np.zeros((3, 4)), rng.standard_normal((3, 4))
    y, leaf = lnp.zeros_like(leaf_of(values)), leaf_of(new)
    part, own = eval(view, {"np": lnp, "y": y}), eval(view.replace("y.flat", "y.reshape(-1)"), {"np": np, "y": values})
    y[:, 1:] = leaf[:, 1:]
    values[:, 1:] = new[:, 1:]
    np.testing.assert_array_equal(part.detach().cpu().numpy(), own)
    weights = rng.standard_normal(own.shape)
    lnp.sum(part * lnp.asarray(leaf_of(weights).detach())).backward()
    expected = np.zeros((3, 4))
    for place in np.ndindex(values.shape):
        if place[1]:
            values[...] = 0
            values[place] = 1
            expected[place] = np.sum(own * weights)
    np.testing.assert_allclose(leaf.grad.cpu().numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("view", [*VIEWS, "np.nditer(y, op_flags=['readwrite']).operands[0]", "np.asarray(y.detach())"])
@pytest.mark.parametrize("in_block", [True, False])
@pytest.mark.cpu("NumPy's own views")
def test_a_view_is_not_written_to_unseen(view, in_block):
    """What a gradient needs of the array is kept in the block, and missed outside, also where NumPy writes to it."""
    leaf = leaf_of(np.array([[1.0, 2.0, 3.0, 4.0]] * 3))

    def steps():
        y, loss = lnp.ones_like(leaf), 0
        part = eval(view, {"np": lnp, "y": y})
        for k in range(3):
            part[...] = k + 1.0
            loss = loss + lnp.sum(y * leaf)
        loss.backward()

    if in_block:
        with allow_mutation_on_saved_tensors():
            steps()
        touched = np.ones((3, 4))
        own = eval(view.replace("y.flat", "y.reshape(-1)").replace(".detach()", ""), {"np": np, "y": touched})
        own[...] = 2
        np.testing.assert_array_equal(leaf.grad.numpy(), 3 * touched)
    else:
        with pytest.raises(InplaceError):
            steps()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_no_result_takes_a_gradient_away(name, rng):
    """Of every function: what has memory of an array to be filled can be filled, too, or is refused by name."""
    like = leaf_of(np.zeros(2))
    for call in CALLS[name]:
        values = {key: draw(rng) for key, draw in OPERANDS.items()}
        operands = {key: lnp.array(value, like=like) if np.ndim(value) else value for key, value in values.items()}
        try:
            with np.errstate(all="ignore"):
                made = eval(call, {"np": lnp, **operands})
        except (TypeError, AttributeError):
            continue
        filled = [value for value in operands.values() if results.is_to_fill(value)]
        for result in made if isinstance(made, tuple | list) else [made]:
            assert results.is_to_fill(result) or not shares_memory(result, filled), call


@pytest.mark.parametrize("name", sorted(CREATED if DEVICE == "cpu" else CREATED - {"geomspace"}))  # CuPy has none
def test_every_function_that_makes_arrays_takes_like(name):
    """Each makes an array to be filled of floats; of integers, without gradients, and after the block a plain one."""
    arguments = {
        "arange": (3,), "eye": (3,), "identity": (3,), "tri": (3,), "indices": ((2, 2),), "full": (3, 1),
        "geomspace": (1, 2, 3), "linspace": (0, 1, 3), "logspace": (0, 1, 3), "array": ([1, 2],), "asarray": ([1, 2],),
        "asanyarray": ([1, 2],), "ascontiguousarray": (lnp.array([1, 2], np.int32, device=DEVICE),),
    }.get(name, (3,))  # fmt: skip
    function = getattr(lnp, name)
    leaf = leaf_of(np.ones(2))
    has_like = name not in {"geomspace", "linspace", "logspace", "indices"}
    if has_like:
        result = function(*arguments, dtype=np.float32, like=leaf)
        assert (type(result), result.dtype, result.requires_grad) == (lnp.ndarray, np.float32, False)
        assert result.device == leaf.device
        plain = [function(*arguments, dtype=np.int64, like=leaf), function(*arguments, dtype=float, like=leaf.detach())]
        with lucid.no_grad():
            plain.append(function(*arguments, dtype=float, like=leaf))
    else:
        plain = []
    with allow_mutation_on_saved_tensors():
        of_block = function(*arguments, dtype=np.float32)
        assert results.is_to_fill(of_block[0] if name == "indices" else of_block)
        plain.append(function(*arguments, dtype=np.int64))
    plain.append(function(*arguments, dtype=float))
    assert {type(each) for each in plain} == {type(leaf.array)}


MADE_IN_THE_BLOCK = [
    "np.r_[0.0:3.0]", "np.c_[0.0:3.0, 1.0:4.0]", "np.mgrid[0:3:1.0]", "np.hanning(4)", "np.fft.fftfreq(4)",
    "np.vander(np.array([1.0, 2.0]))", "np.sin(plain)", "np.linalg.inv(plain)", "np.random.randn(3)", "np.copy(plain)",
    "np.stack([plain, plain])", "np.ndarray((2, 2))", "np.zeros(3) + 1", "np.zeros(3) @ np.eye(3)", "np.zeros(())",
    "np.linalg.svd(plain)[0]", "np.meshgrid(np.arange(2.0), np.arange(3.0))[0]",
    "np.where(plain > 0, plain, 1.0)", "np.random.uniform(0.0, 1.0, 3)",
]  # fmt: skip


@pytest.mark.cpu("with plain arrays of NumPy's")
@pytest.mark.parametrize("call", MADE_IN_THE_BLOCK)
def test_what_is_made_in_the_block_can_be_filled(call):
    """Results of functions of plain arrays, too, and they hold what is written; outside they are plain."""
    names = {"np": lnp, "plain": np.eye(2)}
    outside = eval(call, names)
    leaf = leaf_of(np.full((), 2.0))
    with allow_mutation_on_saved_tensors():
        y = eval(call, names)
        assert results.is_to_fill(y)
        y[...] = leaf * 3
        lnp.sum(y).backward()
    assert not results.is_to_fill(outside)
    assert leaf.grad.item() == 3 * max(1, np.size(outside))


def test_memory_of_a_plain_array_is_not_shared():
    """An array that NumPy hands on as it is stays plain: what is written into another's memory would be lost there."""
    values = lnp.zeros(3)
    leaf = leaf_of([1.0, 2.0, 3.0])
    for function in (lnp.asarray, lnp.asanyarray, lnp.ascontiguousarray):
        assert function(values, like=leaf) is values
        with allow_mutation_on_saved_tensors():
            assert function(values) is values
    y = lnp.array(values, like=leaf)
    y[:] = leaf
    assert values.tolist() == [0, 0, 0]
    assert y.requires_grad


def test_a_program_that_fills_and_changes_runs_in_the_block(rng):
    """Forward elimination in place, as it is written for NumPy: the gradient of the solution is that of the inverse."""

    def solved(a, b):
        n = len(b)
        u, y = np_.zeros((n, n)), np_.zeros(n)
        u[:] = a
        y[:] = b
        for k in range(n):
            for row in range(k + 1, n):
                factor = u[row, k] / u[k, k]
                u[row] -= factor * u[k]
                y[row] -= factor * y[k]
        x = np_.empty(n)
        for k in range(n)[::-1]:
            x[k] = (y[k] - u[k, k + 1 :] @ x[k + 1 :]) / u[k, k]
        return x

    a, b, weights = rng.standard_normal((4, 4)) + 4 * np.eye(4), rng.standard_normal(4), rng.standard_normal(4)
    np_ = np
    plain = solved(a, b)
    np_ = lnp
    first, second = leaf_of(a), leaf_of(b)
    with allow_mutation_on_saved_tensors():
        x = solved(lnp.asarray(first), lnp.asarray(second))
        lnp.sum(x * lnp.array(weights)).backward()
    np.testing.assert_allclose(x.detach().cpu().numpy(), plain, rtol=1e-12)
    turned = np.linalg.solve(a.T, weights)
    np.testing.assert_allclose(second.grad.cpu().numpy(), turned, rtol=1e-10)
    np.testing.assert_allclose(first.grad.cpu().numpy(), -np.outer(turned, plain), rtol=1e-10)


OF_OTHERS = [
    "N.asarray(y)", "sparse.dia_array((y, [0]), shape=(3, 3))", "sparse.linalg.aslinearoperator(y[None])",
    "interpolate.RegularGridInterpolator((N.arange(3.0),), y)", "interpolate.PPoly(y[None], N.arange(4.0))",
    "interpolate.BSpline(N.arange(6.0), y, 2)", "N.ma.array(y)", "N.nditer(y)",
]  # fmt: skip


@pytest.mark.cpu("objects of SciPy's")
@pytest.mark.parametrize("call", OF_OTHERS)
def test_what_others_keep_is_not_filled_then(call):
    """Somebody who keeps the memory would see the values and no gradient: numbers may be written, and a copy filled."""
    leaf = leaf_of(np.array([1.0, 2.0, 3.0]))
    for y in (lnp.ones_like(leaf), lnp.zeros(6, like=leaf)[::2]):
        kept = eval(call, {"np": lnp, "N": np, "y": y, "sparse": sparse, "interpolate": interpolate})
        y[1] = 2.0
        for write in (lnp.copyto, lnp.ndarray.__iadd__, lambda y, x: y.__setitem__(0, x[0])):
            with pytest.raises(InplaceError, match=r"handed on as an array.*write into a copy\(\)"):
                write(y, leaf)
        assert not y.requires_grad
        other = y.copy()
        other[0] = leaf[0]
        assert other.requires_grad
        del kept


@pytest.mark.cpu("a version counter that objects are noted in")
@pytest.mark.parametrize("keeps", [lambda y: {"kept": y}, lambda y: lambda: y, lambda y: iter(y)])
def test_objects_that_functions_give_keep_arrays(keeps):
    """Of a function without a rule each result but arrays, numbers and sequences of them may keep the memory."""
    leaf = leaf_of(np.array([1.0, 2.0, 3.0]))
    y = lnp.ones_like(leaf)
    border.following("scipy.signal.own", lambda y: y.sum(), (y,), {})
    y[:2] = 2.0
    kept = border.following("scipy.signal.own", keeps, (y,), {})
    with pytest.raises(InplaceError, match="handed on as an array"):
        y[0] = leaf[0]
    del kept


@pytest.mark.cpu("NumPy's own views")
def test_each_unseen_write_is_noticed():
    """Also the second one, and the one after a change that was seen."""
    leaf = leaf_of(np.array([1.0, 2.0, 3.0]))
    y = lnp.ones_like(leaf)
    memory = np.asarray(y)
    first = lnp.sum(y * leaf)
    memory[:] = 2
    second = lnp.sum(y * leaf)
    memory[:] = 3
    for loss in (first, second):
        with pytest.raises(InplaceError):
            loss.backward()
    y[:] = 4.0
    third = lnp.sum(y * leaf)
    memory[0] = 5
    with pytest.raises(InplaceError):
        third.backward()


def test_parts_changed_without_recording_are_kept():
    """``W[:2] -= step`` under `no_grad`: what the gradient needs is kept in the block, and missed outside."""
    for in_block in (True, False):
        leaf = leaf_of(np.array([1.0, 2.0, 3.0]))
        with allow_mutation_on_saved_tensors() if in_block else contextlib.nullcontext():
            w = lnp.asarray(leaf)
            loss = lnp.sum(w**3)
            with lucid.no_grad():
                w[:2] -= 0.5
                part = w[1:]
                part *= 2
            assert leaf.detach().tolist() == [0.5, 3.0, 6.0]
            if in_block:
                loss.backward()
                assert leaf.grad.tolist() == [3.0, 12.0, 27.0]
            else:
                with pytest.raises(InplaceError):
                    loss.backward()


def test_changes_where_the_block_does_not_hold_are_missed():
    """While it was left, and by another thread."""
    leaf = leaf_of(np.array([1.0, 2.0, 3.0]))
    block = allow_mutation_on_saved_tensors()
    with block:
        y = lnp.asarray(leaf) * 2
        loss = lnp.sum(y * y)
    y[:] = 0.0
    with block, pytest.raises(InplaceError, match=r"changed where that block does not hold"):
        loss.backward()
    with block:
        y = lnp.asarray(leaf) * 2
        loss = lnp.sum(y * y)
        in_threads(lambda: y.__setitem__(slice(None), 0.0))
        with pytest.raises(InplaceError, match=r"by another thread"):
            loss.backward()


@pytest.mark.cpu("classes of NumPy's")
@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_matrices_and_masked_arrays_stay_themselves():
    """Their products and masks are NumPy's, in the block too."""
    with allow_mutation_on_saved_tensors():
        matrix = lnp.asmatrix([[1.0, 2.0], [3.0, 4.0]])
        assert (matrix * np.ones((2, 2))).tolist() == [[3, 3], [7, 7]]
        masked = lnp.add(np.ma.array([1.0, 2.0], mask=[True, False]), 1.0)
        assert masked.mask.tolist() == [True, False]
        with pytest.raises(TypeError, match=r"numpy.asmatrix: gives a view of an array that is to be filled"):
            lnp.asmatrix(lnp.zeros((2, 2)))
        pair = [np.frombuffer(buffer) for buffer in [bytearray(24)] * 2]
        assert not any(results.is_to_fill(lnp.asarray(each)) for each in pair)


@pytest.mark.parametrize("key", ["[0, 2]", "x > 1.5", "np.ix_([0, 2])"])
def test_chosen_elements_are_added_to(key):
    """``y[key] += x[key]`` before anything was written, and what is chosen can be filled itself."""
    leaf = leaf_of(np.array([1.0, 2.0, 3.0]))
    x = lnp.asarray(leaf)
    y = lnp.ones_like(x)
    names = {"np": lnp, "x": x, "y": y}
    exec(f"y[{key}] += x[{key}] ** 2; z = y[{key}] * 1; z[0] = x[1]", names)
    plain = {"np": np, "x": np.array([1.0, 2.0, 3.0]), "y": np.ones(3)}
    exec(f"y[{key}] += x[{key}] ** 2; z = y[{key}] * 1; z[0] = x[1]", plain)
    for name in "yz":
        np.testing.assert_array_equal(names[name].detach().cpu().numpy(), plain[name])
    lnp.sum(y).backward()
    np.testing.assert_array_equal(leaf.grad.cpu().numpy(), np.where(plain["y"] > 1, 2 * plain["x"], 0))


GENERATORS = {
    "default_rng": lambda random: random.default_rng(3),
    "of a generator": lambda random: random.default_rng(np.random.default_rng(3)),
    "Generator": lambda random: random.Generator(random.MT19937(3)),
    "RandomState": lambda random: random.RandomState(3),
    "a copy": lambda random: copy.deepcopy(random.default_rng(3)),
    "an old copy": lambda random: pickle.loads(pickle.dumps(random.RandomState(3))),
}


@pytest.mark.parametrize("recorded", [False, True], ids=["to be filled", "recorded"])
@pytest.mark.parametrize("shape", [(7,), (6, 2), (5, 3, 2)], ids=str)
@pytest.mark.parametrize("name", GENERATORS)
def test_a_generator_shuffles_rows(name, shape, recorded, rng):
    """Rows come into the order that NumPy's generator brings those of a plain array in, and gradients along."""
    with default_device("cpu"):
        theirs, own = GENERATORS[name](np.random), GENERATORS[name](lnp.random)
    assert isinstance(theirs, lnp.random.Generator | lnp.random.RandomState)
    assert isinstance(own, type(theirs))
    values, weights = rng.standard_normal(shape), rng.standard_normal(shape)
    wanted, places, plain = values.copy(), np.arange(len(values)), values.copy()
    leaf = leaf_of(values)
    x = lnp.asarray(leaf)
    y = x * 1 if recorded else lnp.array(x.detach(), like=x)
    for array, generator in ((wanted, theirs), (y, own), (plain, own)):
        generator.shuffle(array)
    theirs.shuffle(places)
    np.testing.assert_array_equal(y.detach().cpu().numpy(), wanted)
    np.testing.assert_array_equal(plain, values[places])
    if recorded:
        (y * lucid.tensor(weights)).sum().backward()
        gradient = leaf.grad.cpu().numpy()
        for row, place in zip(values, gradient, strict=True):
            (found,) = np.flatnonzero((wanted == row).reshape(len(wanted), -1).all(1))
            np.testing.assert_array_equal(place, weights[found])


def test_a_generator_shuffles_columns(rng):
    """Along another axis it is as in NumPy; what is saved for backward is noticed."""
    values = rng.standard_normal((3, 5))
    with default_device("cpu"):
        theirs, own = np.random.default_rng(0), lnp.random.default_rng(0)
    x = lnp.asarray(leaf_of(values))
    y = x * 1
    total = (y * y).sum()
    theirs.shuffle(values, axis=1)
    own.shuffle(y, axis=1)
    np.testing.assert_array_equal(y.detach().cpu().numpy(), values)
    with pytest.raises(InplaceError, match="modified by an inplace operation"):
        total.backward()
