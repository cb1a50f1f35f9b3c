"""What the door to CuPy says of the stream on which a thread queues work."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from lucid.backend import gpu
from tests.captures import Recorded


def test_nothing_captures_where_cupy_is_not_loaded():
    """The question is answered without importing CuPy."""
    code = "import sys; from lucid.backend import gpu; assert not gpu.is_capturing(); assert 'cupy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})


@pytest.mark.gpu
def test_a_capture_is_seen_where_it_is():
    """It is that of the current stream, of its thread, for as long as it lasts; the default stream has none."""
    seen = []

    def act():
        seen.append(gpu.is_capturing())
        with gpu.default_stream():
            seen.append(gpu.is_capturing())
        other = threading.Thread(target=lambda: seen.append(gpu.is_capturing()))
        other.start()
        other.join()

    assert not gpu.is_capturing()
    recorded = Recorded(act, told=False)
    with recorded.stream:
        seen.append(gpu.is_capturing())
    assert seen == [True, False, False, False]
