"""Small things that tests of many kinds are made of.

Tensors, what raises, a Function, a module, threads, a terminal, and a time without the collector of garbage.
"""

from __future__ import annotations

import gc
import io
import sys
import threading
from contextlib import contextmanager

import lucid


def leaf(*values):
    """Return a float64 tensor of these numbers that requires grad."""
    return lucid.tensor(list(values), dtype=lucid.float64, requires_grad=True)


def drawn(rng, *shape):
    """Return a float64 tensor of normal numbers that requires grad."""
    return lucid.tensor(rng.standard_normal(shape), requires_grad=True)


def raising(error):
    """Return what raises `error`, an exception or a class of them, whatever it is called with."""

    def fail(*_, **__):
        raise error

    return fail


def function_of(forward, backward=lambda ctx, *grads: grads[0], library=lucid, name="Given", **methods):
    """Return a Function of this name and these methods, which take `ctx` first; None leaves one out."""
    given = {"forward": forward, "backward": backward, **methods}
    written = {key: staticmethod(method) for key, method in given.items() if method is not None}
    return type(name, (library.autograd.Function,), written)


def module_of(forward, library=lucid, **held):
    """Return a module of a class of its own with this `forward`, which takes `self` first, and what it holds."""
    made = type("Written", (library.nn.Module,), {"forward": forward})()
    for name, value in held.items():
        setattr(made, name, value)
    return made


def in_threads(*functions):
    """Call each function in a thread of its own, all at once, and wait for all."""
    threads = [threading.Thread(target=each) for each in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@contextmanager
def no_collections():
    """Switch the collector of garbage off inside: what goes there goes with its last reference."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class Terminal(io.StringIO):
    """Output that says that it is a terminal."""

    def isatty(self):
        return True


def terminal(monkeypatch):
    """Return a terminal as the output of errors, on which rich draws.

    It is no fixture: pytest sets the output of errors anew behind these.
    """
    made = Terminal()
    monkeypatch.setattr(sys, "stderr", made)
    monkeypatch.setenv("TERM", "xterm")  # on a dumb one rich draws nothing
    monkeypatch.delenv("TTY_COMPATIBLE", raising=False)
    return made
