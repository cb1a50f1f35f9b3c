"""`python -m lucid.compat`: which of PyTorch's names are there, and why others are not."""

from __future__ import annotations

import pytest

from lucid.compat import coverage, is_present
from lucid.compat.__main__ import main
from lucid.compat.reasons import REFUSED, reason


def test_presence_is_asked_of_lucid():
    """A name is present where lucid has it, in a module that its package does not import, too."""
    assert is_present("torch.nn.Linear")
    assert is_present("torch.Tensor.backward")
    assert is_present("torch.optim.optimizer.Optimizer")
    assert not is_present("torch.nn.Linearly")
    assert not is_present("torch.nowhere.Linear")
    with pytest.raises(ValueError, match=r"torch\.nn\.Linear, got 'numpy\.sum'"):
        is_present("numpy.sum")


def test_what_only_refuses_is_absent():
    """A name that is there to say what to use instead does not count, and has a reason."""
    for path in REFUSED:
        assert not is_present(path)
        assert reason(path)


def test_each_absent_name_has_a_reason_and_the_most_used_stand_first():
    """Rows are ordered by use; of what is there no reason is given."""
    for names in coverage().values():
        assert [each.use for each in names] == sorted((each.use for each in names), reverse=True)
        assert all(bool(each.reason) != each.present for each in names)


def test_prints_shares_of_names_and_of_uses(capsys):
    """The table has a row for each namespace; those of the command line are listed, others refused."""
    assert main([]) == 0
    printed = capsys.readouterr().out
    assert all(f" {namespace} " in printed for namespace in coverage())
    assert main(["torch.distributed"]) == 0
    printed = capsys.readouterr().out
    assert "all_reduce" in printed
    assert "one process only" in printed
    with pytest.raises(SystemExit):
        main(["torch.nothing"])
    assert "got torch.nothing" in capsys.readouterr().err
