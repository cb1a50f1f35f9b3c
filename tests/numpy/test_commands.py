"""The commands of this folder: random programs without a silent difference, and the page's table."""

import pytest

from tests.numpy import programs, table


@pytest.mark.parametrize("part", range(10))
def test_programs_agree(part):
    """Thirty programs of six steps: the same values, shapes, dtypes and refusals; others by `tests.numpy.programs`."""
    differences = [programs.run(30 * part + k)[0] for k in range(30)]
    assert not [difference for difference in differences if difference]


@pytest.mark.cpu("of what CuPy says and NumPy does not, nothing is said")
def test_a_difference_is_seen(monkeypatch):
    """The judge sees another value, shape, dtype, and what only one side refuses."""
    program = programs.Program(programs.np.random.default_rng(0))
    value = programs.np.ones((2, 3))
    for other in (value * 2, value[0], value.astype("float32"), value > 0, ValueError("no")):
        with pytest.raises(programs.Difference, match="numpy: "):
            program.agree(other, value)
    assert program.agree(value, value)
    with pytest.raises(programs.Difference):
        program.agree(value, ValueError("no"))


def test_the_page_has_the_table_of_today():
    """Each rule, its parameters and what has none stand in `docs/users/numpy.md`."""
    page = table.PAGE.read_text(encoding="utf-8")
    assert table.written(page) == page, "python -m tests.numpy.table writes it"
