"""Products by a pattern: of values and indices that lie anywhere in memory."""

from __future__ import annotations

import numpy as np
import scipy.sparse

import lucid
from lucid.scipy import sparse
from tests.scipy.sparse.test_matrices import dense, draw, on_device

PLACES = np.array([0, 0, 1]), np.array([0, 2, 1])


def test_values_out_of_order_in_memory(rng):
    """Strided, reversed and expanded values, and strided index arrays, give the numbers of a copy."""
    numbers, x, X = draw(rng, 6), draw(rng, 3), draw(rng, 3, 2)
    w = lucid.tensor(numbers, requires_grad=True)
    plain = on_device(numbers)
    for values, wanted in (
        (w[::2], numbers[::2]), (plain[::2], numbers[::2]), (plain[::-2], numbers[::-2]),
        (w.reshape(3, 2)[:, 1], numbers[1::2]), (w[4:5].expand(3), numbers[[4, 4, 4]]),
    ):  # fmt: skip
        matrix = scipy.sparse.csr_matrix((wanted, PLACES), shape=(2, 3))
        for form in ("coo", "csr", "csc"):
            A = sparse.coo_matrix((values, PLACES), shape=(2, 3)).asformat(form)
            for right in (x, X):
                np.testing.assert_allclose(dense(A @ lucid.tensor(right)), matrix @ right)
            np.testing.assert_allclose(dense(A), matrix.toarray())
    wide = [on_device(np.repeat(part, 2).astype(np.int32)) for part in (PLACES[1], np.array([0, 2, 3]))]
    A = sparse.csr_matrix((w[:3], *(part[::2] for part in wide)), shape=(2, 3))
    matrix = scipy.sparse.csr_matrix((numbers[:3], PLACES), shape=(2, 3))
    np.testing.assert_allclose(dense(A @ lucid.tensor(x)), matrix @ x)


def test_second_derivatives_of_a_sum(rng):
    """The gradient of a sum is one number at all places in memory: the product by it is that of a copy."""
    v = lucid.tensor(draw(rng, 3), requires_grad=True)
    for shape in ((3,), (3, 2)):
        x = lucid.tensor(draw(rng, *shape), requires_grad=True)
        A = sparse.csr_matrix((v, PLACES), shape=(2, 3))
        of_values, _ = lucid.autograd.grad((A @ x).sum(), [v, x], create_graph=True)
        # the sum of the gradients of the values is the sum of the elements of x at their columns
        (second,) = lucid.autograd.grad(of_values.sum(), [x])
        np.testing.assert_array_equal(dense(second), np.ones(shape))


def test_repeated_elements_are_added_in_scipys_order(rng):
    """Sums of many elements of one place are SciPy's to the bit, of plain values and of recorded ones."""
    places, v = rng.integers(0, 3, (2, 300)), draw(rng, 300)
    for name in ("coo_matrix", "csr_matrix", "csc_array"):
        for form in ("csr", "csc"):
            wanted = getattr(scipy.sparse, name)((v, tuple(places)), shape=(3, 3)).asformat(form)
            for values in (v, lucid.tensor(v, device="cpu", requires_grad=True)):
                A = getattr(sparse, name)((values, tuple(places)), shape=(3, 3)).asformat(form)
                np.testing.assert_array_equal(dense(A), wanted.toarray())
    parts = v, places[1], [0, 100, 100, 300]
    A, wanted = sparse.csr_matrix(parts, shape=(3, 3)), scipy.sparse.csr_matrix(parts, shape=(3, 3))
    A.sum_duplicates()
    wanted.sum_duplicates()
    np.testing.assert_array_equal(A.data, wanted.data)
