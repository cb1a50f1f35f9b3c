"""What is recorded and what is not: on nothing else does a class depend, and nothing detaches in silence."""

import importlib
import inspect
from collections import UserList, deque
from typing import Any, NamedTuple

import numpy as np
import pytest

import lucid
from lucid import numpy as lnp

pytestmark = pytest.mark.cpu("with arrays of NumPy's beside; of CuPy's says test_device.py")


@pytest.mark.parametrize(
    "function",
    [
        "asarray",
        "asanyarray",
        "ravel",
        "squeeze",
        "real",
        "atleast_1d",
        "real_if_close",
        "astype",
        "trim_zeros",
        "diff",
    ],
)
def test_a_tensor_that_was_given_stays_one(function, rng):
    """Also where a function gives back what it was given: the result is a recorded array, the Tensor what it was."""
    leaf = lucid.tensor(rng.standard_normal(3), requires_grad=True)
    more = {"astype": (np.float64,), "diff": (0,)}.get(function, ())
    settings = {"copy": False} if function == "astype" else {}
    result = getattr(lnp, function)(leaf, *more, **settings)
    assert (type(leaf), type(result)) == (lucid.Tensor, lnp.ndarray)
    weights = rng.standard_normal(3)
    lnp.sum(result * weights).backward()
    np.testing.assert_allclose(leaf.grad.numpy(), weights)


def test_what_requires_no_grad_is_plain():
    """NumPy's own result: of plain arrays, of Tensors that require none, without gradients, of what has no slope."""
    leaf = lucid.tensor([1.0, 2.0], requires_grad=True)
    for result in (lnp.sin(leaf.detach()), lnp.sum([1.0, 2.0], axis=0), lnp.stack([leaf.detach(), np.ones(2)])):
        assert isinstance(result, np.ndarray | np.generic)
    for result in (
        lnp.asarray(leaf) > 1,
        lnp.isnan(leaf),
        lnp.argmax(leaf),
        lnp.zeros_like(leaf, dtype=int),
        lnp.shape(leaf),
        lnp.isscalar(leaf),
        lnp.iterable(leaf),
    ):
        assert not isinstance(result, lucid.Tensor)
    with lucid.no_grad():
        assert type(lnp.sin(leaf)) is np.ndarray
        assert type(lnp.asarray(leaf) * 2) is np.ndarray
    assert type(lnp.sin(leaf)) is type(np.sin(lnp.asarray(leaf))) is type(np.ones(2) * lnp.asarray(leaf)) is lnp.ndarray


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: lnp.random.normal(x), r"numpy.random.normal: what is drawn from requires grad: .*rsample"),
        (lambda x: lnp.random.uniform(0, high=x), r"numpy.random.uniform: what is drawn from requires grad"),
        (lambda x: lnp.roots(x), r"numpy.roots has no counterpart here"),
        (lambda x: lnp.sum(x, out=np.zeros(())), r"numpy.sum: with a Tensor only .* got out"),
        (lambda x: lnp.mean(x, where=np.array([True, False])), r"numpy.mean: with a Tensor only .* got where"),
        (lambda x: lnp.exp(x, out=np.zeros(2)), r"numpy.exp: out cannot be used .*: assign the result"),
        (lambda x: np.zeros(2).__iadd__(x), r"a \+= x would write it into a plain array, .*: a = a \+ x"),
        (lambda x: np.zeros(2).__itruediv__(x), r": a = a / x"),
        (
            lambda x: lnp.divide(1.0, x, where=np.array([True, False])),
            r"where cannot be .* np.where\(mask, result, other",
        ),
        (lambda x: lnp.add.at(np.zeros(2), [0, 1], x), r"numpy.add.at cannot be recorded"),
        (lambda x: lnp.copyto(np.zeros(2), x), r"numpy.copyto: dst is no Tensor, and cannot hold what requires grad"),
        (lambda x: lnp.putmask(np.zeros(2), [True, False], x), r"numpy.putmask: a is no Tensor"),
        (lambda x: lnp.sum(x, 0, axis=0), r"numpy.sum: axis is given twice"),
    ],
)
def test_what_is_refused_by_name(call, message):
    """What would leave the graph is a TypeError that says so; of plain arrays it is NumPy's own."""
    with pytest.raises(TypeError, match=message):
        call(lnp.asarray(lucid.tensor([1.0, 2.0], requires_grad=True)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: lnp.concatenate([x, x[None]]), "all the input array dimensions must match"),
        (lambda x: lnp.hstack([np.zeros((0, 2)), x]), "all the input array dimensions must match"),
        (lambda x: lnp.dot(x, np.ones((1, 3))), "shapes not aligned"),
        (lambda x: lnp.split(x, 3), "equal division"),
        (lambda x: lnp.swapaxes(x, 0, 1), "axis 1 is out of bounds"),
    ],
)
def test_shapes_that_do_not_fit(call, message):
    """Shapes that PyTorch would broadcast, or leave out, are refused as NumPy refuses them."""
    with pytest.raises(ValueError, match=message):
        call(lnp.asarray(lucid.tensor([1.0, 2.0], requires_grad=True)))


class Pair(NamedTuple):
    """A named tuple."""

    a: Any
    b: Any


class Listed(list):
    """A list of one's own."""


SEQUENCES = [tuple, list, deque, Listed, Pair._make]


@pytest.mark.parametrize("made", SEQUENCES, ids=["tuple", "list", "deque", "subclass", "named tuple"])
@pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "plain"])
def test_sequences_of_any_kind(made, recorded, rng):
    """Tensors are found in each: classes, values and dtypes are those of a list of them."""
    values = rng.standard_normal((2, 2))
    leaf = lucid.tensor(values, requires_grad=recorded)
    for name in ("stack", "hstack", "concatenate", "sum", "mean", "max", "array", "negative", "linalg.norm"):
        module, _, function = f"np.{name}".rpartition(".")
        of_numpy, of_lucid = (eval(f"{module}.{function}", {"np": each}) for each in (np, lnp))
        result = of_lucid(made([leaf[0], leaf[1]]))
        assert isinstance(result, lnp.ndarray if recorded else np.ndarray | np.generic)
        array = result.detach().numpy() if recorded else result
        np.testing.assert_allclose(array, of_numpy([values[0], values[1]]), rtol=1e-12)
    whole = lucid.tensor([1, 2])
    assert lnp.concatenate(made([whole, lucid.ones(2, requires_grad=recorded)])).dtype == np.float64
    x = lnp.asarray(lucid.tensor(values, requires_grad=True)) * 1
    for result in (x + made([leaf[0], leaf[1]]), lnp.where(values > 0, made([leaf[0], leaf[1]]), x)):
        assert type(result) is lnp.ndarray
    x[:] = made([leaf[0], leaf[1]])
    x += made([leaf[1], leaf[0]])
    np.testing.assert_allclose(x.detach().numpy(), values + values[::-1])
    pairs = made([np.array([0, 1]), np.array([1, 1])])
    key = pairs if made in {tuple, Pair._make} else list(pairs)
    np.testing.assert_array_equal(x[pairs].detach().numpy(), x.detach().numpy()[key])


def test_results_of_linalg_are_sequences():
    """The named tuples that lucid returns itself go into functions, too."""
    leaf = lucid.tensor([[2.0, 0.0], [0.0, 3.0]], dtype=lucid.float64, requires_grad=True)
    both = lnp.hstack(lnp.linalg.slogdet(leaf))
    np.testing.assert_allclose(both.detach().numpy(), [1, np.log(6)])


def test_sequences_in_which_nobody_looks(rng):
    """Of another kind of sequence NumPy hands its arrays back one by one, which is refused and not gone round in."""
    x = lnp.asarray(lucid.tensor(rng.standard_normal((2, 3)), requires_grad=True))
    for call in (lambda: lnp.stack(UserList([x[0], x[1]])), lambda: np.hstack(UserList([x[0], x[1]]))):
        with pytest.raises(TypeError, match=r"hstack|stack: expected tensors, or lists and tuples .*: use list\(\)"):
            call()


def test_lists_are_operands():
    """Of ufuncs and operators, on either side, with recorded numbers in them or without."""
    v = lnp.asarray(lucid.tensor([0.5, 2.0], dtype=lucid.float64, requires_grad=True)) * 1
    a = v.detach().numpy()
    for call in (
        "np.exp([v[0], 1.0])", "v + [v[0], 1.0]", "np.maximum([v[0], v[1]], 1.0)", "[v[0], 1.0] * v",
        "v @ [v[0], 1.0]", "np.abs([v[0], -1])", "v * [True, False]", "v + [np.uint16(1), np.uint16(3)]", "v ** [1, 2]",
    ):  # fmt: skip
        made, expected = eval(call, {"np": lnp, "v": v}), eval(call, {"np": np, "v": a})
        assert type(made) is lnp.ndarray
        np.testing.assert_allclose(made.detach().numpy(), expected, rtol=1e-12)
    assert lnp.greater(v, [v[1], 1.0]).tolist() == [False, True]
    v += [v[0], 3]
    v /= [1, 2]
    np.testing.assert_allclose(v.detach().numpy(), [1.0, 2.5])


def test_no_module_stands_at_a_name_of_numpys():
    """What NumPy has as a function is one here: no file of lucid's is found in its place."""
    for module, theirs in ((lnp, np), (lnp.linalg, np.linalg), (lnp.fft, np.fft), (lnp.lib, np.lib)):
        for name in dir(theirs):
            if not name.startswith("_") and not inspect.ismodule(getattr(theirs, name)):
                assert not inspect.ismodule(getattr(module, name)), name
    assert lnp.indices((2, 3)).tolist() == np.indices((2, 3)).tolist()


@pytest.mark.cpu("beside a matrix of NumPy's")
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("kind", [lucid.Tensor, lnp.ndarray])
def test_a_matrix_of_numpys_is_no_operand(kind):
    """``matrix * v`` is a matrix product in NumPy: no elementwise one comes out, nor what is no matrix any more."""
    leaf = lucid.tensor([2.0, 3.0], dtype=lucid.float64, requires_grad=True)
    v = leaf if kind is lucid.Tensor else lnp.asarray(leaf)
    M = np.asmatrix([[1.0, 2.0], [3.0, 4.0]])
    calls = [
        lambda: v * M, lambda: M * v, lambda: M @ v, lambda: M + v, lambda: v**M, lambda: v > M + 0 * v,
        lambda: np.multiply(M, v), lambda: lnp.dot(M, v), lambda: lnp.linalg.solve(M, v), lambda: lnp.stack([v, M[0]]),
        lambda: lnp.where(M > 0, v, 1.0), lambda: lnp.einsum("ij,j", M, v),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(TypeError, match=r"got a numpy.matrix, .* np.asarray\(matrix\), and use @"):
            call()
    assert (np.asarray(M) @ v).tolist() == [8.0, 18.0]
    assert lucid.tensor(M).shape == (2, 2)


def test_a_recorded_value_is_a_scalar_to_isscalar():
    """``np.isscalar`` is true of elements and of what has no dimension left, and not of views or of Tensors."""
    leaf = lucid.tensor([1.0, 2.0], requires_grad=True)
    v = lnp.asarray(leaf)
    assert lnp.isscalar(v[0])
    assert lnp.isscalar(lnp.sum(v))
    assert not any(map(lnp.isscalar, (v, v[0, ...], v[:1], leaf[0])))


RANGES = """
np.r_[0:x[1]:5j] | np.c_[0:x[1]:3j] | np.r_[0:x[1]:5j, x, 1] | np.c_[x[0]:x[1]:3j, [1, 2, 3]] | np.r_[x[0]:2:3j, 0:3]
np.mgrid[0:x[1]:5j] | np.mgrid[0:x[1]:2j, 0:1:3j] | np.mgrid[0:3, x[0]:x[1]:2j, :2] | np.ogrid[0:x[1]:5j]
np.ogrid[0:x[1]:2j, 0:3][0] | np.ogrid[0:x[1]:2j, 0:3][1]
"""


@pytest.mark.parametrize("call", [each.strip() for line in RANGES.strip().splitlines() for each in line.split("|")])
def test_ranges_with_a_recorded_end(call):
    """What `r_`, `c_`, `mgrid` and `ogrid` make of slices has NumPy's values, and the gradient by recorded ends."""
    values = np.array([0.5, 2.0])
    leaf = lucid.tensor(values, requires_grad=True)
    made, expected = eval(call, {"np": lnp, "x": lnp.asarray(leaf)}), eval(call, {"np": np, "x": values})
    plain = eval(call, {"np": lnp, "x": leaf.detach()})
    assert isinstance(plain, np.ndarray)
    for one in (made.detach().numpy() if isinstance(made, lucid.Tensor) else made, plain):
        np.testing.assert_allclose(one, expected, rtol=1e-14)
        assert one.dtype == expected.dtype
    if isinstance(made, lucid.Tensor):
        lnp.sum(made * made).backward()
        for k in range(2):
            up, down = (
                np.sum(eval(call, {"np": np, "x": values + step * np.eye(2)[k]}) ** 2) for step in (1e-6, -1e-6)
            )
            assert leaf.grad[k].item() == pytest.approx((up - down) / 2e-6, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize(
    "call",
    [
        "np.zeros_like(x, subok=False)", "np.zeros_like(x, order='C')", "np.array(x, subok=True, copy=True)",
        "np.add(x, x, casting='same_kind')", "np.add(x, x, order='K', subok=True)", "np.mean(x, where=np.True_)",
        "np.einsum('i,i->', x, x, casting='safe', order='K')", "np.concatenate([x, x], casting='same_kind')",
        "np.add.reduce(x, where=np.True_)", "np.einsum_path('i,i->', x, x)[0]",
    ],
)  # fmt: skip
def test_options_without_effect_are_taken(call):
    """Options that say what happens in any case, by their values and not only as NumPy's own objects, are no others."""
    values = np.array([1.0, 2.0])
    made = eval(call, {"np": lnp, "x": lnp.asarray(lucid.tensor(values, requires_grad=True))})
    expected = eval(call, {"np": np, "x": values})
    if isinstance(made, lucid.Tensor):
        made = made.detach().numpy()
    assert made.tolist() == expected.tolist() if isinstance(expected, np.ndarray | np.generic) else made == expected


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("np.vecdot(m, m, axis=0)", r"np\.moveaxis\(x, axis, -1\)"),
        ("np.add(m, m, casting='no')", r"leave it out, and use astype\(\)"),
        ("np.zeros_like(m, order='F')", "got order"), ("np.mean(m, where=np.False_)", "got where"),
        ("np.add(m, m, out=np.ones((2, 3)))", "assign the result"),
    ],
)  # fmt: skip
def test_options_with_an_effect_are_refused(call, words):
    """An option that is not recorded is refused, with what to do in its place."""
    with pytest.raises(TypeError, match=words):
        eval(call, {"np": lnp, "m": lnp.asarray(lucid.ones(2, 3, requires_grad=True))})


SWAPPED = """
x * a | a * x | np.dot(x, a) | np.concatenate([x, a]) | np.where(i, x[:2], 0) | x[i] | x[i[1]] | np.take(x, i)
x[a > 1] | np.take_along_axis(x, i, 0) | np.insert(x, i, 0) | np.interp(a, x, x) | np.outer(a, x) | np.linspace(a, x, 3)
np.repeat(x, a.astype(">i8")) | np.bincount(i, x[:2]) | np.compress(i, x) | np.roll(x, i[1]) | np.average(x, weights=a)
x @ a | np.einsum("i,i->", x, a) | np.gradient(x, a) | np.trapezoid(x, a) | np.add.outer(x, a)
np.convolve(x, a) | np.polyval(a, x) | np.clip(x, a, None) | x + a[1] | np.hypot(a, x) | np.linalg.solve(np.diag(a), x)
"""


@pytest.mark.parametrize("call", [each.strip() for line in SWAPPED.strip().splitlines() for each in line.split("|")])
def test_arrays_of_the_other_order_of_bytes(call):
    """Arrays and indices that were read from a file in the other order of bytes are operands as any."""
    values = {"a": np.array([1.0, 2.0, 4.0]), "i": np.array([0, 2]), "x": np.array([0.5, 2.0, 3.0])}
    swapped = {key: values[key].astype(values[key].dtype.newbyteorder()) for key in "ai"}
    recorded = lnp.asarray(lucid.tensor(values["x"], requires_grad=True))
    made = eval(call, {"np": lnp, "x": recorded, **swapped})
    np.testing.assert_allclose(made.detach().numpy(), eval(call, {"np": np, **values}), rtol=1e-12)


def test_modules_of_numpys_are_imported_by_their_names():
    """``from lucid.numpy.exceptions import AxisError``: `import` finds the modules that are attributes."""
    for name in ("polynomial", "ma", "exceptions", "dtypes", "char", "rec", "strings", "ctypeslib"):
        module = importlib.import_module(f"lucid.numpy.{name}")
        assert module is importlib.import_module(f"numpy.{name}") is getattr(lnp, name)
        assert module.__spec__.name == f"numpy.{name}"
    assert importlib.import_module("lucid.numpy.emath") is lnp.emath is lnp.lib.scimath
    inner = importlib.import_module("lucid.numpy.polynomial.polynomial")
    assert inner.polyval is np.polynomial.polynomial.polyval
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("lucid.numpy.nothing")


def test_numbers_in_place_of_nan_are_no_write():
    """``nan_to_num(y)``, which copies unless told otherwise, changes nothing that backward needs."""
    leaf = lucid.tensor([2.0, 4.0], dtype=lucid.float64, requires_grad=True)
    y = lnp.asarray(leaf) * 1.0
    z = y * y
    np.testing.assert_array_equal(np.asarray(lnp.nan_to_num(y.detach())), y.detach().numpy())
    lnp.sum(z).backward()
    assert leaf.grad.tolist() == [4.0, 8.0]
