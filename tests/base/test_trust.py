"""The private group of a user: who is alone in it may write what lies elsewhere."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from types import SimpleNamespace

from lucid.base.trust import others_may_write


def test_who_else_is_in_the_group_of_an_owner(monkeypatch):
    """A group that may write is as good as the owner where it has the owner's name, and nobody else; if lenient."""
    monkeypatch.setattr(pwd, "getpwuid", lambda user: SimpleNamespace(pw_name="ann"))
    for name, members, private in (
        ("ann", [], True), ("ann", ["ann"], True), ("ann", ["ann", "bob"], False), ("ann", ["bob"], False),
        ("staff", [], False), ("staff", ["ann"], False), (None, [], False),
    ):  # fmt: skip

        def group(number, name=name, members=members):
            if name is None:
                raise KeyError(number)
            return SimpleNamespace(gr_name=name, gr_mem=members)

        monkeypatch.setattr(grp, "getgrgid", group)
        for mode, of_all in ((0o775, False), (0o777, True), (0o755, None)):
            status = SimpleNamespace(st_uid=os.geteuid(), st_gid=7, st_mode=stat.S_IFDIR | mode)
            for lenient in (False, True):
                reason = others_may_write(status, lenient=lenient)
                trusted = of_all is None or (lenient and private and not of_all)
                assert (reason is None) is trusted, (name, members, mode, lenient)
                assert trusted or f"its mode is {mode:04o}" in reason
