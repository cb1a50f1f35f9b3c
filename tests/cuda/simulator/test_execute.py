"""``LUCID_SIMULATOR_EXECUTE=0``: everything is asked of the device as always, and nothing is done."""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest

from tests.cuda.simulator.test_refusals import assert_refused, run

pytestmark = pytest.mark.skipif(find_spec("cupy") is None, reason="needs CuPy: pip install '.[simulator]'")

STEP = r"""
import json
import cupy
import lucid
from lucid import nn
from lucid.cuda.simulator import counters

seen = []
model = nn.Sequential(nn.Linear(6, 4), nn.LayerNorm(4), nn.GELU(), nn.Linear(4, 3)).cuda()
model[0].register_forward_hook(lambda module, args, output: seen.append(["forward", list(output.shape)]))
model[1].register_full_backward_hook(lambda module, wanted, given: seen.append(["backward", str(given[0].dtype)]))
model[3].bias.register_post_accumulate_grad_hook(lambda bias: seen.append(["accumulated", list(bias.grad.shape)]))
optimizer = lucid.optim.AdamW(model.parameters(), lr=1e-3)
x, labels = lucid.randn(5, 6, device="cuda"), lucid.zeros(5, dtype=lucid.int64, device="cuda")


def step():
    optimizer.zero_grad()
    y = model(x)
    y.register_hook(lambda grad: seen.append(["tensor", list(grad.shape), str(grad.device)]))
    lucid.nn.functional.cross_entropy(y.half(), labels).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return y


step()
seen.clear()
counters.reset()
y = step()
told = {name: getattr(counters, name) for name in ("launches", "library", "copies", "synchronisations")}
told["kernels"] = dict(counters.kernels)
told["forms"] = [[list(p.grad.shape), str(p.grad.dtype), p.grad.stride()] for p in model.parameters()]
told["output"] = [list(y.shape), str(y.dtype), y.grad_fn.name()]
told["seen"] = seen
told["state"] = sorted(optimizer.state_dict()["state"][0])
counters.reset()
values = [y.tolist(), lucid.tensor([1.0, 2.0]).cuda().tolist(), cupy.arange(3).get().tolist(), y.sum().item()]
told["to_host"] = counters.to_host
print(json.dumps([told, values]))
"""


def told(code, **variables):
    """Run code and return what it printed as JSON."""
    ran = run(code, **variables)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_a_step_asks_for_the_same_and_gives_zeros():
    """Launches, shapes, dtypes, strides, hooks and state are those of a step that is done; what is read back is 0."""
    done, values = told(STEP)
    only_asked, zeros = told(STEP, LUCID_SIMULATOR_EXECUTE="0")
    assert only_asked == done
    assert done["launches"] > 0
    assert len(done["seen"]) == 4
    assert values[1:3] == [[1.0, 2.0], [0, 1, 2]]
    assert zeros == [[[0.0] * 3] * 5, [0.0, 0.0], [0, 0, 0], 0.0]


FAULTS = r"""
import json
import cupy
from lucid.cuda.simulator import counters, runtime

kernel = cupy.RawKernel('extern "C" __global__ void f(float* x) { x[1000] = 1; }', "f")
x = cupy.empty(4, cupy.float32)
first, second = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
for stream in first, second:
    with stream:
        kernel((1,), (32,), (x,))
        x += 1
told = []
try:
    kernel((1,), (2048,), (x,))
except cupy.cuda.driver.CUDADriverError as error:
    told.append(str(error))
hooks = list(cupy.cuda.memory_hook.get_memory_hooks())
print(json.dumps([told, counters.kernels["f"], hooks, runtime.executes()]))
"""


def test_nothing_is_checked_but_the_call():
    """No fault or race is found, and no hook takes time of allocations; a launch that CUDA refuses is refused."""
    errors, launches, hooks, executes = told(FAULTS, LUCID_SIMULATOR_EXECUTE="0")
    assert launches == 3, "the refused one counts"
    assert len(errors) == 1
    assert "INVALID_VALUE" in errors[0]
    assert "at most 1,024 threads" in errors[0]
    assert hooks == []
    assert executes is False


@pytest.mark.parametrize("text", ["2", "no", "-1", "0.0"])
def test_what_is_neither_0_nor_1(text):
    """The setting is named, with what it may hold."""
    words = rf"LUCID_SIMULATOR_EXECUTE holds a whole number of 0 to 1, got '{text}'"
    assert_refused(run("import lucid", LUCID_SIMULATOR_EXECUTE=text), "SettingError", words)


def test_nothing_in_it_is_the_default():
    """An empty setting is as none: work is done."""
    code = "import lucid; print(lucid.ones(2, device='cuda').tolist())"
    assert run(code, LUCID_SIMULATOR_EXECUTE="").stdout == "[1.0, 1.0]\n"
