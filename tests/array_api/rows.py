"""How each function of the array API is called, and what it is compared with: NumPy's function of the name."""

from __future__ import annotations

import numpy as np

draw = np.random.default_rng(0)
A, B = draw.uniform(0.2, 0.9, (3, 4)), draw.uniform(0.2, 0.9, (3, 4))
V, W = draw.permutation(np.linspace(0.2, 0.9, 6)), draw.permutation(np.linspace(0.25, 0.95, 6))
C = A + 1j * B
S = draw.uniform(-0.3, 0.3, (3, 3)) + 2 * np.eye(3)
P = S @ S.T
I, J = draw.integers(0, 5, (3, 4)), draw.integers(1, 5, (3, 4))
T = I > 2

ONE = tuple(
    """abs acos asin asinh atan atanh ceil conj cos cosh exp expm1 floor isfinite isinf isnan log log10
    log1p log2 negative positive reciprocal round sign signbit sin sinh sqrt square tan tanh trunc imag
    real""".split()  # noqa: SIM905 - rows of words
)
TWO = tuple(
    """add atan2 copysign divide equal floor_divide greater greater_equal hypot less less_equal logaddexp
    maximum minimum multiply nextafter not_equal pow remainder subtract""".split()  # noqa: SIM905 - rows of words
)
BITS = ("bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor")
OVER = ("all", "any", "count_nonzero", "max", "mean", "min", "prod", "std", "sum", "var")

ROWS: list[tuple[str, tuple, dict]] = [
    *[(name, (A,), {}) for name in ONE],
    *[(name, (C,), {}) for name in ("abs", "acos", "conj", "exp", "expm1", "log", "real", "sqrt", "tanh")],
    *[(name, (C,), {}) for name in ("imag", "sign")],
    ("acosh", (A + 1,), {}),
    ("acosh", (C,), {}),
    *[(name, (A, B), {}) for name in TWO],
    *[(name, (A, B[0]), {}) for name in ("add", "pow", "maximum")],
    *[(name, (A, 0.5), {}) for name in TWO if name != "nextafter"],
    *[(name, (0.5, A), {}) for name in ("subtract", "divide", "pow", "less", "floor_divide", "remainder")],
    *[(name, (I, J), {}) for name in (*BITS, "floor_divide", "remainder", "add", "multiply")],
    *[(name, (T, ~T), {}) for name in ("bitwise_and", "logical_and", "logical_or", "logical_xor", "equal")],
    ("bitwise_invert", (I,), {}),
    ("logical_not", (T,), {}),
    ("clip", (A, 0.3, 0.7), {}),
    ("clip", (A,), {"min": B}),
    *[(name, (x,), options) for name in OVER for x in (A, I) for options in (
        {}, {"axis": 0}, {"axis": (0, 1), "keepdims": True}, {"axis": -1, "keepdims": True},
    ) if not (x is I and name in {"mean", "std", "var"})],
    ("std", (A,), {"axis": 1, "correction": 1}),
    ("var", (A,), {"correction": 1.0}),
    ("sum", (I.astype(np.int8),), {"dtype": "int8"}),
    ("prod", (I.astype(np.int8),), {"dtype": "int8", "axis": 1}),
    ("cumulative_sum", (V,), {}),
    ("cumulative_sum", (A,), {"axis": 1, "include_initial": True}),
    ("cumulative_sum", (I.astype(np.int8),), {"axis": 0, "dtype": "int8"}),
    ("cumulative_prod", (V,), {"include_initial": True}),
    ("cumulative_prod", (A,), {"axis": 0}),
    *[(name, (A,), options) for name in ("argmax", "argmin") for options in ({}, {"axis": 1}, {"keepdims": True})],
    ("diff", (A,), {}),
    ("diff", (A,), {"axis": 0, "n": 2}),
    ("diff", (A,), {"axis": 0, "prepend": B, "append": B[:1]}),
    ("sort", (V,), {}),
    ("sort", (A,), {"axis": 0}),
    ("argsort", (A,), {"axis": 0}),
    ("nonzero", (I,), {}),
    ("searchsorted", (np.sort(V), A), {"side": "right"}),
    ("searchsorted", (V, A), {"sorter": np.argsort(V)}),
    ("where", (T, A, B), {}),
    ("where", (T, A, 0.0), {}),
    *[(f"unique_{kind}", (V,), {}) for kind in ("all", "counts", "inverse", "values")],
    ("broadcast_to", (V, (2, 6)), {}),
    ("concat", ([A, B],), {}),
    ("concat", ([A, V],), {"axis": None}),
    ("expand_dims", (A,), {"axis": 1}),
    ("flip", (A,), {}),
    ("flip", (A,), {"axis": 1}),
    ("moveaxis", (A, 0, 1), {}),
    ("permute_dims", (A, (1, 0)), {}),
    ("repeat", (A, 2), {"axis": 1}),
    ("repeat", (V, np.array([1, 0, 2, 1, 0, 3])), {}),
    ("reshape", (A, (2, 6)), {}),
    ("reshape", (A, (-1,)), {"copy": True}),
    ("roll", (A, 2), {}),
    ("roll", (A, (1, 2)), {"axis": (0, 1)}),
    ("squeeze", (A[None],), {"axis": 0}),
    ("stack", ([A, B],), {"axis": 1}),
    ("take", (A, np.array([2, 0, -1])), {"axis": 1}),
    ("take_along_axis", (A, np.argsort(A)), {}),
    ("tile", (A, (2, 1)), {}),
    ("unstack", (A,), {"axis": 1}),
    ("tril", (A,), {"k": 1}),
    ("triu", (A,), {"k": -1}),
    ("matmul", (A, B.T), {}),
    ("matrix_transpose", (A,), {}),
    ("tensordot", (A, B), {}),
    ("tensordot", (A, B), {"axes": ([1], [1])}),
    ("vecdot", (A, B), {}),
    ("vecdot", (C, C), {"axis": 0}),
    ("vecdot", (I.astype(np.int8), J.astype(np.int8)), {}),
    ("astype", (A, "float32"), {}),
    ("astype", (A, "complex128"), {"copy": False}),
    ("linspace", (0.0, 2.0, 5), {"endpoint": False, "dtype": "float64"}),
    *[("linspace", ends, {}) for ends in ((A[0], 2.0, 5), (0.5, A[0], 3), (A[0], B[1], 4))],
    ("arange", (1, 7, 2), {}),
    ("arange", (3.0, 1.0, -0.5), {"dtype": "float64"}),
    ("eye", (3, 4), {"k": 1, "dtype": "float64"}),
    ("full", ((2, 3), 0.5), {"dtype": "float64"}),
    ("full_like", (A, 2.0), {}),
    *[(f"{name}_like", (I,), {"dtype": dtype}) for name in ("ones", "zeros") for dtype in (None, "float32")],
    ("meshgrid", (V, W), {}),
    ("meshgrid", (V, W), {"indexing": "ij"}),
    ("asarray", (A,), {"copy": True}),
    ("linalg.cholesky", (P,), {}),
    ("linalg.cross", (A[:, :3], B[:, :3]), {}),
    ("linalg.cross", (A, B), {"axis": 0}),
    ("linalg.det", (S,), {}),
    ("linalg.diagonal", (A,), {"offset": 1}),
    ("linalg.eigh", (P,), {}),
    ("linalg.eigvalsh", (P,), {}),
    ("linalg.inv", (S,), {}),
    ("linalg.matmul", (A, B.T), {}),
    ("linalg.matrix_norm", (A,), {}),
    ("linalg.matrix_norm", (A,), {"ord": 1, "keepdims": True}),
    ("linalg.matrix_power", (S, 3), {}),
    ("linalg.matrix_rank", (S,), {}),
    ("linalg.matrix_transpose", (A,), {}),
    ("linalg.outer", (V, W), {}),
    ("linalg.pinv", (A,), {}),
    ("linalg.slogdet", (S,), {}),
    ("linalg.solve", (S, A), {}),
    ("linalg.solve", (S, A[:, 0]), {}),
    ("linalg.svd", (S,), {}),
    ("linalg.svdvals", (A,), {}),
    ("linalg.tensordot", (A, B), {}),
    ("linalg.trace", (A,), {"offset": 1}),
    ("linalg.vecdot", (A, B), {}),
    ("linalg.vector_norm", (A,), {}),
    ("linalg.vector_norm", (A[:0],), {"axis": 0, "ord": np.inf}),
    ("linalg.vector_norm", (A,), {"axis": 1, "ord": 3, "keepdims": True}),
    *[(f"fft.{name}", (V,), options) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft") for options in (
        {}, {"n": 4, "norm": "ortho"},
    )],
    *[(f"fft.{name}", (A,), options) for name in ("fftn", "ifftn", "rfftn", "irfftn") for options in (
        {}, {"s": (2, 4), "axes": (0, 1), "norm": "forward"}, {"s": (2, -1), "axes": (0, 1)},
    )],
    ("fft.fftfreq", (5,), {"d": 0.5, "dtype": "float64"}),
    ("fft.rfftfreq", (5,), {"dtype": "float64"}),
    ("fft.fftshift", (A,), {"axes": 1}),
    ("fft.ifftshift", (A,), {}),
]  # fmt: skip

SIGNS_FREE = {"linalg.eigh": (0,), "linalg.svd": (1,)}
"""Of results whose columns have no sign of their own, those that are compared."""

ELSEWHERE = set(
    """__array_namespace_info__ broadcast_arrays can_cast empty empty_like finfo from_dlpack iinfo isdtype linalg.qr
    ones result_type zeros""".split()  # noqa: SIM905 - rows of words
)
"""Functions that have tests of their own."""

FLAT = set(
    """all any argmax argmin argsort ceil count_nonzero equal floor floor_divide full_like greater greater_equal imag
    isfinite isinf isnan less less_equal linalg.matrix_rank nonzero not_equal ones_like round searchsorted sign signbit
    trunc zeros_like""".split()  # noqa: SIM905 - rows of words
)
"""Functions whose results cannot carry a gradient, or of real numbers have a gradient of zero everywhere."""
