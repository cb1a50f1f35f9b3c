"""Sparse matrices of values that may require grad: SciPy's numbers, and differences' gradients, to the second order."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest
import scipy.sparse

import lucid
from lucid import numpy as lnp
from lucid.base import gpu
from lucid.errors import DtypeError
from lucid.scipy import sparse
from lucid.scipy.sparse.base import Stored
from lucid.scipy.sparse.matrices import Sparse
from tests.device import DEVICE
from tests.gradients import check_gradient, check_second_derivative

FORMATS = ("coo", "csr", "csc")
ROWS, COLUMNS = np.array([0, 0, 2, 2, 3, 0, 2]), np.array([1, 4, 0, 3, 2, 4, 3])
"""Of a matrix of 5 by 5 with empty rows and columns, and with elements that are repeated."""


def on_device(array):
    """Return an array where the tests have their tensors."""
    return array if DEVICE == "cpu" else lucid.tensor(array).to(DEVICE).array


def dense(value):
    """Return a result, sparse or dense, recorded or plain, as an array on the host."""
    value = value.toarray() if hasattr(value, "toarray") else value
    value = value.detach().array if isinstance(value, lucid.Tensor) else value
    return value.get() if gpu.is_gpu_array(value) else np.asarray(value)


def tensors(value):
    """Return a result, sparse or dense, as a tensor."""
    value = value.toarray() if hasattr(value, "toarray") else value
    return value if isinstance(value, lucid.Tensor) else lucid.tensor(value)


def draw(rng, *shape, dtype=np.float64):
    """Draw numbers of any dtype."""
    values = rng.standard_normal(shape)
    return (values + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else values).astype(dtype)


OPERATIONS = {
    "A @ x": lambda A, x, **_: A @ x,
    "A @ X": lambda A, X, **_: A @ X,
    "x @ A": lambda A, x, **_: x @ A,
    "X.T @ A": lambda A, X, **_: X.T @ A,
    "A.T @ x": lambda A, x, **_: A.T @ x,
    "A.dot": lambda A, x, **_: A.dot(x),
    "dot a number": lambda A, **_: A.dot(2),
    "A @ A": lambda A, **_: A @ A.T @ A,
    "A @ sparse": lambda A, S, x, **_: S.csr_matrix(A) @ S.coo_array(A) @ x,
    "cube": lambda A, S, **_: S.csc_matrix(A) ** 3,
    "first power": lambda A, S, **_: S.csc_matrix(A) ** 1,
    "toarray": lambda A, **_: A.toarray(),
    "toarray by columns": lambda A, **_: A.toarray(order="F"),
    "getrow": lambda A, x, **_: A.tocsr().getrow(1) @ x if hasattr(A, "getrow") else A.tocsr()[[1], :] @ x,
    "getcol": lambda A, **_: (A.tocsr().getcol(2) if hasattr(A, "getcol") else A.tocsr()[:, [2]]).toarray(),
    "tocoo": lambda A, x, **_: A.tocoo() @ x,
    "tocsr": lambda A, x, **_: A.tocsr() @ x,
    "tocsc": lambda A, x, **_: A.tocsc() @ x,
    "2 A - A / 3": lambda A, **_: 2 * A - A / 3,
    "A + A.T": lambda A, **_: A + A.T,
    "A - dense": lambda A, D, **_: A - D,
    "dense + A": lambda A, D, **_: D + A,
    "dense - A": lambda A, D, **_: D - A,
    "A - A.T": lambda A, **_: A - A.T,
    "multiply dense": lambda A, D, **_: A.multiply(D),
    "multiply a row": lambda A, x, **_: A.multiply(x[None]),
    "multiply a column": lambda A, x, **_: A.multiply(x[:, None]),
    "multiply a sparse row": lambda A, **_: A.multiply(A.tocsr()[[2], :]),
    "multiply a sparse column": lambda A, **_: A.multiply(A.tocsr()[:, [3]]),
    "a sparse row times": lambda A, **_: A.tocsr()[[2], :].multiply(A),
    "a sparse column times": lambda A, **_: A.tocsr()[:, [3]].multiply(A),
    "an element times": lambda A, **_: A.tocsr()[[2], :][:, [3]].multiply(A),
    "a column times a row": lambda A, **_: A.tocsr()[:, [3]].multiply(A.tocsr()[[2], :]),
    "a row times a column": lambda A, **_: A.tocsr()[[2], :].multiply(A.tocsr()[:, [3]]),
    "a row times dense": lambda A, D, **_: A.tocsr()[[2], :].multiply(D),
    "a column times a dense row": lambda A, x, **_: A.tocsr()[:, [3]].multiply(x[None]),
    "multiply sparse": lambda A, **_: A.multiply(A.T + A),
    "-A": lambda A, **_: -A,
    "round": lambda A, **_: round(A, 1),
    "imaginary part": lambda A, **_: (A * 1j).imag,
    "power": lambda A, **_: A.power(2),
    "sum": lambda A, **_: A.sum(),
    "sum over both axes": lambda A, **_: A.sum(axis=(0, 1)),
    "mean over a tuple": lambda A, **_: A.mean(axis=(1,)),
    "sum of columns": lambda A, **_: A.sum(axis=0),
    "sum of rows": lambda A, **_: A.sum(axis=-1),
    "mean": lambda A, **_: A.mean(axis=0),
    "diagonal": lambda A, **_: A.diagonal(1),
    "diagonal below": lambda A, **_: A.diagonal(-2),
    "trace": lambda A, **_: A.trace(),
    "conj": lambda A, x, **_: A.conj().T @ x,
    "slice": lambda A, **_: A.tocsr()[1:4, ::2],
    "element": lambda A, **_: A.tocsr()[2, 3],
    "no element": lambda A, **_: A.tocsr()[1, 1] + A.tocsr()[2, 3],
    "reshape": lambda A, **_: A.reshape((1, 25)),
    "reshape and copy": lambda A, **_: A.reshape((1, 25), copy=True),
    "reshape by columns": lambda A, **_: A.reshape((25, 1), order="F"),
    "abs": lambda A, **_: abs(A),
    "hstack": lambda A, S, **_: S.hstack([A, A.T]),
    "hstack of a dtype": lambda A, S, **_: S.hstack([A, A.T], dtype=np.complex128),
    "hstack of both families": lambda A, S, D, **_: S.hstack([A, S.csr_array(A)]).tocsr()[:, :5] * D,
    "block_array": lambda A, S, **_: S.block_array([[A, None], [None, A.T]]),
    "block_diag by name": lambda A, S, **_: S.block_diag(mats=[A, A]),
    "tril by name": lambda A, S, **_: S.tril(k=1, A=A),
    "dense blocks": lambda A, S, D, **_: S.block_diag([A, S.csr_matrix(D[:2]), D[2:]]),
    "block_diag": lambda A, S, **_: S.block_diag([A, A * 2]),
    "bmat": lambda A, S, **_: S.bmat([[A, None], [A.T, A]]),
    "tril": lambda A, S, **_: S.tril(A),
    "diags": lambda S, x, **_: S.diags([x, x[1:]], offsets=[0, 1]),
    "diags of numbers": lambda S, x, **_: S.diags(x[:3], offsets=[-1, 0, 1], shape=(5, 5)),
    "diags of elements": lambda S, x, **_: S.diags([[x[0], x[1]], [x[2]]], offsets=[0, 1]),
    "one of elements": lambda S, x, **_: S.diags([x[0], x[1]], offsets=0),
    "diags of an array of offsets": lambda S, x, **_: S.diags([x], offsets=np.array([0])),
    "diags of a dtype": lambda S, x, **_: S.diags([x, x[1:]], offsets=[0, 1], dtype=np.complex128),
    "diags_array": lambda S, x, **_: S.diags_array(x[:4], offsets=-1, format="csc"),
    "of dense": lambda S, D, x, **_: S.csr_matrix(D) @ x,
    "astype": lambda A, x, **_: A.astype(np.complex128) @ x,
}


def arguments(module, form, family, values, x, X, D):
    """Return what an operation gets, of lucid's module or of SciPy's."""
    places = (ROWS, COLUMNS) if module is scipy.sparse else (on_device(ROWS), on_device(COLUMNS))
    A = getattr(module, f"coo_{family}")((values, places), shape=(5, 5))
    return {"A": A.asformat(form), "S": module, "x": x, "X": X, "D": D}


@pytest.mark.parametrize("family", ["matrix", "array"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(rng, name, family):
    """Each operation of each format gives SciPy's numbers in SciPy's shape, recorded or not, and its gradients."""
    operation, given = OPERATIONS[name], [draw(rng, *shape) for shape in ((7,), (5,), (5, 3), (5, 5))]
    for form in FORMATS:
        wanted = dense(operation(**arguments(scipy.sparse, form, family, *given)))
        recorded = [lucid.tensor(array, requires_grad=True) for array in given]
        with_values = operation(**arguments(sparse, form, family, *recorded))
        plain = operation(**arguments(sparse, form, family, *map(on_device, given)))
        for result in (with_values, plain):
            assert (dense(result).shape, result.dtype) == (wanted.shape, wanted.dtype)
            np.testing.assert_allclose(dense(result), wanted, rtol=1e-12, atol=1e-13)
        assert (with_values.requires_grad, isinstance(plain, lucid.Tensor)) == (True, False)
        assert isinstance(with_values, lnp.ndarray | Sparse)

    def op(*tensors_given):
        return tensors(operation(**arguments(sparse, form, family, *tensors_given)))

    check_gradient(op, given, rng)
    if family == "array":
        check_second_derivative(op, given, rng)


ELSEWHERE = {
    "to",
    "detach",
    "__setitem__",
    "sum_duplicates",
    "__bool__",
    "__array__",
    "__repr__",
    "__getattr__",
    "__imul__",
    "__itruediv__",
    "sort_indices",
    "sorted_indices",
    "in_family",
} | {f"__{name}__" for name in ("eq", "ne", "lt", "le", "gt", "ge")}
"""Methods that other tests here call: what they give is as they are, or is SciPy's."""


@pytest.mark.cpu("about names")
def test_each_method_is_tried(rng, monkeypatch):
    """Whoever adds a method or an operator adds an operation with it."""
    called = set()

    def noted(method):
        def call(*args, **settings):
            called.add(method)
            return method(*args, **settings)

        return call

    methods = {name: method for name, method in {**vars(Stored), **vars(Sparse)}.items() if callable(method)}
    for name, method in methods.items():
        monkeypatch.setattr(Sparse, name, noted(method))
    given = [draw(rng, *shape) for shape in ((7,), (5,), (5, 3), (5, 5))]
    for operation in OPERATIONS.values():
        operation(**arguments(sparse, "coo", "array", *given))
    left = {name for name, method in methods.items() if method not in called}
    assert {name for name in left if name[:2] == "__" or name[0] != "_"} == ELSEWHERE


def test_powers(rng):
    """The operator of an array is elementwise, of sums of repeated elements; that of a matrix is SciPy's product."""
    values = draw(rng, 7)
    v = lucid.tensor(values, requires_grad=True)
    places = on_device(ROWS), on_device(COLUMNS)
    A = sparse.coo_array((v, places), shape=(5, 5))
    wanted = scipy.sparse.coo_matrix((values, (ROWS, COLUMNS)), shape=(5, 5)).toarray()
    np.testing.assert_allclose(dense(A**3), wanted**3, rtol=1e-12)
    (A**3).sum().backward()
    np.testing.assert_allclose(dense(v.grad), 3 * wanted[ROWS, COLUMNS] ** 2, rtol=1e-12)
    B = sparse.csr_matrix((on_device(values), places), shape=(5, 5))
    np.testing.assert_allclose(dense(B**2), wanted @ wanted, rtol=1e-12)


def test_the_first_power_is_a_matrix_of_its_own():
    """What changes it in place leaves the matrix that it was taken of."""
    for values in (on_device(np.array([1.0, 2.0])), lucid.tensor([1.0, 2.0], requires_grad=True) * 1):
        A = sparse.csr_matrix((values, (np.array([0, 1]), np.array([0, 1]))), shape=(2, 2))
        B = A**1
        B *= 3
        np.testing.assert_array_equal(dense(A), np.diag([1.0, 2.0]))
        np.testing.assert_array_equal(dense(B), np.diag([3.0, 6.0]))


@pytest.mark.parametrize("sizes", [(4, 5, 6), (3, 0, 2), (1, 7, 1), (0, 3, 4)])
def test_products_of_two(sizes, rng):
    """Of all formats, of SciPy's own too, the values on both sides get the gradients of a dense product."""
    n, k, m = sizes
    one, other = (scipy.sparse.random(*shape, 0.4, rng=rng) for shape in ((n, k), (k, m)))
    weights = rng.standard_normal((n, m))
    for first in FORMATS:
        for second in FORMATS:
            leaves = [lucid.tensor(each.data, requires_grad=True) for each in (one, other)]
            A, B = (
                getattr(sparse, f"{form}_array")((leaf, (on_device(each.row), on_device(each.col))), shape=each.shape)
                for form, leaf, each in zip((first, second), leaves, (one, other), strict=True)
            )
            C, wanted = A @ B, one.asformat(first) @ other.asformat(second)
            assert (C.format, C.shape) == (wanted.format, wanted.shape)
            np.testing.assert_allclose(dense(C), wanted.toarray(), rtol=1e-12)
            (C.toarray() * lucid.as_tensor(on_device(weights))).sum().backward()
            slopes = weights @ other.toarray().T, one.toarray().T @ weights
            for leaf, slope, each in zip(leaves, slopes, (one, other), strict=True):
                np.testing.assert_allclose(dense(leaf.grad), slope[each.row, each.col], rtol=1e-12, atol=1e-14)


@pytest.mark.cpu("with SciPy's arrays beside")
def test_products_beside_scipys_own(rng):
    """A matrix of SciPy's own on either side is a constant."""
    own = scipy.sparse.random(5, 5, 0.4, rng=rng)
    v = lucid.tensor(own.data, requires_grad=True)
    A = sparse.csr_array((v, (own.row, own.col)), shape=(5, 5))
    for product in (A @ own.tocsr(), own.tocsr() @ A, own.tocoo() @ A):
        assert product.requires_grad
        np.testing.assert_allclose(dense(product), (own @ own).toarray(), rtol=1e-12)


@pytest.mark.cpu("with SciPy's arrays beside")
def test_the_left_operand_says_what_a_star_is(rng):
    """A matrix of SciPy's times an array or a matrix of lucid's is what it is of two of SciPy's."""
    own, numbers = scipy.sparse.random(5, 5, 0.4, rng=rng), draw(rng, 5, 5)
    v = lucid.tensor(numbers.ravel(), requires_grad=True)
    for form in FORMATS:
        left = getattr(scipy.sparse, f"{form}_matrix")(own)
        for family in ("matrix", "array"):
            wanted = left * getattr(scipy.sparse, f"csr_{family}")(numbers)
            for values in (v, v.detach().numpy()):
                right = getattr(sparse, f"csr_{family}")((values, np.indices((5, 5)).reshape(2, -1)), shape=(5, 5))
                product = left * right
                assert isinstance(product, sparse.spmatrix)
                np.testing.assert_allclose(dense(product), wanted.toarray(), rtol=1e-12)
    with pytest.raises(TypeError, match=r"lucid's class at the left of a product with one of SciPy's"):
        scipy.sparse.csr_array(own) * right


@pytest.mark.parametrize("dtypes", [("f4", "i1"), ("F", "?"), ("f4", "f8"), ("i1", "i1"), ("?", "?"), ("?", "i1")])
@pytest.mark.cpu("CuPy's sparse matrices hold no integers")
def test_sums_and_products_of_any_dtypes(rng, dtypes):
    """They have SciPy's dtype and numbers; repeated elements are added in their own dtype, so that bools stay such."""
    for shapes in (((3, 3), (3, 3)), ((3, 3), (1, 1)), ((3, 3), (1, 3)), ((3, 1), (3, 3))):
        given = []
        for shape, dtype in zip(shapes, dtypes, strict=True):
            places = [rng.integers(0, size, 6) for size in shape]
            values = rng.integers(1, 3, 6).astype(dtype)
            own = scipy.sparse.coo_array((values, places), shape=shape)
            leaf = lucid.tensor(values, requires_grad=True) if own.dtype.kind in "fc" else values
            given.append((own, sparse.coo_array((values, places), shape), sparse.coo_array((leaf, places), shape)))
        (own, A, recorded), (others, B, recorded_other) = given
        operations = [lambda a, b: a.multiply(b)]
        if shapes[0] == shapes[1]:
            operations += [lambda a, b: a + b] + [lambda a, b: a - b] * (own.dtype != bool or others.dtype != bool)
        for operation in operations:
            wanted = operation(own, others)
            for result in (operation(A, B), operation(recorded, recorded_other)):
                assert result.dtype == wanted.dtype
                np.testing.assert_array_equal(dense(result), wanted.toarray())


@pytest.mark.cpu("CuPy's sums hold zeros")
def test_sums_of_plain_values_have_no_zeros(rng):
    """Whether a matrix is symmetric is asked by the number of elements of a difference, as SciPy gives it."""
    values = draw(rng, 4, 4)
    for form in FORMATS:
        A = sparse.csr_matrix(values + values.T).asformat(form)
        assert ((A - A.T).nnz, (A + -A).nnz, (A - 2 * A.T).nnz) == (0, 0, 16)
        assert A.multiply(sparse.csr_matrix(np.eye(4))).nnz == 4


def test_indices_of_large_matrices():
    """Places whose numbers, counted by rows, do not fit into 32 bits are told from one another."""
    rows, columns = 65540, 65536
    one = scipy.sparse.coo_matrix(([2.0, 3.0, 5.0], ([0, 7, 65536], [5, 6, 9])), (rows, columns))
    other = scipy.sparse.coo_matrix(([7.0, 11.0, 13.0], ([65536, 7, 0], [5, 6, 9])), (rows, columns))
    v = lucid.tensor(one.data, requires_grad=True)
    A = sparse.coo_matrix((v, (on_device(one.row), on_device(one.col))), one.shape)
    B = sparse.coo_matrix(other).to(DEVICE)
    for product in (A.multiply(B), B.multiply(A)):
        assert (dense(product.sum()), product.nnz) == (33.0, one.multiply(other).nnz)
        np.testing.assert_array_equal(dense(product.sum(axis=0)), one.multiply(other).sum(axis=0))
    A.multiply(B).sum().backward()
    np.testing.assert_array_equal(dense(v.grad), [0.0, 11.0, 0.0])


@pytest.mark.parametrize("width", [1, 1000, 40000])
def test_gradients_of_wide_products(rng, width):
    """The gradient of the values is the gradient times the operand at their places, of any number of columns."""
    values, X, G = draw(rng, 7), draw(rng, 5, width), draw(rng, 5, width)
    v = lucid.tensor(values, requires_grad=True)
    for form in FORMATS:
        A = sparse.coo_matrix((v, (on_device(ROWS), on_device(COLUMNS))), shape=(5, 5)).asformat(form)
        (gradient,) = lucid.autograd.grad(A @ lucid.tensor(X), v, lucid.tensor(G))
        np.testing.assert_allclose(dense(gradient), (G @ X.T)[ROWS, COLUMNS], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
def test_dtypes_and_sizes(rng, dtype):
    """Values of each dtype, of any number of elements, keep theirs, and beside others NumPy's; so do gradients."""
    for shape, count in (((4, 6), 9), ((3, 2), 0), ((0, 4), 0), ((1, 1), 3)):
        rows, columns = (rng.integers(0, max(1, size), count) for size in shape)
        values, x = draw(rng, count, dtype=dtype), draw(rng, shape[1], 2, dtype=dtype)
        wanted = scipy.sparse.coo_matrix((values, (rows, columns)), shape)
        for form in FORMATS:
            v, d = (lucid.tensor(array, requires_grad=True) for array in (values, x))
            A = sparse.coo_matrix((v, (rows, columns)), shape).asformat(form)
            y = A @ d
            assert (y.dtype, A.dtype, A.shape) == (np.dtype(dtype), np.dtype(dtype), shape)
            np.testing.assert_allclose(dense(y), wanted @ x, rtol=1e-5, atol=1e-6)
            y.backward(lucid.ones_like(y))
            assert (v.grad.dtype, d.grad.dtype) == (v.dtype, d.dtype)
            np.testing.assert_allclose(dense(d.grad), wanted.conj().T @ np.ones_like(wanted @ x), rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(dense(v.grad), x.conj().sum(1)[columns], rtol=1e-5, atol=1e-6)
    assert (
        sparse.eye(3).to(DEVICE) @ lucid.tensor(draw(rng, 3, dtype=dtype), requires_grad=True)
    ).dtype == np.result_type(dtype, np.float64)


def test_quotients_by_numbers(rng):
    """A matrix over a number has SciPy's dtype, double precision of float32 and integers too; so has `conj`."""
    for dtype in (np.float32, np.float64, np.complex64, bool):
        own = scipy.sparse.csr_matrix(np.eye(3, dtype=dtype))
        A = sparse.csr_matrix(own).to(DEVICE)
        values = lucid.tensor(A.data, requires_grad=dtype is not bool)
        recorded = sparse.csr_matrix((values, A.indices, A.indptr))
        for matrix in (A, recorded):
            for number in (3, np.float32(2), 1j):
                result, wanted = matrix / number, own / number
                assert result.dtype == wanted.dtype
                np.testing.assert_allclose(dense(result), wanted.toarray(), rtol=1e-6)
            assert matrix.conj().dtype == own.conj().dtype
        assert (recorded / 2).requires_grad == values.requires_grad


def test_options_are_not_ignored(rng):
    """An order of axes, a kind of casts and an array for the result do what SciPy's do, or are refused."""
    own = scipy.sparse.csr_matrix(draw(rng, 2, 3))
    A = sparse.csr_matrix(own).to(DEVICE)
    recorded = sparse.csr_matrix((lucid.tensor(A.data, requires_grad=True), A.indices, A.indptr), shape=(2, 3))
    for matrix in (A, recorded):
        np.testing.assert_array_equal(dense(matrix.transpose((1, 0))), own.toarray().T)
        with pytest.raises(ValueError, match=r"expected axes=None or \(1, 0\), the other order of two, got \(0, 1\)"):
            matrix.transpose((0, 1))
        with pytest.raises(TypeError, match="expected what float64 is cast to by casting='safe', got int32"):
            matrix.astype(np.int32, casting="safe")
        assert matrix.astype(np.complex128, casting="safe").dtype == np.complex128
    out = np.zeros((2, 3))
    assert A.to("cpu").toarray(out=out) is out
    np.testing.assert_array_equal(out, own.toarray())
    for matrix in (recorded,) if DEVICE == "cpu" else (recorded, A):
        with pytest.raises(TypeError, match="toarray of a sparse matrix: out is not taken"):
            matrix.toarray(out=on_device(out))


def test_an_element_is_a_number(rng):
    """An element of plain values is NumPy's number, with a hash, be it stored or not."""
    values = draw(rng, 2)
    A = sparse.csr_matrix((values, ([0, 1], [1, 0])), shape=(2, 2))
    assert {A[0, 1]: "stored", A[0, 0]: "none"} == {values[0]: "stored", 0.0: "none"}
    assert type(A[0, 1]) is np.float64


def test_a_recorded_scalar_is_not_added():
    """Whether a number that requires grad can be added does not hang on its value."""
    A = sparse.csr_matrix(np.eye(2)).to(DEVICE)
    for value in (0.0, 1.0):
        scalar = lucid.tensor(value, dtype=lucid.float64, requires_grad=True)
        for call in (lambda A, t=scalar: A + t, lambda A, t=scalar: t + A, lambda A, t=scalar: A - t):
            with pytest.raises(NotImplementedError, match="or one that requires grad, to a sparse matrix"):
                call(A)
    np.testing.assert_array_equal(dense(A + 0), np.eye(2))


@pytest.mark.parametrize("format", FORMATS)
def test_a_copy_in_a_dtype_has_memory_of_its_own(format, rng):
    """`astype` to the dtype that a matrix has copies its values, unless told not to, as SciPy's does."""
    v = lucid.tensor(draw(rng, 3), requires_grad=True)
    A = sparse.coo_matrix((v, (np.array([0, 1, 2]), np.array([1, 2, 0]))), (3, 3)).asformat(format)
    before = dense(A.data).copy()
    for copied, changes in ((A.astype(np.float64), False), (A.astype(np.float64, copy=False), True)):
        with lucid.no_grad():
            copied.data.mul_(2)
        assert (dense(A.data) != before).all() == changes
        assert (dense(copied.data) == before * 2).all()


def test_complex_gradients(rng):
    """Gradients of complex values and operands, real ones beside them too, are those of differences."""
    given = [draw(rng, 7, dtype=np.complex128), draw(rng, 5), draw(rng, 5, 3), draw(rng, 5, 5, dtype=np.complex128)]
    for name in ("A @ X", "x @ A", "multiply dense", "conj", "sum of columns"):

        def op(*tensors_given, name=name):
            return tensors(OPERATIONS[name](**arguments(sparse, "csr", "array", *tensors_given)))

        check_gradient(op, given, rng)
        check_second_derivative(op, given, rng)


def test_constructors(rng):
    """Of index arrays in rows, of SciPy's, of its own, of dense ones and of a shape; in int64 too."""
    values = draw(rng, 4)
    places = np.array([0, 3, 1, 2]), np.array([0, 2, 2, 4])
    wanted = scipy.sparse.csr_matrix((values, *places), shape=(3, 5))
    v = lucid.tensor(values, requires_grad=True)
    ours = sparse.csr_matrix((v, *places), shape=(3, 5))
    host = sparse.csr_matrix(wanted)
    for matrix in (
        ours, sparse.csc_matrix(ours), sparse.coo_array(ours), host, sparse.csr_matrix(wanted.toarray()),
        sparse.csr_matrix((v, *(part.astype(np.int64) for part in places))), sparse.csr_array(ours, dtype=np.float32),
    ):  # fmt: skip
        np.testing.assert_allclose(dense(matrix), wanted.toarray()[:, : matrix.shape[1]], rtol=1e-6)
    assert ours.data is v
    assert (ours.nnz, ours.shape, ours.format, ours.ndim, ours.requires_grad) == (4, (3, 5), "csr", 2, True)
    assert sparse.csr_matrix((2, 3)).toarray().shape == (2, 3)
    assert (sparse.issparse(ours), sparse.isspmatrix(sparse.csr_array(ours)), sparse.isspmatrix(ours)) == (
        True,
        False,
        True,
    )
    np.testing.assert_array_equal(ours.indptr if DEVICE == "cpu" else ours.indptr.get(), wanted.indptr)
    assert "csr_matrix of shape (3, 5), 4 elements of float64, on " in repr(ours)


def test_scipys_own_times_a_tensor(rng):
    """A matrix of SciPy's, or of CuPy's, leaves the operator to the tensor, on either side."""
    own = scipy.sparse.random(5, 5, 0.4, format="csr", rng=rng)
    theirs = own if DEVICE == "cpu" else sparse.csr_matrix(own).to(DEVICE).to_scipy()
    x, X = (lucid.tensor(draw(rng, *shape), requires_grad=True) for shape in ((5,), (5, 2)))
    for kind in (own, scipy.sparse.csr_array(own), own.tocoo()) if DEVICE == "cpu" else (theirs, theirs.tocsc()):
        for result, wanted in (
            (kind @ x, own @ dense(x)), (kind @ X, own @ dense(X)), (x @ kind, dense(x) @ own),
            (X.T @ kind, dense(X).T @ own),
            (kind * x if kind is theirs else kind @ x, own @ dense(x)), (x + kind, dense(x) + own.toarray()),
        ):  # fmt: skip
            assert result.requires_grad
            np.testing.assert_allclose(dense(result), wanted)
        np.testing.assert_allclose(dense(kind @ x.detach()), own @ dense(x))
        np.testing.assert_allclose(dense(kind @ lnp.asarray(x)), own @ dense(x))
    check_gradient(lambda t: tensors(theirs @ t), [draw(rng, 5)], rng)


def test_what_has_no_gradient(rng):
    """Comparisons, numbers of elements and truth are SciPy's, of recorded matrices too."""
    values = draw(rng, 7)
    A = sparse.csr_matrix((lucid.tensor(values, requires_grad=True), (ROWS, COLUMNS)), shape=(5, 5))
    wanted = scipy.sparse.csr_matrix((values, (ROWS, COLUMNS)), shape=(5, 5))
    for ours, own in ((A > 0, wanted > 0), (A != A.T, wanted != wanted.T), (A != A, wanted != wanted)):
        np.testing.assert_array_equal(dense(ours), own.toarray())
    assert (A.getnnz(), A.count_nonzero()) == (wanted.getnnz(), wanted.count_nonzero())
    assert hash(A) != hash(A.copy())
    with pytest.raises(ValueError, match="ambiguous"):
        bool(A)


def test_nothing_is_sorted_in_place(rng):
    """What SciPy sorts on the way is a copy: values, and matrices of the same pattern, keep their order."""
    values, places = draw(rng, 5), (np.array([3, 1, 0, 1, 0]), np.array([0, 3, 5, 5]))
    v = lucid.tensor(values)
    A = sparse.csr_matrix((v, *(on_device(part) for part in places)), shape=(3, 4))
    wanted, B = dense(A), A * 2
    for use in (
        A.max,
        A.copy().sum_duplicates,
        lambda: B @ B.T,
        lambda: B @ lucid.ones(4, dtype=lucid.float64),
        B.power(2).max,
    ):
        use()
        np.testing.assert_array_equal(dense(v), values)
        np.testing.assert_array_equal(dense(A), wanted)
        np.testing.assert_array_equal(dense(B), wanted * 2)
    S = (
        sparse.csc_matrix((v[:3], places[0][:3] % 3, np.array([0, 3, 3, 3])), shape=(3, 3))
        + sparse.eye(3).to(DEVICE) * 9
    )
    before = dense(S)
    sparse.linalg.spsolve(S, lucid.ones(3, dtype=lucid.float64))
    np.testing.assert_array_equal(dense(S), before)


REFUSED = {
    "no rule": (lambda A, x: A.max(), TypeError, r"csr_matrix.max has no rule, .* A.toarray\(\)"),
    "two sparse": (lambda A, x: A / A, TypeError, "a quotient of two sparse matrices has no rule"),
    "sparse sizes": (lambda A, x: A @ A[:3], ValueError, r"dimension mismatch: .*\(5, 5\) and one of \(3, 5\)"),
    "power": (lambda A, x: A**0.5, ValueError, "expected a square matrix and a whole power of 0 or more"),
    "a function": (lambda A, x: sparse.kron(A, A), TypeError, "kron has no rule"),
    "a solver": (lambda A, x: sparse.linalg.expm(A), TypeError, "linalg.expm has no rule"),
    "an array of one object": (lambda A, x: np.asarray(A), TypeError, r"no array of NumPy's: use A.toarray\(\)"),
    "out": (lambda A, x: A.sum(out=x), TypeError, "out is not taken"),
    "sizes": (lambda A, x: A @ x[:3], ValueError, "dimension mismatch: expected 5 rows.*got shape"),
    "scalars": (lambda A, x: A @ 2, ValueError, "use '\\*' instead"),
    "another shape": (lambda A, x: A + A[:2], ValueError, "of shapes"),
    "halves": (lambda A, x: A.astype(np.float16) @ x.half(), DtypeError, "float16 is not recorded: expected float32"),
    "a name": (lambda A, x: sparse.no_such, AttributeError, "no attribute 'no_such', nor has SciPy's"),
    "an attribute": (lambda A, x: A.no_such, AttributeError, "no_such"),
}


CHANGES = {
    "setdiag": lambda A: A.setdiag(2.0),
    "setdiag of an array": lambda A: A.setdiag(A.diagonal() + 1, k=0),
    "eliminate_zeros": lambda A: A.eliminate_zeros(),
    "sum_duplicates": lambda A: A.sum_duplicates(),
    "resize": lambda A: A.resize((2, 3)),
    "element": lambda A: A.__setitem__((0, 1), 3.0),
    "rows": lambda A: A.__setitem__(slice(0, 2), np.ones((2, 5))),
    "itself": lambda A: A.__setitem__(slice(0, 5), 2 * A),
}
"""What changes a matrix of SciPy's in place."""


@pytest.mark.cpu("CuPy's matrices have fewer of these methods")
@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
@pytest.mark.parametrize("family", ["matrix", "array"])
@pytest.mark.parametrize("format", FORMATS)
def test_what_changes_a_matrix_changes_it(rng, format, family):
    """A method of SciPy's that returns nothing has changed its matrix; of values that require grad it is refused."""
    values = draw(rng, len(ROWS))
    values[0] = 0.0
    made = [
        getattr(module, f"{format}_{family}")((values, (ROWS, COLUMNS)), shape=(5, 5))
        for module in (scipy.sparse, sparse)
    ]
    for name, change in CHANGES.items():
        scipys, lucids = (matrix.copy() for matrix in made)
        try:
            change(scipys)
        except TypeError as error:  # SciPy's COO has no elements to write to
            with pytest.raises(TypeError, match=re.escape(str(error))):
                change(lucids)
            continue
        change(lucids)
        assert (lucids.nnz, lucids.shape) == (scipys.nnz, scipys.shape), name
        assert np.array_equal(lucids.toarray(), scipys.toarray()), name
    recorded = getattr(sparse, f"{format}_{family}")(
        (lnp.asarray(lucid.tensor(values, requires_grad=True)), (ROWS, COLUMNS))
    )
    before = dense(recorded)
    for name in CHANGES.keys() - {"sum_duplicates", "setdiag of an array"}:
        with pytest.raises(TypeError, match="and a value requires grad"):
            CHANGES[name](recorded)
    assert np.array_equal(dense(recorded), before)
    with pytest.raises(TypeError, match="and a value requires grad"):
        made[1][0, 1] = lucid.tensor(1.0, requires_grad=True)


@pytest.mark.cpu("CuPy has none of these formats")
@pytest.mark.parametrize("name", ["lil_matrix", "dok_matrix", "dia_matrix", "bsr_matrix", "lil_array", "dia_array"])
def test_other_formats_take_a_matrix(rng, name):
    """A matrix that SciPy's functions made is changed in another format, as SciPy's own, and taken back."""
    matrix, kind = sparse.csr_matrix(np.triu(draw(rng, 4, 4))), getattr(sparse, name)
    other = kind(matrix)
    assert type(other) is getattr(scipy.sparse, name)
    assert isinstance(other, kind)
    assert issubclass(type(other), kind)
    assert not isinstance(matrix, kind)
    assert np.array_equal(dense(sparse.csr_matrix(other)), dense(matrix))
    with pytest.raises(TypeError, match="and a value requires grad"):
        kind(sparse.csr_matrix((lucid.tensor([1.0], requires_grad=True), ([0], [0])), shape=(1, 1)))


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(rng, name):
    """What is not there is refused by name, with what to do."""
    call, error, words = REFUSED[name]
    A = sparse.csr_matrix((lucid.tensor(draw(rng, 7), requires_grad=True), (ROWS, COLUMNS)), shape=(5, 5))
    with pytest.raises(error, match=words):
        call(A, lucid.tensor(draw(rng, 5)))


def test_without_scipy(monkeypatch):
    """Where SciPy is missing, the error says how to install it."""
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(ModuleNotFoundError, match="needs SciPy, which is not installed: pip install 'lucid-cupy"):
        sparse.csr_matrix((np.ones(1), ([0], [0])))


@pytest.mark.parametrize("elements", [[], [3.0], [3.0, 4.0]])
def test_a_product_with_a_matrix_of_one_place(elements):
    """It counts as the sum of what is stored there, which may be nothing, or one place twice."""
    places = [0] * len(elements), [0] * len(elements)
    for maker in ("coo_matrix", "csr_matrix"):
        one, plain = (
            getattr(each, maker)((np.array(elements), places), shape=(1, 1)) for each in (sparse, scipy.sparse)
        )
        A = scipy.sparse.csr_matrix(np.array([[1.0, 0.0], [2.0, 5.0]]))
        leaf = lucid.tensor(A.data, requires_grad=True, device="cpu")
        result = sparse.csr_matrix((leaf, A.indices, A.indptr), shape=A.shape).multiply(one)
        np.testing.assert_array_equal(result.toarray().detach().numpy(), A.multiply(plain).toarray())


def test_a_conjugate_is_a_copy():
    """``conj()`` of a real matrix shares no memory with it, unless ``copy=False`` says so."""
    A = sparse.csr_matrix(np.eye(2))
    A.conj().data[0] = 7
    assert A.data.tolist() == [1.0, 1.0]
    assert A.conj(copy=False) is A
