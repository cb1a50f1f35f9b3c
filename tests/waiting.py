"""The one place where tests look at a clock: how long they wait for what another thread or process is to do."""

from __future__ import annotations

import time

# however busy the machine is; only what hangs takes as long
PATIENCE = 60.0


def until(condition):
    """Wait until `condition()` holds and return whether it came to hold before patience was at an end."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True
