"""Locks and forks: children start with open locks and the states of their own thread alone; what is made once is."""

from __future__ import annotations

import contextlib
import os
import threading

import pytest

import lucid
from lucid.autograd.modes.state import unusual
from lucid.base.locks import Once, new_lock, new_rlock
from tests.device import DEVICE
from tests.pieces import raising
from tests.stress import forks
from tests.waiting import PATIENCE

needs_forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


@contextlib.contextmanager
def another_thread_inside(block):
    """Let another thread be inside of a block."""
    holds, release = threading.Event(), threading.Event()

    def hold() -> None:
        with block:
            holds.set()
            release.wait(PATIENCE)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert holds.wait(PATIENCE)
        yield
        assert thread.is_alive()
    finally:
        release.set()
        thread.join()


@needs_forks
@pytest.mark.parametrize("make", [new_lock, new_rlock])
def test_a_child_finds_locks_open(make) -> None:
    """What a thread of the parent has locked at the fork, the child can lock; the parent still waits for it."""
    lock = make()

    def act() -> None:
        assert lock.acquire(timeout=PATIENCE)

    with another_thread_inside(lock):
        assert forks.ended(forks.child(act)) == "well"
        assert not lock.acquire(blocking=False)
    assert lock.acquire(timeout=PATIENCE)


@needs_forks
def test_a_child_has_its_own_modes() -> None:
    """The mode of the thread that forks goes on in the child; those of other threads do not slow it down."""

    def act() -> None:
        assert not lucid.is_grad_enabled()
        assert len(unusual) == 1

    with another_thread_inside(lucid.inference_mode()), lucid.no_grad():
        assert forks.ended(forks.child(act)) == "well"


def test_a_thread_that_ends_leaves_no_state_behind() -> None:
    """Neither one that ends right after a block nor one that ends inside of it."""

    def block() -> None:
        with lucid.no_grad():
            pass

    for act in (block, lucid.no_grad().__enter__, lambda: lucid.set_grad_enabled(False)):
        thread = threading.Thread(target=act)
        before = set(unusual)
        thread.start()
        thread.join()
        assert set(unusual) <= before


@needs_forks
@pytest.mark.skipif(DEVICE != "cpu", reason="CUDA does not work in a forked process")
def test_forks_beside_busy_threads() -> None:
    """The short form of `python -m tests.stress.forks`."""
    assert forks.run(25) == {"well": 25, "badly": 0, "not at all": 0}


# ---- what is made once ----


def test_a_value_is_made_once():
    """Who asks while it is made waits, and gets the same; who asks for another does not wait."""
    once, made = Once(), []

    def another_asks():
        other = threading.Thread(target=lambda: made.append(once("b", lambda: "another")))
        other.start()
        other.join(PATIENCE)
        assert made == ["another"]

    def make():
        another_asks()
        late.start()
        late.join(0.2)  # time to go wrong in; it waits however long that is
        assert late.is_alive()
        return object()

    late = threading.Thread(target=lambda: made.append(once("a", object)))
    value = once("a", make)
    late.join(PATIENCE)
    assert made == ["another", value]
    assert once("a", object) is value


def test_what_failed_is_made_by_the_next():
    """An error goes to who asked, and leaves the key as if nobody had."""
    once = Once()

    with pytest.raises(ArithmeticError):
        once(1, raising(ArithmeticError))
    assert once(1, lambda: 2) == 2
