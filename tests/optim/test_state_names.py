"""State dicts of optimizers whose parameters have names: each parameter gets its own state, or a warning says not."""

from __future__ import annotations

import pytest

import lucid
from lucid import optim


def named_groups(*groups):
    """Return an optimizer whose groups name their parameters, and the learning rate of each."""
    given = [
        {"params": [(name, lucid.zeros(2, requires_grad=True)) for name in names], "lr": lr} for names, lr in groups
    ]
    return optim.SGD(given, lr=1.0, momentum=0.5)


def momenta(optimizer):
    """Return of each name the momentum that was saved for it, and its learning rate."""
    return {
        name: (optimizer.state[param]["momentum_buffer"].tolist(), group["lr"])
        for group in optimizer.param_groups
        for name, param in zip(group["param_names"], group["params"], strict=True)
    }


def stepped(*groups):
    """Return such an optimizer after a step with gradients of which each is another number."""
    optimizer = named_groups(*groups)
    for number, param in enumerate(param for group in optimizer.param_groups for param in group["params"]):
        param.grad = lucid.full((2,), float(number))
    optimizer.step()
    return optimizer


def test_state_goes_by_name(recwarn):
    """Where both sides have the same names, in any order, each parameter has its state, and each group its settings."""
    saved = stepped(("ab", 0.1), ("cde", 0.2))
    for groups in ([("ba", 1.0), ("ced", 1.0)], [("dec", 1.0), ("ba", 1.0)], [("ab", 1.0), ("cde", 1.0)]):
        other = named_groups(*groups)
        other.load_state_dict(saved.state_dict())
        assert momenta(other) == momenta(saved)
        assert [group["param_names"] for group in other.param_groups] == [list(names) for names, _ in groups]
        again = named_groups(("ab", 0.1), ("cde", 0.2))
        again.load_state_dict(other.state_dict())
        assert momenta(again) == momenta(saved)
    other = named_groups(("aa", 1.0), ("b", 1.0))
    other.load_state_dict(stepped(("aa", 0.1), ("b", 0.2)).state_dict())
    assert [other.state[param]["momentum_buffer"].tolist() for param in other.param_groups[0]["params"]] == [
        [0.0, 0.0], [1.0, 1.0],
    ]  # fmt: skip
    assert not recwarn


def test_names_in_other_groups_warn():
    """State still goes by name; settings of groups go by position."""
    saved = stepped(("ab", 0.1), ("cd", 0.2))
    other = named_groups(("ac", 1.0), ("bd", 1.0))
    with pytest.warns(UserWarning, match="in other groups: state goes by name, and settings of groups by position"):
        other.load_state_dict(saved.state_dict())
    expected = {name: (state, {"a": 0.1, "c": 0.1}.get(name, 0.2)) for name, (state, _) in momenta(saved).items()}
    assert momenta(other) == expected


@pytest.mark.parametrize("names", ["ax", "aa"])
def test_other_names_go_by_position(names):
    """As in PyTorch, but with a warning that lists them."""
    saved = stepped(("ab", 0.1))
    other = named_groups((names, 1.0))
    with pytest.warns(UserWarning, match=r"by position: only the optimizer has \[.*\], only the state dict \['b'\]"):
        other.load_state_dict(saved.state_dict())
    assert [other.state[param]["momentum_buffer"].tolist() for param in other.param_groups[0]["params"]] == [
        [0.0, 0.0], [1.0, 1.0],
    ]  # fmt: skip


def test_a_parameter_of_two_groups_keeps_its_number():
    """That of the first of them, under which its state stands."""
    optimizer = stepped(("ab", 0.1), ("c", 0.2))
    first, second = optimizer.param_groups
    second["params"].append(first["params"][0])
    state = optimizer.state_dict()
    assert [group["params"] for group in state["param_groups"]] == [[0, 1], [2, 0]]
    assert sorted(state["state"]) == [0, 1, 2]
