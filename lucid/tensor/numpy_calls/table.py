"""The table of all rules, and of the functions that need none as no result of theirs can carry a gradient."""

from __future__ import annotations

from importlib import import_module

from lucid.tensor.numpy_calls.definition import RULES

__all__ = ["ABOUT", "CONSTANT", "CONSTANT_UFUNCS", "RULES"]

for _kind in (
    "creation", "differences", "domains", "fft", "joining", "linalg", "padding", "places", "polynomials", "reductions",
    "selection", "shapes", "statistics",
):  # fmt: skip
    import_module(f"lucid.tensor.numpy_calls.rules.{_kind}")

ABOUT = {
    "allclose", "argpartition", "argwhere", "array2string", "array_equal", "array_equiv", "array_repr",
    "array_str", "can_cast", "common_type", "diag_indices_from", "digitize", "einsum_path", "flatnonzero",
    "format_float_positional", "format_float_scientific", "histogram_bin_edges", "in1d", "isclose", "iscomplex",
    "iscomplexobj", "isfortran", "isin", "isneginf", "isposinf", "isreal", "isrealobj", "isscalar", "iterable",
    "ix_", "lexsort", "linalg.matrix_rank", "may_share_memory",
    "min_scalar_type", "nanargmax", "nanargmin", "ndim", "nonzero", "packbits", "ravel_multi_index",
    "result_type", "save", "savetxt", "savez", "savez_compressed", "searchsorted", "shape", "shares_memory",
    "size", "tril_indices_from", "triu_indices_from", "unique_counts", "unique_inverse", "unpackbits",
    "unravel_index",
}  # fmt: skip
"""What says something about arrays, or stores them: comparisons, places, sizes, files."""

CONSTANT = frozenset(("all", "any", "argmax", "argmin", "argsort", "count_nonzero"))
"""Those with a rule: of tensors they give tensors, in `lucid.numpy` they are NumPy's own."""

CONSTANT_UFUNCS = {
    "bitwise_count", "equal", "greater", "greater_equal", "isfinite", "isinf", "isnan", "isnat", "less",
    "less_equal", "logical_and", "logical_not", "logical_or", "logical_xor", "not_equal", "signbit", "spacing",
}  # fmt: skip
"""The same of ufuncs."""
