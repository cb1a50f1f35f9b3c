"""What the forms of `to` ask for."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import DtypeError
from lucid.tensor.conversion import target_of


def test_forms_of_to():
    """A dtype, a device, both, or a tensor that has both; then non_blocking and copy, by position or by keyword."""
    other = lucid.ones(1, dtype=lucid.int16)
    place, half = other.device, lucid.float16
    for args, kwargs, expected in (
        ((half,), {}, (None, half, 0, 0)), ((float,), {}, (None, lucid.float64, 0, 0)),
        ((np.dtype("int8"),), {}, (None, lucid.int8, 0, 0)), (("cpu",), {}, ("cpu", None, 0, 0)),
        (("cpu", half), {}, ("cpu", half, 0, 0)), (("cpu", half, True), {}, ("cpu", half, 1, 0)),
        (("cpu", True), {}, ("cpu", None, 1, 0)), (("cpu", True, True), {}, ("cpu", None, 1, 1)),
        ((half, False, True), {}, (None, half, 0, 1)), ((other,), {}, (place, lucid.int16, 0, 0)),
        ((other, True, True), {}, (place, lucid.int16, 1, 1)), ((), {"other": other}, (place, lucid.int16, 0, 0)),
        ((other,), {"dtype": half}, (place, half, 0, 0)), ((other,), {"device": "cuda"}, ("cuda", lucid.int16, 0, 0)),
        ((half,), {"device": "cuda:1"}, ("cuda:1", half, 0, 0)), ((), {"dtype": half}, (None, half, 0, 0)),
        ((None,), {"dtype": half}, (None, half, 0, 0)), ((), {}, (None, None, 0, 0)),
    ):  # fmt: skip
        assert target_of(args, kwargs, non_blocking=False, copy=False) == expected, (args, kwargs)
    for args in ((half, True, True, True), ("cpu", half, True, True, 1), (other, True, True, half)):
        with pytest.raises(DtypeError, match=r"to: expected to\(dtype\), to\(device, dtype\) or to\(other\)"):
            target_of(args, {}, non_blocking=False, copy=False)
