"""SciPy's and scikit-learn's functions of the array API take Tensors as they are."""

from __future__ import annotations

import pytest

from tests.array_api import table

pytest.importorskip("scipy")
pytest.importorskip("sklearn")
pytestmark = pytest.mark.cpu("SciPy's functions compute on NumPy's arrays")


def test_the_page_has_the_table_of_today():
    """Each function has NumPy's values and the gradient of differences, or stands among the refused ones.

    With other versions than the page is about it may be others that know the standard, but none gives wrong numbers.
    """
    found = table.outcomes()
    page = table.PAGE.read_text(encoding="utf-8")
    refused = [name for name, how in found.items() if how not in {"recorded", "computed"}]
    if table.versions() in page:
        assert table.written(page, found) == page, "python -m tests.array_api.table writes it"
        assert len(refused) <= 5
    assert not [name for name in refused if not found[name].startswith("it ")]
