"""`ndarray` behaves as NumPy's array: indices, changes in place, attributes."""

import numpy as np
import pytest

import lucid
from lucid import numpy as lnp
from lucid.errors import InplaceError
from lucid.numpy import arrays
from tests.pieces import raising

pytestmark = pytest.mark.cpu("with arrays of NumPy's beside; of CuPy's says test_device.py")

MASK = np.array([True, False, True])
KEYS = {
    "number": np.s_[1], "numbers": np.s_[1, -2, 3], "slice": np.s_[1:, :2], "step": np.s_[::2, 1:4:2],
    "backwards": np.s_[::-1], "backwards in part": np.s_[2:0:-1, ::-2, 1], "none": np.s_[None, :, None, 0],
    "ellipsis": np.s_[..., 1], "ellipsis between arrays": np.s_[:, [0, 2], ..., [1, 3]], "nothing": np.s_[()],
    "ellipsis behind arrays": np.s_[:, [0, 2], [1, 3], ...], "list": [2, 0], "empty list": [],
    "array": np.array([[0, 2], [1, 1]]),
    "number and array apart": np.s_[0, :, [0, 1]], "number and array side by side": np.s_[0, [0, 1]],
    "number behind": np.s_[:, [1, 2], 3], "arrays apart": np.s_[[0, 1], :, [2, 3]],
    "array and slice": np.s_[[0, 2], 1:3],
    "array and none": np.s_[[0, 2], None, ..., 1], "backwards and array": np.s_[::-1, [0, 3]], "mask": MASK,
    "mask and slice": np.s_[MASK, 1:], "mask and array": np.s_[MASK, [0, 3]], "mask and number": np.s_[MASK, 1],
    "mask and none": np.s_[None, MASK],
    "empty mask": np.s_[None, np.zeros(0, bool)], "whole mask": np.arange(60).reshape(3, 4, 5) % 7 == 0, "true": True,
    "false": np.s_[False, 1], "number of NumPy's": np.int64(2), "array of no dimension": np.array(1),
}  # fmt: skip


@pytest.fixture
def pair(rng):
    """Return values, a leaf of them, and the recorded array of it."""
    values = rng.standard_normal((3, 4, 5))
    leaf = lucid.tensor(values, requires_grad=True)
    return values, leaf, lnp.asarray(leaf) * 1.0


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_indices_are_numpys(key, pair, rng):
    """What is selected, and where its gradient goes, is what NumPy selects; a write changes the same elements."""
    values, leaf, x = pair
    part, expected = x[key], values[key]
    np.testing.assert_array_equal(part.detach().numpy(), expected)
    weights = rng.standard_normal(expected.shape)
    lnp.sum(part * weights).backward()
    where = np.zeros_like(values)
    np.add.at(where, key, weights)
    np.testing.assert_allclose(leaf.grad.numpy(), where, rtol=1e-12)

    new = rng.standard_normal(expected.shape)
    x[key] = new
    values[key] = new
    np.testing.assert_array_equal(x.detach().numpy(), values)


OF_NO_DIMENSION = [..., None, np.array(True), np.array(False), np.True_, np.s_[None, True], np.s_[..., None], [True]]


@pytest.mark.parametrize("shape", [(), (1,), (0,), (0, 3), (2, 0), (1, 1, 1)], ids=str)
def test_indices_of_few_elements_are_numpys(shape, rng):
    """Of each of these keys arrays of one element or none give, take and refuse what NumPy's do."""
    for key in [*KEYS.values(), *OF_NO_DIMENSION]:
        values, new = (np.asarray(rng.standard_normal(shape)) for _ in range(2))
        leaf = lucid.tensor(values, requires_grad=True)
        x = lnp.asarray(leaf) * 1.0
        try:
            expected = values[key]
        except IndexError:
            for use in (lambda x=x, key=key: x[key], lambda x=x, key=key: x.__setitem__(key, 1.0)):
                with pytest.raises(IndexError):
                    use()
            continue
        part = x[key]
        np.testing.assert_array_equal(part.detach().numpy(), expected, err_msg=repr(key))
        (gradient,) = lucid.autograd.grad(part.sum(), leaf)
        where = np.zeros_like(values)
        np.add.at(where, key, 1.0)
        np.testing.assert_array_equal(gradient.numpy(), where, err_msg=repr(key))
        x[key] = new[key]
        values[key] = new[key]
        np.testing.assert_array_equal(x.detach().numpy(), values, err_msg=repr(key))


@pytest.mark.parametrize("key", [3, np.s_[0, 4], np.array([0, 3]), np.array([True, False]), np.s_[0, 0, 0, 0]], ids=str)
def test_indices_that_there_are_not(key, pair):
    """What NumPy refuses is an IndexError, in reading and in writing, and nothing has changed."""
    values, _, x = pair
    for use in (lambda: x[key], lambda: x.__setitem__(key, 1.0)):
        with pytest.raises(IndexError):
            use()
    np.testing.assert_array_equal(x.detach().numpy(), values)


def test_a_change_in_place_keeps_the_dtype():
    """An operand of the same kind comes to the dtype; one of a higher kind is refused, and nothing has changed."""
    x = lnp.asarray(lucid.tensor([1.0, 2.0], dtype=lucid.float32, requires_grad=True)) * 1.0
    y = x
    x += np.array([0.5, 0.5])
    assert x is y
    assert (x.dtype, x.detach().tolist()) == (np.float32, [1.5, 2.5])
    for other in (np.array([1j, 1j]), lucid.tensor([1j, 1j])):
        with pytest.raises(TypeError, match=r"add: a result of complex\d+ cannot be written into an array of float32"):
            x += other
    assert x.detach().tolist() == [1.5, 2.5]
    with pytest.raises(TypeError, match="cannot be written into an array of float32"):
        x **= np.array([2j, 1j])


OPERATORS = ("+", "-", "*", "/", "**", "//", "%")


def sides(x, other, sign):
    """Return an operator's result with an operand on the right, and with it on the left."""
    return eval(f"x {sign} other"), eval(f"other {sign} x")


@pytest.mark.parametrize("sign", OPERATORS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_operators_beside_plain_arrays(sign, dtype, rng):
    """On either side, of each dtype and shape, values, dtype and gradient are those of tensors in NumPy's dtype."""
    values = (rng.random((3, 4)) + 0.5).astype(dtype)
    for of in ("float32", "float64", "int64", "bool"):
        for shape in ((3, 4), (4,), (1, 1), ()):
            other = np.asarray((rng.random(shape) + 0.5) * 3).astype(of)
            if sign == "-" and of == "bool":
                other = ~other
            leaf = lucid.tensor(values, requires_grad=True)
            wide = lucid.tensor(values, dtype=lucid.float64, requires_grad=True)
            for k, expected in enumerate(sides(values, other, sign)):
                made = sides(lnp.asarray(leaf), other, sign)[k]
                assert type(made) is lnp.ndarray
                assert made.dtype == expected.dtype
                np.testing.assert_allclose(
                    made.detach().numpy(), expected, rtol=1e-5 if "32" in str(made.dtype) else 1e-14
                )
                leaf.grad = wide.grad = None
                made.sum().backward()
                sides(wide, lucid.tensor(other, dtype=lucid.float64), sign)[k].sum().backward()
                np.testing.assert_allclose(leaf.grad.numpy(), wide.grad.numpy(), rtol=1e-4, atol=1e-4)


def test_what_is_alike_needs_no_look_at_dtypes(pair, monkeypatch):
    """Operators of arrays of one dtype, and of numbers, go straight to the op, whichever side is plain."""
    values, x = np.abs(pair[0]) + 0.5, np.abs(pair[2]) + 0.5
    others = values + 3, 2.0, 3
    expected = [each for sign in OPERATORS for other in others for each in sides(values, other, sign)]

    monkeypatch.setattr(arrays, "ufunc_called", raising(AssertionError("dtypes were looked up")))
    made = [each for sign in OPERATORS for other in others for each in sides(x, other, sign)]
    for got, wanted in zip(made, expected, strict=True):
        np.testing.assert_allclose(got.detach().numpy(), wanted, rtol=1e-12)


def test_attributes_are_numpys(pair):
    """Sizes, dtype and transposes are the array's, not a Tensor's."""
    values, _, x = pair
    assert (x.size, x.shape, x.ndim, x.dtype, x.itemsize, len(x)) == (60, (3, 4, 5), 3, np.float64, 8, 3)
    assert (x.T.shape, x.mT.shape, x.strides) == ((5, 4, 3), (3, 5, 4), values.strides)
    assert [type(row) for row in x] == [lnp.ndarray] * 3
    assert isinstance(x, lucid.Tensor)
    assert isinstance(values, lnp.ndarray)
    assert not isinstance(lucid.ones(2), lnp.ndarray)
    assert repr(x[0, 0, :1]).startswith("array([")


VIEWS = (
    "x[...]", "x[1:]", "x.T", "x.conj()", "x.mT", "x.ravel()", "x.real", "x.reshape(-1)", "x.reshape(4, 15)",
    "x.squeeze()", "x.swapaxes(0, 1)", "x.transpose(1, 0, 2)", "x.view()", "x[::-1]", "x[..., ::-2, None, 1]", "x.flat",
    "x.T.flat", "np.flip(x)", "np.flip(x, (0, -1))", "np.fliplr(x)", "np.flipud(x)", "np.rot90(x)", "np.rot90(x, 2)",
    "np.rot90(x, 3, (-1, 0))", "x[np.int64(1), ::-1]",
)  # fmt: skip
COPIES = (
    "+x", "abs(x)", "np.conj(x)", "np.positive(x)", "x[[0, 1]]", "x[x > 0]", "x.T.flatten()", "x.astype('f8')",
    "x.clip(-9, 9)", "x.copy()", "x.flatten()", "x.flatten('F')", "x.repeat(1)", "x.round()", "x.take([0])",
)  # fmt: skip


@pytest.mark.parametrize("call", [*VIEWS, *COPIES])
def test_what_shares_memory_is_numpys(call, pair):
    """A write into what is a view changes the array, and one into a copy does not."""
    values, _, x = pair
    before = values.copy()
    for array in (values, x):
        eval(call, {"x": array, "np": np})[...] = 7.0
    assert (values == before).all() == (call in COPIES)
    np.testing.assert_array_equal(x.detach().numpy(), values)


def test_writes_through_what_is_reversed(rng):
    """A write through a view in reverse order is recorded: gradients are those of the elements that it went to."""
    values, new = rng.uniform(1, 2, (4, 3)), rng.uniform(1, 2, 3)
    for key, row in ((np.s_[::-1], 1), (np.s_[2:0:-1], 0), (np.s_[::-3], 1)):
        x, y = (lucid.tensor(each, requires_grad=True) for each in (values, new))
        whole, wanted = lnp.asarray(x) * 1.0, values.copy()
        whole[key][row] = lnp.asarray(y) ** 2
        wanted[key][row] = new**2
        np.testing.assert_allclose(whole.detach().numpy(), wanted)
        lnp.sum(whole**2).backward()
        kept = np.ones((4, 1))
        kept[key][row] = 0
        np.testing.assert_allclose(x.grad.numpy(), 2 * values * kept)
        np.testing.assert_allclose(y.grad.numpy(), 4 * new**3)


def test_attributes_that_are_assigned_to(pair):
    """``x.flat = values`` repeats them, as NumPy does; a shape is not assigned to, and the error says what is."""
    values, _, x = pair
    for array in (values, x):
        array.flat = [1.0, 2.0, 3.0]
        array.T.flat[1:3] = [7.0, 8.0]
    np.testing.assert_array_equal(x.detach().numpy(), values)
    with pytest.raises(AttributeError, match=r"x = x\.reshape\(\(60,\)\)"):
        x.shape = (60,)


@pytest.mark.parametrize("form", ["x", "x.T", "x[1]", "x[:, ::2, 1]"])
def test_flat(form, pair):
    """Parts of ``x.flat`` are copies, writes to it change `x`, and reads see them, in any memory."""
    values, leaf, x = pair
    line, theirs = eval(form, {"x": x}).flat, eval(form, {"x": values}).flat
    for flat in (line, theirs):
        for part in (flat[1:3], flat[:], flat[[0, 1]]):
            part *= 0
        flat[0] = 7.0
        flat[2:4] = [8.0, 9.0]
        flat[1] += 1.0
    np.testing.assert_array_equal(plain_of(line[:]), theirs[:])
    assert [float(plain_of(each)) for each in line] == list(theirs)
    np.testing.assert_array_equal(x.detach().numpy(), values)
    lnp.sum(x).backward()
    assert leaf.grad.numpy().sum() == values.size - 3


@pytest.mark.parametrize("order", ["C", "F"])
def test_flat_without_gradients(order, pair):
    """A write to ``x.flat`` in a `no_grad` block changes `x`, too, and backward sees it."""
    values, _, x = pair
    x = x if order == "C" else lnp.asarray(lucid.tensor(values, requires_grad=True)).T * 1
    y = x * x
    with lucid.no_grad():
        x.flat[2:4] = [8.0, 9.0]
    before = (values if order == "C" else values.T).ravel()
    assert plain_of(x).ravel()[1:5].tolist() == [before[1], 8.0, 9.0, before[4]]
    with pytest.raises(InplaceError, match="modified by an inplace operation"):
        lnp.sum(y).backward()


def plain_of(value):
    """Return a result as an array of NumPy's."""
    return value.detach().numpy() if isinstance(value, lucid.Tensor) else np.asarray(value)


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8"])
def test_unsigned_indices(dtype, pair):
    """Arrays of unsigned integers are indices, wherever NumPy takes indices."""
    values, _, x = pair
    rows = np.array([2, 0], dtype)
    np.testing.assert_array_equal(x[rows].detach().numpy(), values[rows])
    np.testing.assert_array_equal(x[:, rows, 0].detach().numpy(), values[:, rows, 0])
    np.testing.assert_array_equal(x[rows[0], 1].detach().numpy(), values[rows[0], 1])
    np.testing.assert_array_equal(lnp.take(x, rows, 1).detach().numpy(), values.take(rows, 1))
    along = rows.reshape(1, 2, 1)
    np.testing.assert_array_equal(
        lnp.take_along_axis(x, along, 1).detach().numpy(), np.take_along_axis(values, along, 1)
    )
    for array in (values, x):
        array[rows] = 5.0
        array[rows[1], 0] = 6.0
    np.testing.assert_array_equal(x.detach().numpy(), values)


def changed_on_the_way(x, np):
    """Return a sum of what is made by changes in place of what the gradient needs: wholly, by views, masks, indices."""
    u = np.exp(x)
    w = u * u
    u -= 0.1 * w
    inner = u[1:-1]
    inner *= 2.0
    u[0] = 3 * w[0]
    inverse = 1.0 / u
    inverse[inverse > 0] = inverse[inverse > 0] ** 1.5
    w[[0, 2]] += np.sin(u[:2])
    return np.sum(inverse * w) + np.sum(u)


def test_a_program_that_changes_what_backward_needs(rng):
    """Under `allow_mutation_on_saved_tensors` it is differentiated as it stands; elsewhere the error names that."""
    values, direction = rng.uniform(0.5, 1, 6), rng.standard_normal(6)
    with pytest.raises(InplaceError, match=r"under lucid\.autograd\.graph\.allow_mutation_on_saved_tensors"):
        changed_on_the_way(lucid.tensor(values, requires_grad=True), lnp).backward()
    x = lucid.tensor(values, requires_grad=True)
    with lucid.autograd.graph.allow_mutation_on_saved_tensors():
        loss = changed_on_the_way(x, lnp)
        loss.backward()
    assert loss.item() == pytest.approx(changed_on_the_way(values, np), rel=1e-12)
    up, down = (changed_on_the_way(values + step * direction, np) for step in (1e-6, -1e-6))
    np.testing.assert_allclose(np.sum(x.grad.cpu().numpy() * direction), (up - down) / 2e-6, rtol=1e-6)


@pytest.mark.parametrize(
    "part",
    [
        lambda x, c, i, m: np.sum(c * x), lambda x, c, i, m: np.sum(x / (c + 1)), lambda x, c, i, m: c @ x,
        lambda x, c, i, m: np.sum(c[:, None] * x), lambda x, c, i, m: np.sum(x[i]), lambda x, c, i, m: np.sum(x[m]),
        lambda x, c, i, m: np.sum(np.take(x * 1, i)), lambda x, c, i, m: np.sum(np.where(m, x, 0)),
    ],
)  # fmt: skip
def test_plain_arrays_that_change_under_allow_mutation(part, rng):
    """Backward uses the values that constants, indices and masks had, though nobody tells of a change of these."""
    values, c, i, m = rng.uniform(1, 2, 4), rng.standard_normal(4), np.array([0, 2, 2]), np.array([True, False] * 2)
    expected = [(part(values + e, c, i, m) - part(values - e, c, i, m)) / 2e-6 for e in np.eye(4) * 1e-6]
    x = lucid.tensor(values, requires_grad=True, device="cpu")
    with lucid.autograd.graph.allow_mutation_on_saved_tensors():
        y = part(lnp.asarray(x), c, i, m)
        c[:], i[:], m[:] = 7, 1, ~m
        y.backward()
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-6, atol=1e-8)


def test_parts_of_complex_numbers_are_assigned():
    """``z.real *= 3`` and ``z.imag = values`` are recorded: the part written is that of the values from then on."""
    values = np.array([1 + 2j, 3 - 1j])
    leaf = lucid.tensor(values, requires_grad=True)
    z, plain = lnp.asarray(leaf) * 1.0, values.copy()
    for array in (z, plain):
        array.real *= 3
        array.imag = array.real * 2
    np.testing.assert_array_equal(z.detach().numpy(), plain)
    lnp.sum(z.real + z.imag).backward()
    np.testing.assert_array_equal(leaf.grad.numpy(), [9, 9])
    x = lnp.asarray(lucid.tensor([1.0, 2.0], requires_grad=True)) * 1.0
    x.real = 5
    assert x.tolist() == [5, 5]
    with pytest.raises(TypeError, match="no imaginary part to set"):
        x.imag = 0


def test_what_is_no_number_is_in_no_array():
    """``in``, ``==`` and ``!=`` take strings, None and lists as NumPy does, which equal no number or some."""
    values = np.array([1.0, 2.0])
    x = lnp.asarray(lucid.tensor(values, requires_grad=True)) * 1.0
    for other in ("a", None, [1.0], 2.0, [1.0, 3.0], np.array([5.0]), 7, b"a"):
        assert (other in x) is (other in values), other
        np.testing.assert_array_equal(x == other, values == other)
        np.testing.assert_array_equal(x != other, values != other)
        np.testing.assert_array_equal(other == x, other == values)
    assert (x[0] in x) is True


def test_attributes_and_options_of_methods(pair):
    """`flags` and `tobytes` are NumPy's; `reshape` takes ``copy``, and `clip` its third argument None."""
    values, _, x = pair
    for array, other in ((x, values), (x.T, values.T), (x[:, ::2], values[:, ::2])):
        assert (array.flags.c_contiguous, array.flags.f_contiguous) == (
            other.flags.c_contiguous, other.flags.f_contiguous,
        )  # fmt: skip
        assert array.tobytes() == other.tobytes()
        assert array.tobytes("F") == other.tobytes("F")
    np.testing.assert_array_equal(x.clip(0, 1, None).detach().numpy(), values.clip(0, 1))
    copy = x.reshape(4, 15, copy=True)
    copy *= 0
    np.testing.assert_array_equal(x.detach().numpy(), values)
    view = x.reshape(4, 15, copy=False)
    view *= 0
    assert not x.detach().numpy().any()


FORMS = {
    "as it is": lambda np, x: x, "turned": lambda np, x: x.T, "exchanged": lambda np, x: np.swapaxes(x, 1, 2),
    "steps": lambda np, x: x[:, ::-2], "rows": lambda np, x: np.broadcast_to(x[0, 0], (2, 3, 5)),
    "columns": lambda np, x: np.broadcast_to(x[:, :1], (3, 4, 5)), "one": lambda np, x: x[:, :1].T,
    "columns turned": lambda np, x: np.swapaxes(np.broadcast_to(x[:, :1], (3, 4, 5)), 0, 2),
    "ends": lambda np, x: np.broadcast_to(x[..., :1], (3, 4, 5)).T,
    "number": lambda np, x: np.broadcast_to(x[0, 0, 0], (2, 3)),
}  # fmt: skip
IN_ORDERS = {
    "none": lambda np, y: y, "copy F": lambda np, y: y.copy("F"), "copy A": lambda np, y: y.copy("A"),
    "method": lambda np, y: y.copy(), "function": lambda np, y: np.copy(y), "array": lambda np, y: np.array(y),
    "array F": lambda np, y: np.array(y, order="F"), "asfortranarray": lambda np, y: np.asfortranarray(y),
    "ascontiguousarray": lambda np, y: np.ascontiguousarray(y), "asarray F": lambda np, y: np.asarray(y, order="F"),
    "astype": lambda np, y: y.astype("f8"), "astype F": lambda np, y: y.astype("f8", order="F"),
    "single": lambda np, y: y.astype("f4", order="F"), "ndmin": lambda np, y: np.array(y, ndmin=4, order="F"),
}  # fmt: skip


@pytest.mark.parametrize("copied", IN_ORDERS.values(), ids=IN_ORDERS)
@pytest.mark.parametrize("formed", FORMS.values(), ids=FORMS)
def test_the_order_in_memory_is_numpys(formed, copied, pair):
    """In a row by each order, also of the memory, elements follow each other as NumPy's, after copies that keep one."""
    values, leaf, _ = pair
    expected, made = copied(np, formed(np, values)), copied(lnp, formed(lnp, lnp.asarray(leaf) * 1.0))
    for order in "CFAK":
        np.testing.assert_array_equal(made.ravel(order).detach().numpy(), expected.ravel(order))
        np.testing.assert_array_equal(made.flatten(order).detach().numpy(), expected.flatten(order))
    lnp.sum(made * 2.0).backward()
    assert leaf.grad.numpy().sum() == 2 * expected.size


def test_axes_of_equal_strides_stay_in_their_order():
    """Elements of a sliding window lie as often in a row as NumPy has them, in the order of its axes."""
    values = np.arange(6.0)
    x = lnp.asarray(lucid.tensor(values, requires_grad=True, device="cpu"))
    windows = np.lib.stride_tricks.sliding_window_view(values, 3)
    recorded = lnp.lib.stride_tricks.sliding_window_view(x, 3)
    np.testing.assert_array_equal(lnp.ravel(recorded, "K").detach().numpy(), np.ravel(windows, "K"))


METHOD_FORMS = [
    "x.sort(-1, 'stable')", "x.sort(axis=0)", "x.partition(1, kind='introselect')", "x.partition(1, -1)",
    "x = x.compress([True, False, True], 0, None)", "x = x.conj(None)", "x.flat[0:4] = [1.0, 2.0]",
    "x.T.flat[0:4] = [1.0, 2.0]", "x.flat[2] = 7", "x.flat[[0, 1]] = [7, 8, 9]", "x.T.flat[::2] = 7",
    "f = x.T.flat; x[1, 0] = 8.0; x = f[0:3]", "f = x.T.flat; x[1, 0] = 8.0; x = f[1]",
]  # fmt: skip


@pytest.mark.parametrize("statement", METHOD_FORMS)
def test_forms_of_methods_are_numpys(statement, rng):
    """Arguments by place and by name, the elements of `flat`: the results are NumPy's."""
    values = rng.standard_normal((3, 4))
    names = {"x": values.copy()}, {"x": lnp.asarray(lucid.tensor(values, requires_grad=True)) * 1}
    for each in names:
        exec(statement, {"np": np}, each)
    expected, made = (each["x"] for each in names)
    np.testing.assert_array_equal(made.detach().numpy(), expected)
    assert made.requires_grad
    with pytest.raises(TypeError, match=r"numpy\.compress: .* got out"):
        names[1]["x"].compress([True], None, np.zeros(1))
