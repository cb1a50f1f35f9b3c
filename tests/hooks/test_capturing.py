"""`lucid.hooks.capture` and `tap`: what is kept, by which name, and that it stays as it was."""

from __future__ import annotations

import copy
import dataclasses
import errno
import gc
import pickle
import subprocess
import sys
import weakref
from collections import OrderedDict, defaultdict
from typing import Any, NamedTuple

import numpy as np
import pytest

import lucid
from lucid import hooks, nn
from lucid.errors import ArgumentError, CheckpointError, SettingError
from lucid.hooks import captured as captured_module
from tests.device import DEVICE
from tests.pieces import in_threads, module_of, raising


def net():
    """Return a small model in which one module is used twice, and one changes its input in place."""
    shared = nn.Linear(3, 3, device=DEVICE)
    return nn.Sequential(
        shared, nn.ReLU(inplace=True), shared, nn.Sequential(nn.Tanh(), nn.Linear(3, 1, device=DEVICE))
    )


def batch(rng):
    return lucid.tensor(rng.normal(size=(4, 3)), dtype=lucid.float32, device=DEVICE, requires_grad=True)


def steps(model, x):
    """Return what the modules of `net` return in turn, computed without hooks and without changes in place."""
    shared, last = model[0], model[3][1]
    first = shared(x)
    second = first.clip(min=0)
    third = shared(second)
    fourth = third.tanh()
    return first, second, third, fourth, last(fourth)


def test_outputs_inputs_and_gradients(rng):
    model, x = net(), batch(rng)
    expected = steps(model, x)
    upstream = lucid.tensor(rng.normal(size=(4, 1)), dtype=lucid.float32, device=DEVICE)
    grads = lucid.autograd.grad(expected[-1], expected[:-1], upstream)
    with hooks.capture(model, "**", what=("input", "output", "grad")) as kept:
        model(x).backward(upstream)
    for (path, call), value, grad in zip([("0", 0), ("1", 0), ("0", 1), ("3.0", 0)], expected, grads, strict=False):
        np.testing.assert_allclose(kept[path, "output", call].numpy(force=True), value.numpy(force=True), rtol=1e-6)
        if (path, call) != ("0", 0):  # what is changed in place has the gradient of the new value
            got = kept[path, "grad", call].numpy(force=True)
            np.testing.assert_allclose(got, grad.numpy(force=True), rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(kept["3.1", "input"][0].numpy(force=True), kept["3.0", "output"].numpy(force=True))
    np.testing.assert_array_equal(kept["", "output"].numpy(force=True), kept["3", "output"].numpy(force=True))
    np.testing.assert_array_equal(kept["", "grad"].numpy(force=True), upstream.numpy(force=True))
    assert not any(module._forward_hooks for module in model.modules())


@pytest.mark.parametrize("moved", [{}, {"dtype": lucid.float64}, {"device": DEVICE}], ids=str)
def test_values_stay_when_the_program_changes_its_own(rng, moved):
    """Also after the block, through a view, where a copy was made before, and moved to where they are already."""
    model = nn.Sequential(nn.Identity(), nn.Identity())
    x = lucid.tensor(rng.normal(size=(2, 3)), dtype=lucid.float64, device=DEVICE)
    before = x.numpy(force=True).copy()
    with hooks.capture(model, "*", **moved) as kept:
        model(x)
        x[0].mul_(2)
        model(x)
        between = x.numpy(force=True).copy()
    x.zero_()
    for call, values in ((0, before), (1, between)):
        for path in ("0", "1"):
            np.testing.assert_array_equal(kept[path, "output", call].numpy(force=True), values)
    own = kept["0", "output", 0]
    own.zero_()
    np.testing.assert_array_equal(kept["1", "output", 0].numpy(force=True), before)


def test_names_of_values(rng):
    model = net()
    with hooks.capture(model, ["0", "3.*"]) as kept:
        model(batch(rng))
    assert list(kept) == [("0", "output", 0), ("0", "output", 1), ("3.0", "output", 0), ("3.1", "output", 0)]
    assert kept["3.0"].shape == (4, 3)
    with pytest.raises(KeyError, match="names 2 values"):
        kept["0"]
    with pytest.raises(KeyError, match=r"nothing of this name was kept, but .*'3.1'"):
        kept["1"]
    assert "0" not in kept or kept["0", "output", 1].shape == (4, 3)
    assert repr(kept) == "<4 captured values of '0', '3.0', '3.1'>"
    assert len(kept) == 4


def test_with_their_graphs(rng):
    model, x = net(), batch(rng)
    with hooks.capture(model, "3.0", detach=False) as kept:
        model(x).sum().backward(retain_graph=True)
    (grad,) = lucid.autograd.grad(model[3][1](kept["3.0"]).sum(), model[0].bias)
    np.testing.assert_allclose(grad.numpy(force=True), model[0].bias.grad.numpy(force=True), rtol=1e-5)


def test_moved_and_cast(rng):
    model, x = module_of(lambda self, x: {"value": x * 2, "index": x.argmax(1), "name": "pair"}), batch(rng)
    with hooks.capture(model, "", device="cpu", dtype=lucid.float16) as kept:
        model(x)
    value = kept[""]
    assert (value["value"].dtype, value["index"].dtype, value["name"]) == (lucid.float16, lucid.int64, "pair")
    assert value["value"].device.type == value["index"].device.type == "cpu"
    np.testing.assert_array_equal(value["value"].numpy(), (x * 2).half().numpy(force=True))


class Rows(list):
    """A list with a name."""

    name = ""


class Fields(dict):
    """A dictionary with a name."""

    name = ""


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclasses.dataclass(frozen=True)
class Output:
    value: Any
    word: str


def named(value):
    value.name = "named"
    return value


STRUCTURES = {
    "list": lambda x: [x, 3],
    "list of another class": lambda x: named(Rows([x, 3])),
    "dictionary of another class": lambda x: named(Fields(value=x, word="a")),
    "defaultdict": lambda x: defaultdict(list, value=x),
    "OrderedDict": lambda x: OrderedDict(b=x, a=3),
    "named tuple": lambda x: Pair(x, (x, None)),
    "frozen dataclass": lambda x: Output([x], "a"),
}


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("tool", ["capture", "structured"])
def test_structures_keep_their_types(structure, tool):
    """What holds tensors stays of its class, with all that it is beside them: what is kept, and what hooks leave."""
    model, x = module_of(lambda self, x: STRUCTURES[structure](x * 1)), lucid.ones(2, device=DEVICE, requires_grad=True)
    if tool == "capture":
        with hooks.capture(model) as kept:
            model(x)
        got = kept[""]
    else:
        model.register_full_backward_hook(lambda *_: None)
        got = model(x)
    expected = STRUCTURES[structure](x)
    assert type(got) is type(expected)
    assert leaves(got) == leaves(expected)
    assert getattr(got, "name", None) == getattr(expected, "name", None)
    assert getattr(got, "default_factory", None) is getattr(expected, "default_factory", None)


def leaves(value):
    """Return a structure as plain lists."""
    if isinstance(value, lucid.Tensor):
        return value.tolist()
    if isinstance(value, dict):
        return [[key, leaves(entry)] for key, entry in value.items()]
    if isinstance(value, list | tuple):
        return [leaves(entry) for entry in value]
    return leaves(list(vars(value).values())) if isinstance(value, Output) else value


class Several(nn.Module):
    """Returns a tuple of products with some numbers."""

    def __init__(self, *factors):
        super().__init__()
        self.factors = factors

    def forward(self, x):
        return tuple(x * factor for factor in self.factors)


def test_gradients_of_several_outputs(rng):
    """They are a tuple as the outputs are, also of one, with None for what gets none."""
    x = batch(rng)
    model = Several(2, 3)
    with hooks.capture(model, "", what="grad") as kept:
        model(x)[1].sum().backward()
    first, second = kept[""]
    assert first is None
    assert (second == 1).all()
    model = Several(2)
    with hooks.capture(model, "", what="grad") as kept:
        model(x)[0].sum().backward()
    (only,) = kept[""]
    assert only.shape == x.shape


def test_each_value_has_a_file_of_its_own(tmp_path):
    """Also the gradients of several outputs, which are written again as each comes."""
    model, x = nn.ModuleList([Several(2, 3), Several(4, 5, 6)]), lucid.ones(2, device=DEVICE, requires_grad=True)
    with hooks.capture(model, "*", what=("output", "grad"), folder=tmp_path) as kept:
        for number, module in enumerate(model):
            sum(output.sum() * (number + k) for k, output in enumerate(module(x), start=1)).backward()
    assert [grad.tolist() for grad in kept["0", "grad"]] == [[1, 1], [2, 2]]
    assert [grad.tolist() for grad in kept["1", "grad"]] == [[2, 2], [3, 3], [4, 4]]
    assert [output.tolist() for output in kept["1", "output"]] == [[4, 4], [5, 5], [6, 6]]
    assert len([*tmp_path.glob("*.safetensors")]) == len(kept) == 4


def test_the_forward_ends_early(rng):
    model, x, called = net(), batch(rng), []
    model[3].register_forward_pre_hook(lambda *_: called.append(1))
    after = []
    with hooks.capture(model, "0", stop_at="1") as kept:
        model(x)
        after.append(1)
    assert list(kept) == [("0", "output", 0)]
    assert not called
    assert not after
    assert model(x).shape == (4, 1)
    with pytest.raises(SettingError, match="no gradients"):
        hooks.capture(model, "0", what="grad", stop_at="1")


def test_mistakes_leave_nothing(rng):
    model = net()
    for wrong, kind, message in (
        (lambda: hooks.capture(model, "0.attn"), SettingError, "no module of Sequential has a path like '0.attn'"),
        (lambda: hooks.capture(model, "3.O"), SettingError, r"near are \['3"),
        (lambda: hooks.capture(model, what="outputs"), SettingError, "expected some of"),
        (lambda: hooks.capture(), SettingError, "expected a model, or taps="),
        (lambda: hooks.capture(model, 3), ArgumentError, "pattern: expected a str or several"),
        (lambda: hooks.capture(print), ArgumentError, "model: expected a Module"),
        (lambda: hooks.capture(model, stop_at="9"), SettingError, "'9'"),
        (lambda: hooks.capture(model, stop_at=3), ArgumentError, "stop_at: expected the path of a module"),
        (lambda: hooks.capture(taps="a", stop_at="0"), ArgumentError, "stop_at: expected the path of a module"),
        (lambda: hooks.edit(model), SettingError, "expected a model with outputs"),
        *[
            (
                lambda place=place, more=more: hooks.edit(**{place: {"0": print}}, **more),
                SettingError,
                "expected a model",
            )
            for place in ("outputs", "inputs", "grads", "parameters")
            for more in ({}, {"taps": {"a": print}})
        ],
        (lambda: hooks.edit(model, {"7": print}), SettingError, "'7'"),
        (lambda: hooks.edit(model, {"0": 3}), TypeError, "callable hook, got int"),
        (lambda: hooks.edit(model, print), ArgumentError, "dictionary"),
        (lambda: hooks.guard(model, "x"), SettingError, "'x'"),
    ):
        with pytest.raises(kind, match=message):
            wrong()
    assert not any(module._forward_hooks for module in model.modules())


def test_nothing_outlives_what_was_kept(rng):
    model, x = net(), batch(rng)
    with hooks.capture(model, "0", what=("output", "grad")) as kept:
        y = model(x)
        y.sum().backward()
    graph = weakref.ref(y.grad_fn)
    del y
    assert graph() is None  # detached values hold no graph
    model_alive = weakref.ref(model)
    del model
    gc.collect()
    assert model_alive() is None
    assert kept["0", "output", 0].shape == (4, 3)


def test_edits_of_outputs_and_gradients(rng):
    """Functions of several patterns run in order, None leaves a value, and all is as before after the block."""
    model, x = nn.Sequential(nn.Identity(), nn.Identity()), batch(rng)
    seen = []
    with hooks.edit(
        model,
        {"*": lambda output: output + 1, "1": lambda output: seen.append(output.detach().numpy(force=True))},
        grads={"0": lambda grad: grad * 3},
    ):
        model(x).sum().backward()
    np.testing.assert_allclose(seen[0], (x + 2).numpy(force=True), rtol=1e-6)
    assert (x.grad == 3).all()
    assert model(x) is x
    with pytest.raises(ZeroDivisionError), hooks.edit(model, {"1": lambda output: 1 / 0}):
        model(x)
    assert model(x) is x
    model = Several(2, 3)
    with (
        hooks.edit(model, grads={"": print}),
        pytest.raises(ArgumentError, match="expected a module that returns a tensor"),
    ):
        model(x)


def test_the_first_number_that_is_not_finite(rng):
    model, x = net(), batch(rng)
    with hooks.guard(model):
        model(x).sum().backward()
    with lucid.no_grad():
        model[3][1].weight[0, 1] = float("nan")
    with (
        pytest.raises(
            hooks.NotFiniteError, match=r"output of 3.1 \(Linear\), made by .*: 4 NaN and 0 infinite of 4"
        ) as caught,
        hooks.guard(model),
    ):
        model(x)
    assert (caught.value.path, caught.value.what) == ("3.1", "output")
    model = nn.Sequential(nn.Linear(3, 3, device=DEVICE), nn.Tanh())
    with (
        hooks.guard(model),
        pytest.raises(hooks.NotFiniteError, match=r"gradient of the output of 0 \(Linear\)") as caught,
    ):
        y = model(x)
        y.register_hook(lambda grad: grad * float("inf"))
        (y * 0 + 1).sum().backward()
    assert caught.value.what == "gradient"
    assert not any(module._forward_hooks for module in model.modules())


def test_patterns_go_name_by_name():
    """No sign of a pattern stands for the dot between two names, but ``**``, which stands for any number of names."""
    model = nn.ModuleDict({"a": nn.ModuleDict({"b": nn.Identity(), "bc": nn.Identity()}), "axb": nn.Identity()})
    for pattern, paths in (
        ("a?b", ["axb"]), ("a[!x]b", None), ("a*", ["a", "axb"]), ("*.b*", ["a.b", "a.bc"]), ("**.b", ["a.b"]),
        ("a.**", ["a", "a.b", "a.bc"]), ("**.**", ["", "a", "a.b", "a.bc", "axb"]), ("", [""]), ("*b*c*", None),
        ("**.*b*c*", ["a.bc"]),
    ):  # fmt: skip
        if paths is None:
            with pytest.raises(SettingError, match="has a path like"):
                hooks.points(model, pattern)
        else:
            assert list(hooks.points(model, pattern)) == paths


def test_each_early_end_is_that_of_its_own_block(rng):
    """An inner block that would end later lets the end of an outer one pass."""
    model, reached = net(), []
    with hooks.capture(model, "0", stop_at="0"):
        with hooks.capture(model, "0", stop_at="3"):
            model(batch(rng))
        reached.append("between")
    assert reached == []
    assert len(hooks.table(model)) == 0


@pytest.mark.parametrize(
    "tool",
    [
        lambda model: hooks.capture(model),
        lambda model: hooks.edit(model, {"**": lambda output: None}),
        lambda model: hooks.guard(model),
        lambda model: hooks.trace(model),
    ],
)
def test_a_tool_that_fails_to_begin_leaves_nothing(tool, monkeypatch, rng):
    model = net()

    made = tool(model)
    monkeypatch.setattr(model[3][1], "register_forward_hook", raising(KeyError("no more hooks")))
    with pytest.raises(KeyError, match="no more hooks"), made:
        pass
    assert len(hooks.table(model)) == 0
    with hooks.scope() as inside:  # no scope is open any more
        model.register_forward_hook(lambda *_: None)
        assert len(inside) == 1
    assert model(batch(rng)).grad_fn.name() == "LinearBackward0"


def test_frozen_parameters_are_passed_over(rng):
    model = net()
    model[0].weight.requires_grad_(False)
    with hooks.edit(model, parameters={"**": lambda grad: grad * 0}):
        model(batch(rng)).sum().backward()
    assert (model[0].bias.grad == 0).all()
    assert model[0].weight.grad is None


@pytest.mark.filterwarnings("error")
def test_infinities_that_cancel_are_seen():
    x = lucid.tensor([float("inf"), float("-inf"), 3e38, 3e38], device=DEVICE)
    model = nn.Identity()
    with hooks.guard(model), pytest.raises(hooks.NotFiniteError, match="0 NaN and 2 infinite of 4 numbers"):
        model(x)
    with hooks.guard(model):
        model(x[2:])  # of which only the sum overflows
        model(lucid.ones(0, device=DEVICE))
        model(lucid.ones(3, dtype=lucid.bfloat16, device=DEVICE))
        model(lucid.full((4,), 6e4, dtype=lucid.float16, device=DEVICE))


def test_into_a_folder(tmp_path):
    """Nothing stays in memory: values are read from their files, in this process and in another, of any dtype."""
    model = nn.Sequential(nn.Linear(3, 4, device=DEVICE), nn.ReLU(inplace=True))
    x = lucid.ones(2, 3, device=DEVICE, requires_grad=True)
    with hooks.capture(model, what=("input", "output", "grad"), folder=tmp_path / "new" / "kept") as kept:
        for _ in range(2):
            model(x).sum().backward()
    with hooks.capture(model, what=("input", "output")) as expected:
        model(x)
    assert list(kept)[:2] == [("0", "input", 0), ("0", "output", 0)]
    for key in expected:
        assert_same(kept[key], expected[key])
    assert_same(kept["1", "grad", 1], lucid.ones(2, 4, device=DEVICE))
    again = hooks.Captured.load(tmp_path / "new" / "kept")
    assert list(again) == list(kept)
    assert_same(again["0", "input", 1], (x,))
    code = f"from lucid import hooks; print(hooks.Captured.load({str(kept.folder)!r})['1', 'output', 0].shape)"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == (
        "lucid.Size([2, 4])\n"
    )
    half = tmp_path / "half"
    with hooks.capture(model, "0", dtype=lucid.bfloat16, device="cpu", folder=half) as kept:
        model(x)
    assert (kept["0"].dtype, kept["0"].device.type) == (lucid.bfloat16, "cpu")


def assert_same(one, other):
    pairs = zip(one, other, strict=True) if isinstance(one, tuple) else [(one, other)]
    for a, b in pairs:
        assert a.dtype is b.dtype
        assert a.tolist() == b.tolist()
        assert not a.requires_grad


def test_folders_that_cannot_be_used(tmp_path, monkeypatch):
    """A folder with files is refused and left alone; a disk that is full is an error of the hook, and no more."""
    model = nn.Identity()
    (tmp_path / "mine.txt").write_text("here", encoding="utf-8")
    with pytest.raises(SettingError, match="expected a new or an empty one"), hooks.capture(model, folder=tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert len(hooks.table(model)) == 0
    with pytest.raises(SettingError, match="files hold no graphs"):
        hooks.capture(model, detach=False, folder=tmp_path / "new")
    assert not (tmp_path / "new").exists()

    def full(value, path):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(captured_module, "save", full)
    with (
        pytest.raises(OSError, match="No space left") as caught,
        hooks.capture(model, folder=tmp_path / "full") as kept,
    ):
        model(lucid.ones(1, device=DEVICE))
    assert "raised by hook" in caught.value.__notes__[0]
    assert len(kept) == len(hooks.table(model)) == 0
    assert list(hooks.Captured.load(tmp_path / "full")) == []
    with pytest.raises(CheckpointError, match=r"index\.json is no index of captured values"):
        hooks.Captured.load(tmp_path)
    row = '{"path": "", "what": "output", "call": 0, "file": "../other"}'
    for text in ("", "3", "[3]", "[{}]", row, row.replace(', "file": "../other"', "").join("[]"), f"[{row}]"):
        (tmp_path / "index.json").write_text(text, encoding="utf-8")
        with pytest.raises(CheckpointError, match=r"index\.json is no index of captured values") as caught:
            hooks.Captured.load(tmp_path)
    assert "leads out of the folder" in str(caught.value)


def test_a_block_that_is_entered_again_goes_on(tmp_path):
    """Calls are counted on, in the same folder, whose index has all of them."""
    model = nn.Identity()
    block = hooks.capture(model, folder=tmp_path)
    for number in range(2):
        with block as kept:
            model(lucid.full((1,), number, device=DEVICE))
    assert list(kept) == list(hooks.Captured.load(tmp_path)) == [("", "output", 0), ("", "output", 1)]
    assert [value.item() for value in kept.values()] == [0, 1]
    (tmp_path / "index.json").write_text('[{"path": "", "what": "output", "call": 0, "file": "../other"}]')
    with pytest.raises(CheckpointError, match="leads out of the folder"):
        hooks.Captured.load(tmp_path)


class NamedInput(nn.Module):
    """Takes its input by name, and returns two tensors."""

    def forward(self, x, *, scale):
        return x * scale, x * 2


def test_arguments_by_name(rng):
    x = batch(rng)
    model, scale = NamedInput(), lucid.ones(4, 3, device=DEVICE)
    with hooks.capture(model, what=("input", "kwargs")) as kept:
        model(x, scale=scale)
        model(x=x, scale=scale)
        scale.mul_(2)
    assert kept["", "input", 0][0].tolist() == x.tolist()
    assert {name: value.tolist() for name, value in kept["", "kwargs", 0].items()} == {"scale": [[1.0] * 3] * 4}
    assert (kept["", "input", 1], set(kept["", "kwargs", 1])) == ((), {"x", "scale"})


def test_gradients_are_those_of_one_pass(rng):
    """What an earlier pass brought to another output is not among those of a later one."""
    model, x = NamedInput(), batch(rng)
    with hooks.capture(model, what="grad") as kept:
        first, second = model(x, scale=lucid.ones(1, device=DEVICE))
        first.sum().backward(retain_graph=True)
        assert (kept[""][0].tolist(), kept[""][1]) == ([[1.0] * 3] * 4, None)
        (second * 3).sum().backward()
        assert (kept[""][0], kept[""][1].tolist()) == (None, [[3.0] * 3] * 4)
        first, second = model(x, scale=lucid.ones(1, device=DEVICE))
        (first + second * 3).sum().backward()
    assert [grad[0, 0].item() for grad in kept["", "grad", 1]] == [1.0, 3.0]


def test_what_was_read_is_the_readers(rng):
    """Neither what was kept, nor the program's own tensors, nor what backward needs changes with it."""
    model, x = net(), batch(rng)
    with hooks.capture(model, "**.0") as kept:
        output = model(x)
        expected = [kept[key].tolist() for key in kept]
        for key in kept:
            kept[key].zero_()
        output.sum().backward()
        changed, x.grad = x.grad, None
    assert [kept[key].tolist() for key in kept] == expected
    model(x).sum().backward()
    assert changed.tolist() == x.grad.tolist()
    # a clean activation in the place of another one, which the next module changes in place
    with hooks.edit(model, {"0": lambda output: kept["0", "output", 1]}):
        model(x)
    assert kept["0", "output", 1].tolist() == expected[[*kept].index(("0", "output", 1))]


@pytest.mark.parametrize("detach", [True, False])
def test_what_holds_tensors_is_kept_as_it_was(detach):
    class Layers(nn.Module):
        def forward(self, x, cache):
            cache.append(x)
            return {"last": [x], "empty": cache[1:]}

    cache = []
    x, model = lucid.ones(2, device=DEVICE), Layers()
    with hooks.capture(model, what=("input", "output"), detach=detach) as kept:
        model.register_forward_pre_hook(lambda module, args: None)
        with hooks.edit(model, {"": lambda output: output["last"].append(3)}):
            output = model(x, cache)
        output["last"].append(4)
        output["empty"].append(5)
        cache.append(6)
    assert (len(kept["", "output"]["last"]), kept["", "output"]["empty"]) == (1, [])
    kept["", "output"]["empty"].append(7)
    assert kept["", "output"]["empty"] == []
    assert len(kept["", "input"][1]) == 1  # as it is when the module returns


def test_copies_and_pickles(rng, tmp_path):
    model, x = net(), batch(rng)
    for folder in (None, tmp_path):
        with hooks.capture(model, "3.*", folder=folder) as kept:
            model(x)
        for copied in (copy.copy(kept), copy.deepcopy(kept), pickle.loads(pickle.dumps(kept))):
            assert [(*key, copied[key].tolist()) for key in copied] == [(*key, kept[key].tolist()) for key in kept]


def test_threads_that_call_at_once():
    model, x = nn.Identity(), lucid.ones(1, device=DEVICE)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with hooks.capture(model) as kept:
            in_threads(*[lambda: [model(x) for _ in range(200)]] * 4)
    finally:
        sys.setswitchinterval(interval)
    assert len(kept) == 800


def test_gradients_that_did_not_come_are_explained(rng):
    model = net()
    with hooks.capture(model, "0", what=("output", "grad")) as kept:
        loss = model(batch(rng)).sum()
    loss.backward()
    with pytest.raises(KeyError, match="backward passes inside of the block"):
        kept["0", "grad"]
    with pytest.raises(KeyError) as raised:
        kept["1", "output"]
    assert "backward" not in str(raised.value)


class Tied(nn.Module):
    """Calls the blocks of a list, which has no forward; the head has the weight of the embedding."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5, 3)
        self.act = nn.ReLU()
        self.blocks = nn.ModuleList([nn.Linear(3, 3), self.act])
        self.head = nn.Linear(3, 5, bias=False)
        self.head.weight = self.embedding.weight


@pytest.mark.parametrize(
    "tool", [hooks.capture, hooks.guard, hooks.trace, lambda model, pattern: hooks.edit(model, {pattern: print})]
)
def test_what_is_never_called_is_refused(tool):
    model = Tied()
    with pytest.raises(SettingError, match=r"'blocks' is a ModuleList, which has no forward: .* 'blocks\.\*'"):
        tool(model, "blocks")
    with pytest.raises(SettingError, match=r"'' is a Tied, which has no forward"):
        tool(model, "")
    tool(model, "blocks.**")
    tool(model, "**")


def test_a_further_path_is_told_the_first():
    model = Tied()
    with pytest.raises(SettingError, match=r"'blocks\.1' is the same one as 'act': go by that"):
        hooks.points(model, "blocks.1")
    with pytest.raises(SettingError, match=r"'head\.weight' is the same one as 'embedding\.weight'"):
        hooks.edit(model, parameters={"head.*": print})
    assert list(hooks.points(model, "blocks.*")) == ["blocks.0"]


def test_gradients_of_several_outputs_are_not_edited(rng):
    with (
        hooks.edit(model := NamedInput(), grads={"": lambda grad: grad}),
        pytest.raises(
            ArgumentError, match="edit: grads: expected a module that returns a tensor, got NamedInput, which retur"
        ),
    ):
        model(batch(rng), scale=1)


def test_edits_of_arguments(rng):
    """A tuple takes the place of all, anything else is the only one, None leaves them; named ones stay."""
    model, x = nn.Sequential(nn.Identity(), nn.Tanh()), batch(rng)
    edited = {"0": lambda args: (args[0] * 2,), "1": lambda args: args[0] + 1, "*": lambda args: None}
    with hooks.edit(model, inputs=edited), hooks.capture(model, what="input") as kept:
        output = model(x)
    assert output.tolist() == (x * 2 + 1).tanh().tolist() != model(x).tolist()
    assert kept["0", "input"][0].tolist() == (x * 2).tolist()
    pair, scale = NamedInput(), lucid.ones(1, device=DEVICE)
    with hooks.edit(pair, inputs={"": lambda args: args[0] * 0}):
        assert pair(x, scale=scale)[1].abs().sum().item() == 0
    with pytest.raises(SettingError, match="near are"):
        hooks.edit(model, inputs={"7": print})
    with pytest.raises(SettingError, match="outputs, inputs, grads or parameters"):
        hooks.edit(model, inputs={})


def made(rng, *, leaf=False):
    """Return a tensor on the graph, with the leaf that it is made of."""
    x = lucid.tensor(rng.standard_normal(2), device=DEVICE, requires_grad=True)
    return (x, x) if leaf else (x, x * 1.0)


class Hands(nn.Module):
    """Returns what it keeps, or the first tensor in what it is given, alone or with a product."""

    def __init__(self, kept=None, several=False):
        super().__init__()
        self.kept, self.several = kept, several

    def forward(self, x=None):
        given = x if self.kept is None else self.kept
        given = given[0] if isinstance(given, list) else given
        return (given, given * 4) if self.several else given


def calls_of(z):
    """Yield modules that return a tensor that they have not made, with a call of each."""
    yield nn.Dropout(0.5).eval(), lambda m: m(z)
    yield Hands(), lambda m: m(x=z)
    yield Hands(), lambda m: m([z])
    yield Hands(z), lambda m: m()


@pytest.mark.parametrize("leaf", [False, True], ids=["made before", "leaf"])
def test_an_output_that_the_call_has_not_made(leaf, rng):
    """What else is done with that tensor is neither captured nor edited, nor what a second call returns of it."""
    for number in range(4):
        x, z = made(rng, leaf=leaf)
        module, call = [*calls_of(z)][number]
        model = nn.Sequential(module)
        with hooks.capture(model, "0", what=("output", "grad")) as kept:
            (call(module) * 2 + call(module) * 3 + z * 5).sum().backward()
        assert [kept["0", "grad", k].tolist() for k in range(2)] == [[2.0] * 2, [3.0] * 2], number
        assert kept["0", "output", 0].tolist() == z.tolist()
        x.grad = None
        x, z = made(rng, leaf=leaf)
        module, call = [*calls_of(z)][number]
        with hooks.edit(nn.Sequential(module), grads={"0": lambda grad: grad * 10}):
            (call(module) * 2 + z * 5).sum().backward()
        assert x.grad.tolist() == [25.0] * 2, number
        with lucid.no_grad(), hooks.edit(nn.Sequential(module), grads={"0": print}):
            assert call(module) is z


def test_one_of_several_outputs(rng):
    """In a tuple that a module returns, each tensor counts for itself."""
    x, z = made(rng)
    model = Hands(several=True)
    with hooks.capture(model, "", what="grad") as kept:
        same, product = model(z)
        (same * 2 + product * 3 + z * 5).sum().backward()
    assert [grad.tolist() for grad in kept[""]] == [[2.0] * 2, [3.0] * 2]
    assert x.grad.tolist() == [19.0] * 2


def test_an_output_that_the_call_has_made_is_itself(rng):
    """No view takes its place, in modules inside of each other, either."""
    outputs = []
    model = nn.Sequential(nn.Sequential(nn.Tanh()), nn.Sigmoid())
    for module in model.modules():
        module.register_forward_hook(lambda m, args, output: outputs.append(output))
    _, z = made(rng)
    with hooks.capture(model, what="grad"), hooks.edit(model, grads={"**": lambda grad: grad}):
        y = model(z)
    first, outer, last, whole = outputs
    assert first is outer
    assert last is whole is y
    assert y.grad_fn.next_functions[0][0] is first.grad_fn


@pytest.mark.parametrize("folder", [False, True], ids=["memory", "folder"])
@pytest.mark.parametrize("dtype", [None, lucid.float32], ids=["as it is", "cast"])
def test_gradients_that_later_hooks_change(folder, dtype, rng, tmp_path):
    """Those of several outputs stay as they came, as that of one does, also where they are kept in files."""
    for several in (False, True):
        _, z = made(rng)
        model = Hands(several=several)
        where = tmp_path / str(several) if folder else None
        with hooks.capture(model, "", what="grad", dtype=dtype, folder=where) as kept:
            output = model(z)
            parts = output if several else (output,)
            for part in parts:
                part.register_hook(lambda grad: (grad.mul_(10.0), None)[1])
            sum(part.sum() for part in parts).backward()
        grads = kept[""] if several else (kept[""],)
        assert [grad.tolist() for grad in grads] == [[1.0] * 2] * len(parts)
        assert {grad.dtype for grad in grads} == {dtype or z.dtype}
