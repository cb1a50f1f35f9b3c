"""What a process knows of the others of its job."""

from __future__ import annotations

import math

from lucid.collectives.group import ProcessGroup
from lucid.collectives.job import watch as module
from lucid.collectives.job.watch import Apart, Watch
from lucid.collectives.work import Call, Work


def test_a_group_made_since_then_is_none_that_was_left(monkeypatch):
    """Who has left its groups is missed in those, by collectives and by pairs, and in a later one not before it ends.

    One that has left is there for the pairs of a later group, and for its collectives.
    """
    watch = Watch(Apart(0, 2))
    old, later = (ProcessGroup(name, [0, 1], watch, 1.0, {}) for name in ("world", "world (2)"))
    calls = [Call("recv", 0, "", 1), Call("send", 0, "", 1), Call("all_reduce", 3, "")]

    def missed(group):
        return [watch.missing(Work(group, None, call, iter(()), 1)) is not None for call in calls]

    assert not any(missed(old))
    # time enough for what was sent before it left
    monkeypatch.setattr(module.time, "monotonic", lambda: 0.0)
    watch._read(1, {"left": {"world": 2}, "ends": False})
    assert not any(missed(old))
    monkeypatch.setattr(module.time, "monotonic", lambda: math.inf)
    assert all(missed(old))
    assert not any(missed(later))
    watch._read(1, {"left": {"world": 2}, "ends": True})
    monkeypatch.setattr(watch, "_heard", {1: 0.0})
    assert all(missed(later))
