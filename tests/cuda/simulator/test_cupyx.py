"""The real cupyx on simulated devices: what it can import is imported, and gives SciPy's numbers."""

from __future__ import annotations

import importlib
import pkgutil
import warnings

import numpy as np
import pytest
import scipy.sparse

from lucid.base import gpu

pytestmark = pytest.mark.usefixtures("simulated")

OPTIONAL = {"cupyx.cutensor", "cupyx._cutensor"}
"""What CuPy itself imports only where a library is that it does without."""


@pytest.fixture
def cupy():
    """Give CuPy."""
    return gpu.cupy()


def test_every_module_is_imported():
    """What is not there is refused where it is called: an import takes nothing along that would work."""
    import cupyx

    failed = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for found in pkgutil.walk_packages(cupyx.__path__, "cupyx.", onerror=failed.append):
            try:
                importlib.import_module(found.name)
            except ImportError as error:
                if found.name not in OPTIONAL and "IPython" not in str(error):
                    failed.append((found.name, str(error)))
    assert not failed


def numbers(value):
    """Return arrays of a result, on the host."""
    if isinstance(value, tuple | list):
        return [array for each in value for array in numbers(each)]
    return [np.asarray(value.get() if gpu.is_gpu_array(value) else value)]


CALLS = {
    "signal": (
        "convolve(x, x[:9])", "fftconvolve(x, x[:9])", "convolve2d(y, y[:3, :3])", "lfilter(x[:2], x[2:4] + 3, x)",
        "hilbert(x)", "detrend(x)", "resample(x, 30)", "medfilt(x, 5)", "savgol_filter(x, 7, 2)", "stft(x, nperseg=16)",
        "butter(3, 0.2)", "cspline1d(x)", "find_peaks(x)[0]",
    ),
    "interpolate": (
        "CubicSpline(t, x)(u)", "make_interp_spline(t, x)(u)", "PchipInterpolator(t, x)(u)",
        "RegularGridInterpolator((t,), x)(u[:, None])", "InterpolatedUnivariateSpline(t, x)(u)",
    ),
    "ndimage": ("gaussian_filter(y, 1.2)", "zoom(y, 1.5)", "label(y > 0)", "distance_transform_edt(y > 0)"),
    "special": ("erf(x)", "gammaln(t + 0.5)", "expi(x)"),
    "fft": ("dct(x)", "rfftn(y)", "fht(x, 0.1, 0.5)"),
    "stats": ("zscore(x)", "entropy(t + 1)", "trim_mean(x, 0.1)"),
    "linalg": ("lu(y)", "expm(y[:5, :5])", "toeplitz(x)"),
}  # fmt: skip


@pytest.mark.parametrize("module", CALLS)
def test_cupyx_is_scipy(cupy, rng, module):
    """Functions of each module give SciPy's numbers."""
    values = {"x": rng.standard_normal(40), "y": rng.standard_normal((9, 11)), "t": np.arange(40.0)}
    values["u"] = rng.uniform(0, 39, 12)
    given = {name: cupy.asarray(value) for name, value in values.items()}
    ours, theirs = (vars(importlib.import_module(f"{package}.scipy.{module}".lstrip("."))) for package in ("cupyx", ""))
    for call in CALLS[module]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found, wanted = numbers(eval(call, dict(ours), given)), numbers(eval(call, dict(theirs), values))
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-9, err_msg=call)


# ---- sparse matrices ----


def dense(value):
    """Return a matrix, sparse or not, on the host or on the device, as an array on the host."""
    value = value.toarray() if hasattr(value, "toarray") else value
    return value.get() if gpu.is_gpu_array(value) else np.asarray(value)


def drawn(rng, shape, dtype):
    """Draw numbers of any dtype."""
    values = rng.standard_normal(shape)
    return (values + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else values).astype(dtype)


OPERATIONS = {
    "itself": lambda a, **_: a,
    "times a vector": lambda a, x, **_: a @ x[0],
    "times a matrix": lambda a, x, **_: a @ x.T,
    "a matrix times it": lambda a, y, **_: y @ a,
    "its transpose": lambda a, y, **_: a.T @ y.T,
    "in rows": lambda a, **_: a.tocsr(),
    "in columns": lambda a, **_: a.tocsc(),
    "by both": lambda a, **_: a.tocoo(),
    "a sum": lambda a, **_: a * 2 + a.tocsc(),
    "a product": lambda a, **_: a @ a.T.tocsr(),
    "the sums of columns": lambda a, **_: a.sum(0),
    "without small ones": lambda a, **_: without_zeros(a),
}


def without_zeros(a):
    """Return a copy in which half of the elements are zeros, and are left out."""
    a = a.tocsr()
    a.sum_duplicates()
    a.data[: a.data.size // 2] = 0
    a.eliminate_zeros()
    return a


@pytest.mark.parametrize(
    ("dtype", "index"), [("f", "int32"), ("d", "int32"), ("F", "int32"), ("D", "int32"), ("d", "int64"), ("F", "int64")]
)
def test_sparse_matrices(cupy, rng, dtype, index):
    """Formats, products and sums are SciPy's, with empty rows, repeated elements, and none at all."""
    sparse = importlib.import_module("cupyx.scipy.sparse")
    for shape, count in (((7, 5), 0), ((7, 5), 9), ((4, 9), 60), ((1, 3), 2), ((0, 3), 0)):
        places = [rng.integers(0, max(1, size), count).astype(index) for size in shape]
        values = drawn(rng, count, dtype)
        wanted = scipy.sparse.coo_matrix((values, tuple(places)), shape)
        found = sparse.coo_matrix((cupy.asarray(values), tuple(map(cupy.asarray, places))), shape)
        found.row, found.col = (x.astype(index) for x in (found.row, found.col))  # CuPy chooses the shorter
        given = {"x": drawn(rng, (3, shape[1]), dtype), "y": drawn(rng, (3, shape[0]), dtype)}
        for kind in ("csr", "csc", "coo"):
            for name, operation in OPERATIONS.items():
                one = operation(found.asformat(kind), **{key: cupy.asarray(value) for key, value in given.items()})
                other = dense(operation(wanted.asformat(kind), **given))
                assert one.dtype == dtype
                np.testing.assert_allclose(dense(one), other, rtol=1e-5, atol=1e-5, err_msg=f"{kind}, {name}, {shape}")
        full = np.where(rng.random(shape) < 0.5, drawn(rng, shape, dtype), 0).astype(dtype)
        for kind in (sparse.csr_matrix, sparse.csc_matrix, sparse.coo_matrix):
            np.testing.assert_array_equal(dense(kind(cupy.asarray(full))), full)


@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
def test_products_of_sparse_matrices(cupy, rng, dtype):
    """Of one column, where each row ends where the next one begins, and of more: elements and places are SciPy's."""
    sparse = importlib.import_module("cupyx.scipy.sparse")
    for rows, terms, columns, share in ((6, 1, 1, 1), (6, 3, 1, 0.6), (7, 4, 2, 0.5), (5, 6, 9, 0.3), (3, 2, 4, 0)):
        one, other = (
            scipy.sparse.csr_matrix(drawn(rng, shape, dtype) * (rng.random(shape) < share))
            for shape in ((rows, terms), (terms, columns))
        )
        wanted, found = one @ other, sparse.csr_matrix(one) @ sparse.csr_matrix(other)
        wanted.sort_indices()
        np.testing.assert_array_equal(dense(found.indptr), wanted.indptr)
        np.testing.assert_array_equal(dense(found.indices), wanted.indices)
        np.testing.assert_allclose(dense(found.data), wanted.data, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
def test_sparse_systems(cupy, rng, dtype):
    """Systems are solved, of triangles, by factors and at once."""
    sparse, solvers = (importlib.import_module(f"cupyx.scipy.sparse{name}") for name in ("", ".linalg"))
    full = drawn(rng, (9, 9), dtype) * (rng.random((9, 9)) < 0.4) + 8 * np.eye(9, dtype=dtype)
    b, a = drawn(rng, (9, 2), dtype), sparse.csr_matrix(cupy.asarray(full))
    solved = {
        "at once": (solvers.spsolve(a, cupy.asarray(b)), full),
        "by factors": (solvers.splu(a.tocsc()).solve(cupy.asarray(b)), full),
        "adjoint": (solvers.splu(a.tocsc()).solve(cupy.asarray(b), "H"), full.conj().T),
        "a triangle": (solvers.spsolve_triangular(sparse.tril(a, format="csr"), cupy.asarray(b)), np.tril(full)),
    }
    for name, (x, matrix) in solved.items():
        np.testing.assert_allclose(matrix @ dense(x), b, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
def test_singular_systems_are_told(cupy, dtype):
    """A pivot that is zero is told by its number, with the tolerance 0 that CuPy asks with; others are not."""
    sparse, solvers = (importlib.import_module(f"cupyx.scipy.sparse{name}") for name in ("", ".linalg"))
    full = cupy.asarray(np.array([[1, 2, 0], [2, 4, 0], [0, 0, 1]], dtype))
    with pytest.warns(UserWarning, match=r"near singular under tolerance 0 \(singularity: \[1\]\)"):
        solvers.spsolve(sparse.csr_matrix(full), cupy.ones(3, dtype))
    full[1, 1] = 5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solvers.spsolve(sparse.csr_matrix(full), cupy.ones(3, dtype))


def test_not_a_number_is_an_element(cupy):
    """Zeros of both signs are left out, NaN is not: as of SciPy's matrices."""
    sparse = importlib.import_module("cupyx.scipy.sparse")
    for dtype in "fdFD":
        values = np.array([0.0, np.nan, -0.0, 1e-30, np.inf], dtype)
        places = np.array([0, 0, 1, 1, 1]), np.array([0, 2, 0, 1, 2])
        wanted = scipy.sparse.csr_matrix((values, places), (2, 3))
        found = sparse.csr_matrix((cupy.asarray(values), tuple(map(cupy.asarray, places))), (2, 3))
        for matrix in (wanted, found):
            matrix.eliminate_zeros()
        np.testing.assert_array_equal(dense(found.data), wanted.data)
        np.testing.assert_array_equal(dense(found.indices), wanted.indices)


def test_an_index_outside_is_reported(cupy, capfd):
    """A column that there is none of leads out of the vector: the call fails, and tells of the access."""
    sparse = importlib.import_module("cupyx.scipy.sparse")
    cusparse = importlib.import_module("cupyx.cusparse")
    places = cupy.asarray([0, 5000], "i"), cupy.asarray([0, 1, 2], "i")
    a = sparse.csr_matrix._from_parts(cupy.ones(2), *places, (2, 3), has_canonical_format=True)
    with pytest.raises(cupy.cuda.cusparse.CuSparseError, match="EXECUTION_FAILED"):
        cusparse.spmv(a, cupy.ones(3))
    assert "cusparseSpMV: out-of-range read" in capfd.readouterr().err
