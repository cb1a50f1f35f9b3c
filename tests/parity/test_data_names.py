"""`lucid.utils.data` against `torch.utils.data`: which names are there, as users/data.md says, and what they take."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest
import torch.utils.data

import lucid.utils.data

DATA = (Path(__file__).parents[2] / "docs" / "users" / "data.md").read_text(encoding="utf-8")
HEADING = "| name in `torch.utils.data` | here |"


def rows():
    """Return the names, and whether they are here, of each row of the table in docs/users/data.md."""
    lines = DATA.partition(HEADING)[2].split("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    return [(re.findall(r"`([^`]+)`", names), here) for names, here, *_ in cells]


NAMES = [name for names, here in rows() if here == "yes" for name in names]
OWN = re.findall(r"`([^`]+)`", re.search(r"^Lucid's own: (.*)$", DATA, re.MULTILINE)[1])


def test_the_table_names_all_of_pytorchs_names_once():
    """A name that PyTorch adds has to be decided about, and one that it drops goes."""
    assert sorted(name for names, _ in rows() for name in names) == sorted(torch.utils.data.__all__)


def test_the_table_says_what_is_here():
    """Names that are here are here, those that are not are not, and each absent one has a reason or a substitute."""
    assert {here for _, here in rows()} == {"yes", "no"}
    wrong = [name for names, here in rows() for name in names if hasattr(lucid.utils.data, name) != (here == "yes")]
    assert not wrong


def test_all_names_of_lucids_are_in_the_document():
    """What lucid has beyond PyTorch's names is listed below the table."""
    assert sorted(NAMES + OWN) == sorted(lucid.utils.data.__all__)


@pytest.mark.parametrize("name", NAMES)
def test_where_it_is_found(name):
    """A class is also in the file in which PyTorch has it."""
    for module in ("dataset", "sampler", "distributed", "dataloader"):
        theirs = importlib.import_module(f"torch.utils.data.{module}")
        thing = getattr(torch.utils.data, name)
        if thing.__module__ == theirs.__name__:
            ours = importlib.import_module(f"lucid.utils.data.{module}")
            assert getattr(ours, name) is getattr(lucid.utils.data, name)


def parameters(thing):
    """Return names and kinds of the parameters of a function, or of a class's constructor."""
    if inspect.isclass(thing) and thing.__init__ is object.__init__:
        return []
    return [(each.name, each.kind) for each in inspect.signature(thing).parameters.values()]


def defaults(thing):
    """Return the default of each parameter that has one."""
    found = {each.name: each.default for each in inspect.signature(thing).parameters.values()}
    return {name: default for name, default in found.items() if default is not inspect.Parameter.empty}


@pytest.mark.parametrize("name", NAMES)
def test_signature(name):
    """Whatever PyTorch takes by position or by name is taken at that position or by that name, with that default."""
    ours, theirs = getattr(lucid.utils.data, name), getattr(torch.utils.data, name)
    mine, wanted = parameters(ours), parameters(theirs)
    by_position = [each for each in wanted if each[1] is not inspect.Parameter.KEYWORD_ONLY]
    assert mine[: len(by_position)] == by_position
    assert set(wanted) <= set(mine)
    if wanted:
        known = {key: value for key, value in defaults(ours).items() if key in dict(wanted)}
        given = defaults(theirs)
        # the default generator is asked for when it is needed
        given = {key: None if key == "generator" else value for key, value in given.items()}
        assert known == given


def test_what_lucid_takes_beyond_pytorch_has_a_default():
    """A call written for PyTorch gives all that must be given."""
    extra = {}
    for name in NAMES:
        ours, theirs = getattr(lucid.utils.data, name), getattr(torch.utils.data, name)
        added = set(dict(parameters(ours))) - set(dict(parameters(theirs)))
        if added:
            assert added <= set(defaults(ours))
            extra[name] = added
    assert extra == {
        "DataLoader": {"worker", "device", "progress"},
        "DistributedSampler": {"shards"},
        "SequentialSampler": {"generator"},
    }
