"""Sets of registrations: what is there is there, and what is gone takes no room."""

from __future__ import annotations

import weakref

from lucid.autograd.hooks.handle import Handle
from lucid.autograd.hooks.registration import FEW, HookList, Registrations, changing


def test_a_set_holds_what_is_there_in_its_order():
    """Others may come and go by the thousand: those that are kept are found, and the set has room for few more."""
    made, kept = Registrations(), []
    for number in range(20 * FEW):
        hooks = HookList()
        hooks.add(Handle)
        (registration,) = hooks.registrations
        with changing:
            made.add(registration)
        if number % 10 == 0:
            kept.append((hooks, registration))
    del hooks, registration
    assert [*made] == [registration for _, registration in kept]
    assert len(made) == 2 * FEW
    assert len(made._entries) <= 5 * FEW
    assert all(isinstance(each, weakref.ref) for each in made._entries)
