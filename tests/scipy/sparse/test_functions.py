"""Functions of sparse matrices: classes, dtypes and formats of SciPy's results, and its names of classes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import lucid
from lucid.scipy import sparse
from tests.device import DEVICE
from tests.scipy.sparse.test_matrices import dense, draw

PLACES = np.array([0, 0, 1]), np.array([0, 2, 1])


def both(rng, kind="csr_matrix"):
    """Return a recorded matrix, and SciPy's of the same values."""
    values = draw(rng, 3)
    tensor = lucid.tensor(values, requires_grad=True)
    return (
        getattr(sparse, kind)((tensor, PLACES), shape=(2, 3)),
        getattr(scipy.sparse, kind)((values, PLACES), shape=(2, 3)),
    )


STACKS = {
    "hstack": lambda S, A, B: S.hstack([A, B]),
    "vstack": lambda S, A, B: S.vstack([A, B]),
    "block_diag": lambda S, A, B: S.block_diag([A, B]),
    "bmat": lambda S, A, B: S.bmat([[A, None], [None, B]]),
    "block_array": lambda S, A, B: S.block_array([[A, None], [None, B]]),
    "tril": lambda S, A, B: S.tril(A),
    "triu": lambda S, A, B: S.triu(B, k=1),
}


@pytest.mark.parametrize("kinds", [("csr_matrix", "csr_array"), ("csr_array", "csc_array"), ("coo_matrix",) * 2])
@pytest.mark.parametrize("name", STACKS)
def test_the_class_of_stacks(rng, name, kinds):
    """A stack with an array in it is an array, and `block_array` always: as in SciPy, recorded or plain."""
    (A, a), (B, b) = (both(rng, kind) for kind in kinds)
    wanted = STACKS[name](scipy.sparse, a, b)
    recorded, plain = STACKS[name](sparse, A, B), STACKS[name](sparse, A.detach(), B.detach())
    for result in (recorded, plain):
        assert isinstance(result, sparse.sparray) == isinstance(wanted, scipy.sparse.sparray)
        np.testing.assert_array_equal(dense(result), wanted.toarray())
    assert recorded.requires_grad


def test_arrays_give_arrays(rng):
    """A product of Kronecker's of two arrays is an array, and one of matrices is none, on a device too."""
    for kind in ("csr_array", "csc_matrix"):
        A = both(rng, kind)[0].detach()
        assert isinstance(sparse.kron(A, A), sparse.sparray) == (kind == "csr_array")


def test_a_dtype_of_stacks(rng):
    """`dtype` is that of the result, however narrow: it changes no place."""
    A, own = both(rng)
    for dtype in (np.float32, np.complex128, bool):
        for name in ("hstack", "vstack", "block_diag"):
            result, wanted = (getattr(S, name)([M, M], dtype=dtype) for S, M in ((sparse, A), (scipy.sparse, own)))
            assert result.dtype == wanted.dtype
            np.testing.assert_array_equal(dense(result), wanted.toarray())
    ones = lucid.tensor(np.ones(300), requires_grad=True)
    long = sparse.csr_matrix((ones, (np.zeros(300, int), np.arange(300))), shape=(1, 300))
    # CuPy's sparse matrices hold no integers
    narrow = np.int8 if DEVICE == "cpu" else np.float32
    np.testing.assert_array_equal(dense(sparse.vstack([long, long], dtype=narrow)), np.ones((2, 300)))


def test_formats_that_lucid_lacks(rng):
    """Recorded matrices are made in no other format: it is refused with what to do."""
    A, _ = both(rng)
    for call in (
        lambda: sparse.hstack([A, A], format="lil"),
        lambda: sparse.diags([A.data], [0], format="dia"),
        lambda: sparse.tril(A, format="bsr"),
        lambda: A.asformat("dok"),
    ):
        with pytest.raises(TypeError, match=r"to(lil|dia|bsr|dok) has no rule, .* A.toarray\(\)"):
            call()


@pytest.mark.cpu("SciPy's own matrices beside")
@pytest.mark.parametrize("name", ["hstack", "vstack", "bmat", "block_diag"])
def test_formats_of_stacks(rng, name):
    """A stack has SciPy's format, whether or not it is recorded: COO of what has one matrix of COO."""
    for kinds in ("coo coo", "coo csr", "csr csr", "csc csc", "csc csr"):
        recorded, own = zip(*[both(rng, f"{kind}_matrix") for kind in kinds.split()], strict=True)
        blocks = (lambda parts: [parts]) if name == "bmat" else list
        wanted = getattr(scipy.sparse, name)(blocks(own))
        for parts in (recorded, [matrix.detach() for matrix in recorded]):
            result = getattr(sparse, name)(blocks(parts))
            assert result.format == wanted.format
            np.testing.assert_array_equal(dense(result), wanted.toarray())


@pytest.mark.cpu("SciPy's own matrices beside")
def test_an_array_of_blocks(rng):
    """An array of objects holds matrices, as `bmat` takes them; any other array of them is refused."""
    A, own = both(rng)
    for matrix in (A, A.detach()):
        blocks = np.array([[matrix, None], [None, matrix]], dtype=object)
        assert (blocks.shape, blocks[1, 1] is matrix) == ((2, 2), True)
        np.testing.assert_array_equal(dense(sparse.bmat(blocks)), scipy.sparse.block_diag([own, own]).toarray())
        with pytest.raises(TypeError, match=r"a sparse matrix is no array of NumPy's: use A.toarray\(\)"):
            np.asarray(matrix)


def test_bases_of_scipys_classes(rng):
    """`spmatrix` and `sparray` are the classes of lucid's matrices, too, and of recorded ones."""
    for kind in ("coo_matrix", "csr_array", "csc_matrix"):
        for matrix in both(rng, kind):
            families = isinstance(matrix, sparse.spmatrix), isinstance(matrix, sparse.sparray)
            assert families == (kind.endswith("matrix"), kind.endswith("array"))
        lucids = getattr(sparse, kind)
        assert (issubclass(lucids, sparse.spmatrix), issubclass(lucids, sparse.sparray)) == families
    assert not isinstance(np.eye(2), sparse.spmatrix)
    assert not issubclass(sparse.matrices.Sparse, sparse.spmatrix | sparse.sparray)


@pytest.mark.cpu("SciPy's own matrices beside")
def test_questions(rng):
    """What no gradient goes through is answered of recorded matrices, as of SciPy's."""
    for kind in ("coo_matrix", "csr_matrix", "csc_matrix", "csr_array"):
        for matrix in both(rng, kind):
            answers = [getattr(sparse, f"isspmatrix_{form}")(matrix) for form in ("coo", "csr", "csc", "lil")]
            assert answers == [kind == f"{form}_matrix" for form in ("coo", "csr", "csc", "lil")]
    A, own = both(rng)
    assert sparse.linalg.is_sptriangular(A) == scipy.sparse.linalg.is_sptriangular(own)
    assert sparse.linalg.spbandwidth(A) == scipy.sparse.linalg.spbandwidth(own)


def test_missing_arguments():
    """A stack of nothing is refused in Python's words."""
    with pytest.raises(TypeError, match="missing a required argument: 'blocks'"):
        sparse.hstack(format="csr")


@pytest.mark.cpu("SciPy's own matrices beside")
@pytest.mark.filterwarnings("ignore:.*is switching to the sparse array interface")
def test_the_triangle_of_a_dense_matrix():
    """It keeps its dtype."""
    assert sparse.tril(np.eye(2, dtype=np.float32)).dtype == np.float32


@pytest.mark.cpu("SciPy's own matrices")
def test_a_result_that_is_the_argument_is_a_copy():
    """A write into it leaves SciPy's matrix as it is."""
    matrix = scipy.sparse.csr_matrix(np.diag([1.0, 2.0]))
    for name in ("permute_dims", "tril", "triu"):
        function = getattr(sparse, name)
        made = function(matrix, (0, 1)) if name == "permute_dims" else function(matrix)
        made.data[...] = 5.0
        assert matrix.data.tolist() == [1, 2]
