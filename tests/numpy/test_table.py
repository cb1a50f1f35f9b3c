"""The page of NumPy's functions says what the table of rules says."""

from tests.numpy import table


def test_the_page_has_the_table_of_today():
    """Each rule, its parameters and what has none stand in `docs/numpy.md`."""
    page = table.PAGE.read_text(encoding="utf-8")
    assert table.written(page) == page, "python -m tests.numpy.table writes it"
