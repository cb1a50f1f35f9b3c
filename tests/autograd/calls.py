"""Which functions of Python a call calls: what it costs, on any machine."""

from __future__ import annotations

import gc
import sys

from tests.pieces.loops import load_loops


def module_of(frame):
    """Return the name of the module in which the function of a frame is."""
    return frame.f_globals.get("__name__", "")


def is_of_the_simulator(frame):
    """Tell whether a function is a simulated device's, or is called by one that is, within what is counted."""
    while frame is not None and frame.f_code is not calls.__code__:
        if module_of(frame).startswith("lucid.cuda.simulator"):
            return True
        frame = frame.f_back
    return False


def calls(function, part=""):
    """Return the names of the functions in modules of `part` that a call of `function` calls, itself left out.

    Whether a process has asked for peaks of memory, which are counted from then on, makes no difference; nor does what
    a simulated device calls, which looks at more once a process has a second stream.
    """
    load_loops()
    names = []

    def note(frame, event, argument):
        if event == "call" and module_of(frame).startswith(part) and not is_of_the_simulator(frame):
            name = frame.f_code.co_qualname
            if not name.startswith("PeakMemory."):
                names.append(name)

    before, collects = sys.getprofile(), gc.isenabled()
    gc.disable()  # what a collection calls, and when it comes, is not of the function
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
    return names[function.__module__.startswith(part) :]
