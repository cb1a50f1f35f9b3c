"""The table in `docs/users/numpy.md` of what is recorded of NumPy: ``python -m tests.numpy.table`` writes it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lucid.tensor.numpy_calls.table import ABOUT, CONSTANT, CONSTANT_UFUNCS, RULES
from lucid.tensor.numpy_calls.ufuncs import UFUNCS

PAGE = Path(__file__).parents[2] / "docs" / "users" / "numpy.md"
BEGIN, END = "<!-- the table of tests/numpy/table.py -->", "<!-- its end -->"


def refused():
    """Return the names of NumPy's functions of arrays that have no rule, as their signatures show operands."""
    known = {*RULES, *ABOUT, *CONSTANT}
    names = {
        f"{prefix}{name}" for prefix, module in MODULES.items() for name in module.__all__ if is_function(module, name)
    }
    return sorted(names - known - {"fft.fftfreq", "fft.rfftfreq"} - NOT_OF_ARRAYS)


MODULES = {"": np, "linalg.": np.linalg, "fft.": np.fft}
# What makes arrays of numbers and files, and what is no function of arrays.
NOT_OF_ARRAYS = frozenset(
    (
        "arange", "array_namespace", "asmatrix", "bartlett", "base_repr", "binary_repr", "blackman", "bmat",
        "broadcast_shapes", "busday_count", "busday_offset", "datetime_as_string", "datetime_data", "diag_indices",
        "empty", "eye", "format_float_positional", "format_float_scientific", "frombuffer",
        "fromfile", "fromfunction", "fromiter", "frompyfunc", "fromregex", "fromstring", "from_dlpack",
        "genfromtxt", "get_include", "get_printoptions", "getbufsize", "geterr", "geterrcall", "hamming", "hanning",
        "identity", "indices", "info", "is_busday", "isdtype", "isscalar", "issubdtype", "iterable", "kaiser",
        "load", "loadtxt", "mask_indices", "mintypecode", "nested_iters", "ones", "printoptions", "promote_types",
        "row_stack", "set_printoptions", "setbufsize", "seterr", "seterrcall", "show_config", "show_runtime",
        "test", "tri", "tril_indices", "triu_indices", "typename", "zeros", "trapz", "in1d",
    )
)  # fmt: skip


def is_function(module, name):
    """Return whether a public name is a function."""
    value = getattr(module, name, None)
    return callable(value) and not isinstance(value, type | np.ufunc)


def table():
    """Return the lines of the table."""
    rows = ["| function | parameters that are recorded |", "|---|---|"]
    rows += [f"| `{name}` | {', '.join(f'`{key}`' for key in rule.names)} |" for name, rule in sorted(RULES.items())]
    parts = {
        "Ufuncs": [name for name in sorted(UFUNCS) if name not in CONSTANT_UFUNCS],
        "Constants, of plain values": sorted({*ABOUT, *CONSTANT, *CONSTANT_UFUNCS}),
        "Refused where something requires grad": refused(),
    }
    words = [f"**{title}**: {', '.join(f'`{name}`' for name in names)}." for title, names in parts.items()]
    return "\n".join([words[0], "", *rows, "", words[1], "", words[2]])


def written(page):
    """Return the page with the table of today."""
    head, _, rest = page.partition(BEGIN)
    return f"{head}{BEGIN}\n\n{table()}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
