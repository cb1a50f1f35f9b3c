"""Two processes get from collectives, groups and refusals what PyTorch's get through gloo."""

from __future__ import annotations

import json
import socket
import subprocess
import sys

from tests.collectives.jobs import LONGEST, environment, job
from tests.parity.distributed.rows import ROWS

ROWS_OF = "tests.parity.distributed.rows"
# Where PyTorch takes what lucid refuses, or raises another kind of error: row and place in it, and why.
KNOWN = {("refusals", 17): "parts of all_to_all_single that do not divide: gloo leaves the rest as it is, NCCL refuses"}


def pytorchs(folder):
    """Run PyTorch's two processes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    at = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}
    command = [sys.executable, "-m", ROWS_OF, "torch", str(folder)]
    both = [
        subprocess.Popen(command, env=environment(RANK=str(rank), **at), cwd=folder, stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    for each in both:
        _, err = each.communicate(timeout=LONGEST)
        assert each.returncode == 0, err


def as_expected(got, expected):
    """Tell whether a result is PyTorch's; of errors, whether lucid's is of PyTorch's kind too."""
    kinds = {"ValueError", "TypeError", "RuntimeError", "nothing"}
    if isinstance(expected, list) and expected and kinds.issuperset(map(str, expected)):
        return set(expected) <= set(got)
    if isinstance(expected, list) and isinstance(got, list):
        return len(got) == len(expected) and all(map(as_expected, got, expected))
    return got == expected


def test_the_same_as_pytorch(tmp_path):
    """Every value, answer and kind of error of the rows is PyTorch's, in both processes, but for what is listed."""
    pytorchs(tmp_path)
    ended = job(2, ["-m", ROWS_OF, "lucid", tmp_path], tmp_path)
    assert ended.status == 0, ended
    differ = {}
    for rank in range(2):
        got, expected = (json.loads((tmp_path / f"{name}{rank}.json").read_text()) for name in ("lucid", "torch"))
        for row in [*(each.__name__ for each in ROWS), "after"]:
            for place, (mine, theirs) in enumerate(zip(got[row], expected[row], strict=True)):
                if not as_expected(mine, theirs) and (row, place) not in KNOWN:
                    differ[row, place, rank] = mine, theirs
    assert differ == {}
