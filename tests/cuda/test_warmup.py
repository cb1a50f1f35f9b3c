"""`lucid.cuda.warmup` compiles what a model needs, and leaves no other trace, however it ends."""

from __future__ import annotations

import gc
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.base.random.generator import get_rng_states
from lucid.cuda.launch import kernels
from lucid.errors import CaptureError, CudaUnavailableError, KernelError
from tests.pieces.children import python


class Net(nn.Module):
    """It has what a run can change: running statistics, random numbers, a counter, an in-place layer."""

    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(6, 5)
        self.norm = nn.BatchNorm1d(5)
        self.dropout = nn.Dropout(0.5)
        self.head = nn.Linear(5, 3)
        self.calls = 0
        self.fail = False

    def forward(self, x):
        self.calls += 1
        x = self.dropout(self.norm(self.hidden(x.mul_(2.0)).relu_()))
        if self.fail:
            raise ArithmeticError("the model's own")
        return self.head(x)


def picture(model, x):
    """Return everything of a model and its input that a run could change."""
    return (
        {name: tensor.cpu().numpy().copy() for name, tensor in model.state_dict().items()},
        [id(tensor) for tensor in (*model.parameters(), *model.buffers())],
        [(p.grad, None if p.grad is None else p.grad.cpu().numpy().copy(), p._version) for p in model.parameters()],
        [module.training for module in model.modules()],
        model.calls,
        (x.cpu().numpy().copy(), x.grad, x._version),
        get_rng_states(),
    )


def same(first, second):
    """Compare two pictures, arrays by value."""
    if isinstance(first, np.ndarray):
        return np.array_equal(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    return first is second or (not isinstance(first, lucid.Tensor) and first == second)


@pytest.fixture
def net():
    """Return a model on the device, one parameter of which has a gradient, and an input."""
    lucid.manual_seed(0)
    model = Net().cuda()
    model.dropout.eval()
    model.head.weight.grad = lucid.ones_like(model.head.weight)
    return model, lucid.randn(4, 6, device="cuda")


@pytest.mark.gpu
def test_nothing_but_compiled_kernels_is_left(net):
    """Parameters, gradients, buffers, flags, counters, inputs and generators are what they were."""
    model, x = net
    before = picture(model, x)
    assert lucid.cuda.warmup(model, x) is None
    assert same(picture(model, x), before)


@pytest.mark.gpu
def test_the_picture_sees_a_run(net):
    """The comparison of this file notices what an ordinary step changes."""
    model, x = net
    before = picture(model, x)
    model(x).sum().backward()
    after = picture(model, x)
    assert [same(a, b) for a, b in zip(after, before, strict=True)] == [False, True, False, True, False, False, True]


@pytest.mark.gpu
def test_an_error_leaves_the_model_as_it_was(net):
    """What the model raises comes out, and nothing has changed."""
    model, x = net
    model.fail = True
    before = picture(model, x)
    with pytest.raises(ArithmeticError, match="own"):
        lucid.cuda.warmup(model, x)
    assert same(picture(model, x), before)


@pytest.mark.gpu
def test_hooks_do_not_fire(net):
    """Neither those of modules nor those of parameters see the run, and all are still there."""
    model, x = net
    fired = []
    model.register_forward_hook(lambda *_: fired.append("forward"))
    model.hidden.register_forward_pre_hook(lambda *_: fired.append("pre"))
    model.head.register_full_backward_hook(lambda *_: fired.append("backward"))
    model.head.weight.register_hook(lambda _: fired.append("tensor"))
    model.head.bias.register_post_accumulate_grad_hook(lambda _: fired.append("accumulated"))
    lucid.cuda.warmup(model, x)
    assert fired == []
    model(x.clone()).sum().backward()
    assert sorted(fired) == ["accumulated", "backward", "forward", "pre", "tensor"]


@pytest.mark.gpu
@pytest.mark.parametrize("fail", [False, True])
def test_random_numbers_go_on_as_if_nothing_had_run(net, fail):
    """Generators are where they were, also after a run that drew and then failed."""
    model, x = net
    model.dropout.train()
    model.fail = fail
    before = get_rng_states()
    with pytest.raises(ArithmeticError, match="own") if fail else nullcontext():
        lucid.cuda.warmup(model, x)
    assert same(get_rng_states(), before)
    model.dropout(x)
    assert not same(get_rng_states(), before)


@pytest.mark.gpu
def test_an_output_of_complex_numbers():
    """Without a loss backward runs from the sum of their absolute values, as a gradient begins at a real number."""
    weight = lucid.ones(3, dtype=lucid.complex64, device="cuda", requires_grad=True)
    reached = []

    class Scaled(nn.Module):
        def forward(self, x):
            out = x * weight
            out.register_hook(lambda grad: reached.append(grad.tolist()))
            return out

    lucid.cuda.warmup(Scaled(), lucid.full((3,), 2.0, device="cuda"))
    assert reached[-1] == [1.0] * 3


@pytest.mark.gpu
def test_hooks_of_outputs_do_not_fire(net):
    """Nor do those of ``register_backward_hook``, which lie on what a module returns."""
    model, x = net
    fired = []
    model.hidden.register_backward_hook(lambda _, grad: fired.append(grad.shape))
    lucid.cuda.warmup(model, x)
    assert fired == []
    model(x.clone()).sum().backward()
    assert len(fired) == 1


@pytest.mark.gpu
def test_backward_runs_from_the_loss_that_is_given(net):
    """`loss` gets the output, and its kernels are compiled with the rest; backward reaches copies of the parameters."""
    model, x = net
    labels = lucid.tensor([0, 1, 2, 0], device="cuda")
    seen = []

    def loss(output):
        seen.append(output.shape)
        value = nn.functional.cross_entropy(output, labels)
        value.register_hook(lambda grad: seen.append(grad.item()))
        return value

    lucid.cuda.warmup(model, x, loss=loss)
    # nothing can be read in the capture, which ends there
    assert seen == [(4, 3), (4, 3), 1.0]


@pytest.mark.gpu
def test_every_tensor_of_an_output_takes_part():
    """Outputs in any structure all send gradients back; without one that requires grad, only forward runs."""
    reached = []

    @dataclass
    class Output:
        part: Any

    class Several(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(lucid.ones(3, device="cuda"))

        def forward(self, x):
            parts = [self.weight * x, self.weight + x, x * 2, self.weight - x]
            for name, part in enumerate(parts):
                if part.requires_grad:
                    part.register_hook(lambda _, name=name: reached.append(name))
            return {"a": parts[0], "b": [parts[1], (parts[2], Output(parts[3]))], "c": "no tensor"}

    model, x = Several(), lucid.ones(3, device="cuda")
    lucid.cuda.warmup(model, x)
    assert reached[: len(reached) // 2] == reached[len(reached) // 2 :]
    assert sorted(reached) == [0, 0, 1, 1, 3, 3]
    reached.clear()
    model.requires_grad_(False)
    lucid.cuda.warmup(model, x)
    assert reached == []


@pytest.mark.gpu
def test_inputs_that_require_grad_get_none():
    """Backward computes an input's gradient, as in training, but for a copy of the input."""
    reached = []

    class Watched(nn.Linear):
        def forward(self, x):
            x.register_hook(lambda _: reached.append("input"))
            return super().forward(x)

    x = lucid.randn(4, 3, device="cuda").requires_grad_()
    lucid.cuda.warmup(Watched(3, 2).cuda(), x)
    assert reached == ["input", "input"]
    assert x.grad is None


class Compiling:
    """A driver that tells what is compiled ahead, what is loaded and what is launched, and on which thread."""

    def __init__(self, driver):
        self.driver, self.compiled, self.loaded, self.launched = driver, [], [], 0
        self.device, self.stream, self.whole_units = driver.device, driver.stream, False
        self.allow_shared, self.recovers, self.failure = driver.allow_shared, driver.recovers, driver.failure
        self.together, self.refused = threading.Barrier(1), ""

    def compile(self, unit):
        self.together.wait()
        on_main = threading.current_thread() is threading.main_thread()
        self.compiled.append((*unit.signatures, self.device(), on_main, self.launched))

    def load(self, unit):
        names = tuple(unit.signatures)
        if self.refused and self.refused in names[0]:
            raise KernelError(f"no {names[0]}")
        on_main = threading.current_thread() is threading.main_thread()
        self.loaded.append((*names, self.device(), on_main))
        return self.driver.load(unit)

    def launch(self, *launch):
        self.launched += 1
        self.driver.launch(*launch)

    def warm(self, model, x):
        """Return what a warm-up compiled ahead and loaded, and how much it launched."""
        self.compiled, self.loaded, self.launched = [], [], 0
        lucid.cuda.warmup(model, x)
        return self.compiled, self.loaded, self.launched


class Reads(nn.Module):
    """It reads a value, which no capture can."""

    def forward(self, x):
        y = nn.functional.silu(x)
        return nn.functional.softplus(y) if y.sum().item() > 0 else y


def warm_ups_of_a_new_process():
    """Print what warm-ups compile of which nothing was compiled before."""
    runs = Compiling(kernels.driver())
    kernels.drive(lambda: runs)
    x = lucid.ones(5, device="cuda")
    told = {"reads": runs.warm(Reads(), x)}
    if len(os.sched_getaffinity(0)) > 1:
        # breaks unless two kernels are under way at once
        runs.together = threading.Barrier(2, timeout=60)
        told["two"] = runs.warm(nn.Sequential(nn.Mish(), nn.ELU()), x)
        runs.together = threading.Barrier(1)
    told["first"] = runs.warm(Net().cuda(), lucid.ones(4, 6, device="cuda"))
    told["second"] = runs.warm(Net().cuda(), lucid.ones(4, 6, device="cuda"))
    runs.refused = "Clamp"
    try:
        told["refused"] = runs.warm(nn.Hardtanh(), x)
    except KernelError as error:
        told["refused"] = str(error)
    runs.refused = ""
    told["mended"] = runs.warm(nn.Hardtanh(), x)
    print(json.dumps(told))


@pytest.fixture(scope="module")
def told():
    """Return what the new process printed: for each warm-up what was compiled ahead, what loaded, and launches."""
    ran = python("-c", "from tests.cuda.test_warmup import warm_ups_of_a_new_process as run; run()")
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


@pytest.mark.gpu
def test_all_is_compiled_before_anything_is_launched(told):
    """Each kernel that the run loads was compiled ahead, once, on another thread, and nothing had run before."""
    compiled, loaded, launched = told["first"]
    assert sorted(name for name, *_ in compiled) == sorted(name for name, *_ in loaded)
    assert len(loaded) > 5
    assert launched >= len(loaded)
    assert {tuple(rest) for _, *rest in compiled} == {(0, False, 0)}
    assert {tuple(rest) for _, *rest in loaded} == {(0, True)}


@pytest.mark.gpu
def test_what_is_there_is_not_compiled_again(told):
    """A second warm-up of the same shapes compiles and loads nothing, and runs as much."""
    compiled, loaded, launched = told["second"]
    assert compiled == loaded == []
    assert launched == told["first"][2]


@pytest.mark.gpu
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_kernels_are_compiled_side_by_side(told):
    """Two kernels were under way at once: neither went on before the other had begun."""
    compiled, _, _ = told["two"]
    assert len(compiled) == 2


@pytest.mark.gpu
def test_what_cannot_be_captured_is_compiled_as_it_comes(told):
    """A model that reads values is run all the same; what comes before that is compiled ahead."""
    compiled, loaded, launched = told["reads"]
    ahead, names = ([name for name, *_ in each] for each in (compiled, loaded))
    assert any("Silu" in name for name in ahead)
    assert not any("Softplus" in name for name in ahead)
    assert any("Softplus" in name for name in names)
    assert set(ahead) < set(names)
    assert launched >= len(names)


@pytest.mark.gpu
def test_a_kernel_that_does_not_compile_is_told_by_the_run(told):
    """What fails ahead is not lost: the run asks for the kernel, raises, and the next one asks again."""
    assert told["refused"].startswith("no ")
    _, loaded, launched = told["mended"]
    assert any("Clamp" in name for name, *_ in loaded)
    assert launched


@pytest.mark.gpu
def test_in_a_capture_it_is_refused(net):
    """A capture records work, and a warm-up is done now: the capture fails where that stands, and nothing is left."""
    model, x = net
    before = picture(model, x)
    with pytest.raises(CaptureError, match="warmup cannot be captured"), lucid.cuda.graph(lucid.cuda.CUDAGraph()):
        lucid.cuda.warmup(model, x)
    assert not lucid.cuda.is_current_stream_capturing()
    assert same(picture(model, x), before)


@pytest.mark.gpu
def test_threads_warm_up_at_once(net):
    """While one thread is in its capture another may be at the end of its run: none disturbs the other."""
    _, x = net
    with ThreadPoolExecutor(3) as threads:
        models = [Net().cuda() for _ in range(15)]
        # what one raises comes out here
        list(threads.map(lambda model: lucid.cuda.warmup(model, x.clone()), models))


@pytest.mark.gpu
def test_other_threads_may_wait_for_the_device(net):
    """Waits for the whole device, and captures, which begin with one, go on beside warm-ups, and disturb none."""
    _, x = net
    model, ended = Net().cuda(), threading.Event()

    def warm():
        try:
            for _ in range(8):
                lucid.cuda.warmup(model, x.clone())
        finally:
            ended.set()

    with ThreadPoolExecutor(1) as threads:
        warmed = threads.submit(warm)
        waits = 0
        while not ended.is_set():
            lucid.cuda.synchronize()
            with lucid.cuda.graph(lucid.cuda.CUDAGraph()):
                x + 1
            waits += 1
        warmed.result()
    assert waits


@pytest.mark.gpu
def test_the_memory_of_the_capture_is_given_back(net):
    """Nothing of either copy is left, also where the model holds itself."""
    model, x = net
    model.parts = [model]
    lucid.cuda.warmup(model, x)
    gc.collect()
    before = lucid.cuda.memory_allocated()
    lucid.cuda.warmup(model, x)
    gc.collect()
    assert lucid.cuda.memory_allocated() == before


@pytest.mark.gpu
def test_what_is_no_module_is_refused():
    """A function has no parameters to copy."""
    with pytest.raises(TypeError, match="expected a module, got function"):
        lucid.cuda.warmup(lambda x: x, lucid.ones(1, device="cuda"))


def test_without_a_device_it_says_so(no_cupy):
    """As everything in `lucid.cuda` that needs a device."""
    with pytest.raises(CudaUnavailableError):
        lucid.cuda.warmup(nn.Linear(1, 1), lucid.ones(1))


@pytest.mark.gpu
def test_the_capture_of_another_thread():
    """A capture that another thread is in goes on, and replays what it recorded."""
    model, x = lucid.nn.Linear(3, 2).cuda(), lucid.ones(4, 3, device="cuda")
    expected = (model(x) * 2).tolist()
    inside, warm = threading.Event(), threading.Event()
    results = []

    def capture():
        graph = lucid.cuda.CUDAGraph()
        try:
            with lucid.cuda.graph(graph):
                y = model(x)
                inside.set()
                warm.wait(60)
                y = y * 2
            graph.replay()
            results.append(y.tolist())
        finally:
            inside.set()

    thread = threading.Thread(target=capture)
    thread.start()
    try:
        inside.wait(60)
        lucid.cuda.warmup(model, x)
    finally:
        warm.set()
        thread.join()
    assert results == [expected]
