"""Which functions of Python a call calls: what it costs, on any machine."""

from __future__ import annotations

import gc
import sys


def calls(function, part=""):
    """Return the names of the functions in modules of `part` that a call of `function` calls, itself left out.

    Whether a process has asked for peaks of memory, which are counted from then on, makes no difference.
    """
    names = []

    def note(frame, event, argument):
        if event == "call" and frame.f_globals.get("__name__", "").startswith(part):
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
