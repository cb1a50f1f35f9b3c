"""What must be there and is not is a failure with its name, never a slower path in silence."""

from __future__ import annotations

import importlib.util
import types

import pytest

from benchmarks.gpu import device
from benchmarks.gpu.rows import Scope
from benchmarks.gpu.stages import hello
from lucid.cuda.libraries import cudnn


@pytest.fixture
def simulated(monkeypatch):
    """Say whether the device is simulated."""
    return lambda whether: monkeypatch.setattr(device, "simulated", lambda: whether)


@pytest.fixture
def missing(monkeypatch):
    """Let modules of these names not be found, nor any command."""
    find = importlib.util.find_spec

    def leave_out(*names):
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in names else find(name))
        monkeypatch.setattr(hello.shutil, "which", lambda name: None)

    return leave_out


@pytest.fixture
def told():
    """Return what a row says."""
    return lambda name: {row.name: row for row in hello.rows(Scope("", "hello"))}[name].call()


@pytest.mark.parametrize("name", [*hello.ANYWHERE, *hello.ON_A_GPU])
def test_a_missing_module_is_a_failure_with_its_name(simulated, missing, told, name):
    """On a GPU each module that a path or a comparison needs."""
    simulated(False)
    missing(name)
    fact = told(f"module: {name}")
    assert fact["ok"] is False
    assert fact["error"].startswith(f"{name} is missing: ")


def test_a_simulated_device_lacks_what_it_never_has(simulated, missing, told):
    """NVIDIA's tools may be missing beside it, whatever is needed anywhere may not."""
    simulated(True)
    missing("nvtx")
    for name in hello.TOOLS:
        words = f"no {name} here, and none is needed beside a simulated device"
        assert told(f"tool: {name}") == {"ok": None, "absent": words}
    assert told("module: nvtx")["ok"] is False


@pytest.mark.parametrize(
    ("name", "what"),
    [("module: torch", "PyTorch's CUDA"), ("module: cudnn", "cuDNN"), ("built kernels", "an archive of kernels")],
)
def test_what_a_simulated_device_has_no_use_for_is_not_asked_for(simulated, told, name, what):
    """Whether it is installed or not: that it is missing would not be true."""
    simulated(True)
    assert told(name) == {"ok": None, "absent": f"{what} is not asked for beside a simulated device"}


def test_a_missing_tool_is_a_failure_on_a_gpu(simulated, missing, told):
    """Neither the sanitizer nor the profiler is left out in silence."""
    simulated(False)
    missing()
    assert told("tool: ncu") == {"ok": False, "error": "ncu is missing: it is not on the path"}


def plan(operation, dtype, made):
    """Return an entry of the table of cuDNN's plans; None is one that cuDNN refused."""
    layout = types.SimpleNamespace(dtype=hello.C_TYPES[dtype])
    return types.SimpleNamespace(operation=operation, inputs=(("x", layout),), __hash__=None), made


class Plans(dict):
    """A table whose keys need no hash."""

    def __init__(self, *entries):
        self.entries = entries

    def items(self):
        return self.entries


@pytest.mark.parametrize("name", hello.PATHS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_path_that_cudnn_did_not_take_is_a_failure(monkeypatch, simulated, name, dtype):
    """Each part, forward and backward, in this dtype and not in another; on a simulated device it is as it must be."""
    simulated(False)
    monkeypatch.setattr(hello, "run_path", lambda *_: None)
    parts, _ = hello.PATHS[name]
    whole = [plan(part, dtype, object()) for part in parts]
    monkeypatch.setattr(cudnn._graphs, "_made", Plans(*whole))
    assert hello.path(name, dtype) == {"took": dict.fromkeys(parts, hello.CUDNN)}
    for wrong in (plan(parts[0], dtype, None), plan(parts[0], "float32", object())):
        monkeypatch.setattr(cudnn._graphs, "_made", Plans(wrong, *whole[1:]))
        fact = hello.path(name, dtype)
        assert fact["ok"] is False
        assert fact["error"] == f"{parts[0]} in {dtype}: lucid's kernels instead of cuDNN"
    simulated(True)
    monkeypatch.setattr(cudnn._graphs, "_made", Plans())
    assert hello.path(name, dtype) == {"took": dict.fromkeys(parts, hello.OWN)}
