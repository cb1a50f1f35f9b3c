"""What the door to CuPy says of the stream on which a thread queues work."""

from __future__ import annotations

import ast
import copy
import subprocess
import sys
from pathlib import Path

import pytest

import lucid
from lucid import nn
from lucid.autograd import graph
from lucid.base import gpu
from lucid.base.arrays import asarray, astype, copied
from tests.captures import Recorded
from tests.pieces import in_threads


def test_nothing_captures_where_cupy_is_not_loaded():
    """The question is answered without importing CuPy."""
    code = "import sys; from lucid.base import gpu; assert not gpu.is_capturing(); assert 'cupy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})


@pytest.mark.gpu
def test_a_capture_is_seen_where_it_is():
    """It is that of the current stream, of its thread, for as long as it lasts; the default stream has none."""
    seen = []

    def act():
        seen.append(gpu.is_capturing())
        with gpu.default_stream():
            seen.append(gpu.is_capturing())
        in_threads(lambda: seen.append(gpu.is_capturing()))

    assert not gpu.is_capturing()
    recorded = Recorded(act, told=False)
    with recorded.stream:
        seen.append(gpu.is_capturing())
    assert seen == [True, False, False, False]


# ---- copies ----


def resumed(x):
    """Return the state of an optimizer after it was loaded."""
    param = nn.Parameter(x)
    optimizer = lucid.optim.SGD([param], lr=0.1, momentum=0.9)
    param.grad = x.clone()
    optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.step()
    return optimizer.state[param]["momentum_buffer"]


def saved_and_changed(x):
    """Return the gradient by a tensor that was changed after it was saved."""
    x.requires_grad_()
    with graph.allow_mutation_on_saved_tensors():
        y = x * 1
        z = (y * y).sum()
        y.mul_(3)
        z.backward()
    return x.grad


COPIES = {
    "copied": lambda x: lucid.as_tensor(copied(x.array)),
    "astype": lambda x: lucid.as_tensor(astype(x.array, "float32", copy=True)),
    "asarray": lambda x: lucid.as_tensor(asarray(x.array, copy=True)),
    "tensor": lambda x: lucid.tensor(x),
    "tensor of an array": lambda x: lucid.tensor(x.array),
    "new_tensor": lambda x: x.new_tensor(x),
    "clone": lambda x: x.clone(),
    "to": lambda x: x.to(lucid.float32, copy=True),
    "deepcopy": copy.deepcopy,
    "deepcopy of a buffer": lambda x: copy.deepcopy(nn.Buffer(x)),
    "deepcopy of a parameter": lambda x: copy.deepcopy(nn.Parameter(x)),
    "an optimizer's state": resumed,
    "a saved tensor": saved_and_changed,
}


@pytest.mark.gpu
@pytest.mark.parametrize("name", COPIES)
def test_copies_lie_beside_what_they_are_copies_of(name):
    """CuPy makes them on the current device, which is the first."""
    if lucid.cuda.device_count() < 2:
        pytest.skip("needs two CUDA devices")
    made = COPIES[name](lucid.tensor([1.0, 2.0], device="cuda:1"))
    assert (str(made.device), gpu.device_index(made.array)) == ("cuda:1", 1)


# where arrays are copied by themselves, and why they may be
ON_THEIR_DEVICE = {
    "base/arrays.py": "it is `copied`",
    "base/gpu.py": "makes the device the current one",
    "base/foreign/dlpack.py": "makes the device the current one",
    "autograd/graph.py": "arrays of NumPy's",
    "cpu/halves.py": "arrays of NumPy's",
    "serialization/source.py": "arrays of NumPy's",
    "tensor/interop.py": "arrays of NumPy's",
}


def test_arrays_are_copied_by_one_function():
    """Outside of ops, whose device is the current one, `copied` is called, as NumPy's arrays need no device."""
    root = Path(lucid.__file__).parent
    found = set()
    for path in root.rglob("*.py"):
        name = path.relative_to(root).as_posix()
        if name.startswith(("ops/", "cuda/")):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Attribute) and called.attr == "copy" and "array" in ast.unparse(called.value):
                found.add(name)
    assert found == set(ON_THEIR_DEVICE)
