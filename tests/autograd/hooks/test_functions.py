"""What hooks of functions see where they compute something themselves."""

from __future__ import annotations

import lucid
from lucid import hooks
from tests.pieces import function_of

Twice = function_of(lambda ctx, x: x + x, lambda ctx, grad: grad * 2, name="Twice")


class Computing(hooks.FunctionHook):
    """Notes what begins and ends, and computes something each time."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def before(self, call):
        self.seen.append(("begins", call.name))
        lucid.ones(2).exp()

    def after(self, call, output):
        self.seen.append(("ends", call.name))
        lucid.ones(2).exp()


def test_ops_of_a_function_are_seen_whatever_hooks_compute():
    """What a hook runs is not seen; what a Function runs is, also after a hook has run ops before it."""
    x = lucid.ones(2, requires_grad=True)
    for _ in range(3):
        with Computing() as hook:
            y = Twice.apply(x)
            y.sum().backward()
        inner = [("begins", "add"), ("ends", "add")]
        assert hook.seen[:6] == [("begins", "Twice"), *inner, ("ends", "Twice"), ("begins", "sum"), ("ends", "sum")]
        assert [name for at, name in hook.seen[6:] if at == "ends"][-3:] == ["mul", "TwiceBackward", "AccumulateGrad"]
