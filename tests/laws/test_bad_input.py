"""Bad input: each mistake is refused with what was expected and what was got, and changes nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from safetensors.numpy import save_file

import lucid
import lucid.nn.functional as F
from lucid import nn, optim
from lucid.errors import (
    ArgumentError,
    CheckpointError,
    DeviceError,
    DtypeError,
    GraphError,
    HookError,
    HookTypeError,
    IndexOutOfRangeError,
    InplaceError,
    SettingError,
    ShapeError,
    StateDictError,
)

ones = lucid.ones


@pytest.fixture
def leaf():
    """Return a leaf with a gradient of earlier passes."""
    x = lucid.tensor([0.5, -2.0, 3.0], requires_grad=True)
    x.grad = lucid.tensor([7.0, 8.0, 9.0])
    return x


def unchanged(x):
    """Tell whether the leaf of the fixture is as it was."""
    return x.tolist() == [0.5, -2.0, 3.0] and x.grad.tolist() == [7.0, 8.0, 9.0] and x._version == 0


def contents(state):
    """Return a state dict as plain values."""
    return {name: value.tolist() for name, value in state.items()}


REFUSED = {
    "add shapes": (lambda: ones(2) + ones(3), ShapeError, r"\(2,\) and \(3,\).*expected equal sizes"),
    "matmul shapes": (lambda: ones(2, 3) @ ones(2, 3), ShapeError, r"inner sizes differ: a has shape \(2, 3\)"),
    "cat shapes": (
        lambda: lucid.cat([ones(2, 3), ones(3, 2)]),
        ShapeError,
        r"expected them as in \[2, 3\], got \[3, 2\]",
    ),
    "reshape": (lambda: ones(6).reshape(4, 2), ShapeError, r"shape '\[4, 2\]' is invalid for input of size 6"),
    "dim": (lambda: ones(2).sum(dim=3), IndexOutOfRangeError, r"expected to be in range of \[-1, 0\], but got 3"),
    "negative size": (lambda: lucid.empty(-2, 2), ShapeError, r"negative dimension: \[-2, 2\]; expected sizes >= 0"),
    "size no integer": (
        lambda: lucid.randn(2.5),
        ArgumentError,
        r"randn: size\[0\]: expected an int .*, got float 2.5",
    ),
    "linear input": (
        lambda: nn.Linear(4, 2)(ones(1, 3)),
        ShapeError,
        r"last dimension 4 \(weight has shape \(2, 4\)\), got input of shape \(1, 3\)",
    ),
    "linear of an array": (lambda: nn.Linear(2, 2)(np.ones((1, 2))), DtypeError, "expected a Tensor, got ndarray"),
    "convolution of an array": (
        lambda: nn.Conv1d(1, 1, 1)(np.ones((1, 1, 2))),
        DtypeError,
        "Conv1d.forward: input: expected a Tensor, got ndarray",
    ),
    "pooling of an array": (lambda: F.max_pool2d(np.ones((1, 2, 2)), 2), DtypeError, "expected a Tensor, got ndarray"),
    "adaptive pooling of an array": (
        lambda: F.adaptive_avg_pool2d(np.ones((1, 2, 2)), 2),
        DtypeError,
        "expected a Tensor, got ndarray",
    ),
    "convolution channels": (
        lambda: nn.Conv2d(3, 4, 3)(ones(1, 2, 5, 5)),
        ShapeError,
        r"expected input with 3 channels .*, got 2 in input of shape",
    ),
    "class": (
        lambda: F.cross_entropy(ones(2, 3), lucid.tensor([0, 3])),
        IndexOutOfRangeError,
        "Target 3 is out of bounds: expected 0 to 2",
    ),
    "target shape": (
        lambda: F.cross_entropy(ones(2, 3), lucid.tensor([0])),
        ShapeError,
        r"takes a target of shape \[2\], got \[1\]",
    ),
    "target dtype": (
        lambda: F.cross_entropy(ones(2, 3), ones(2)),
        DtypeError,
        r"expected a target of integers \(int64\), got lucid.float32",
    ),
    "ignored class of probabilities": (
        lambda: F.cross_entropy(ones(2, 3), ones(2, 3) / 3, ignore_index=1),
        ArgumentError,
        "ignore_index=1 is for targets that are classes",
    ),
    "scalar of several": (lambda: lucid.scalar_tensor([1, 2]), ArgumentError, "s: expected a number or a 0-dim tensor"),
    "matmul dtypes": (
        lambda: ones(2, 2) @ ones(2, 2, dtype=lucid.int64),
        DtypeError,
        "expected operands of one dtype, got lucid.float32, lucid.int64",
    ),
    "linear dtype": (
        lambda: nn.Linear(2, 2)(ones(1, 2, dtype=lucid.float64)),
        DtypeError,
        "expected operands of one dtype, got lucid.float64, lucid.float32",
    ),
    "unknown dtype": (
        lambda: ones(2, dtype="float33"),
        DtypeError,
        "ones: dtype: expected a dtype of lucid .*, got str 'float33'",
    ),
    "integers that require grad": (
        lambda: lucid.tensor([1], requires_grad=True),
        DtypeError,
        "floating point and complex dtype can require gradients, got int64",
    ),
    "unknown device": (lambda: ones(2, device="tpu"), DeviceError, "expected a device such as 'cpu'.*, got str 'tpu'"),
    "module to an unknown device": (
        lambda: nn.Linear(1, 1).to("tpu"),
        DeviceError,
        "expected a device .*, got str 'tpu'",
    ),
    "second CPU": (lambda: ones(2, device="cpu:1"), DeviceError, "no device cpu:1: there is one CPU"),
    "several elements as a number": (
        lambda: ones(3).item(),
        ShapeError,
        r"expected one element, got shape \(3,\)",
    ),
    "no gradient recorded": (lambda: ones(1).sum().backward(), GraphError, "does not require grad"),
    "no parameters": (lambda: optim.SGD([], lr=0.1), ValueError, "empty parameter list: pass model.parameters"),
    "negative lr": (
        lambda: optim.Adam([nn.Parameter(ones(2))], lr=-1.0),
        ValueError,
        "learning rate: -1.0: expected a finite number of at least 0",
    ),
    "number among tensors": (lambda: lucid.cat([ones(2), 3]), ArgumentError, r"cat: tensors\[1\]: .*Tensor, got int 3"),
    "nonzero of a text": (lambda: lucid.nonzero("a"), ArgumentError, "nonzero: input: expected a Tensor, got str 'a'"),
    "init of a number": (lambda: nn.init.normal_(3), ArgumentError, "normal_: tensor: expected a Tensor, got int 3"),
    "generator": (
        lambda: lucid.randn(2, generator=3),
        ArgumentError,
        "randn: generator: expected a Generator or None, got int 3",
    ),
    "dropout probability": (
        lambda: F.dropout(ones(2), "a"),
        ArgumentError,
        "dropout: p: expected a number .*, got str",
    ),
    "negative class": (
        lambda: F.one_hot(lucid.tensor([-1])),
        IndexOutOfRangeError,
        "one_hot: expected classes of at least 0, got -1",
    ),
    "einsum of a number": (
        lambda: lucid.einsum(3, ones(2)),
        ArgumentError,
        r"einsum: args\[0\]: expected the equation as a string, or each operand and its labels, got int 3",
    ),
    "one tensor for a list": (
        lambda: optim.AdamW(nn.Parameter(ones(2))),
        TypeError,
        "expected an iterable of Tensors or dicts, got a Tensor",
    ),
}


# What a device would have to read back for; it is checked there in debug mode only.
READ_BACK = {"class": pytest.mark.cpu("a CUDA device does not look at the values of targets")}


@pytest.mark.parametrize("case", [pytest.param(case, marks=READ_BACK.get(case, ())) for case in REFUSED])
def test_a_bad_argument_is_refused_with_what_was_expected_and_got(case):
    """Wrong shapes, dtypes, devices and settings raise the error of their kind."""
    call, error, message = REFUSED[case]
    with pytest.raises(error, match=message):
        call()


def test_a_cuda_device_that_is_not_there_leaves_the_module_where_it_is():
    """A GPU that does not exist, or CUDA without any, is a DeviceError, and no parameter has moved."""
    layer = nn.Linear(2, 2)
    for call in (lambda: layer.cuda(99), lambda: layer.to("cuda:99"), lambda: ones(2, device="cuda:99")):
        with pytest.raises(DeviceError, match=r"CUDA|cuda:99"):
            call()
    assert all(p.device == lucid.get_default_device() for p in layer.parameters())


def parameter():
    """Return a parameter with a gradient of length 5."""
    p = nn.Parameter(ones(2))
    p.grad = lucid.tensor([3.0, 4.0])
    return p


OPTIMISERS = {
    "betas no pair": (
        lambda p: optim.Adam([p], betas=3),
        ArgumentError,
        "Adam: betas: .*sequence of numbers or Tensors, got int 3",
    ),
    "betas of texts": (lambda p: optim.Adam([p], betas=("a", "b")), ArgumentError, "Adam: betas: .*, got tuple"),
    "betas of a group": (
        lambda p: optim.Adam([{"params": [p], "betas": "ab"}]),
        SettingError,
        "Invalid betas: expected two numbers, got ab",
    ),
    "no parameters at all": (
        lambda p: optim.SGD(None, lr=0.1),
        ArgumentError,
        "params: expected an iterable of Tensors or dicts, got NoneType",
    ),
    "names and parameters": (
        lambda p: optim.Adam({"a": p}),
        ArgumentError,
        r"params: .*, got dict: a dict of names goes as its items\(\)",
    ),
    "infinite rate": (
        lambda p: optim.SGD([p], lr=math.inf),
        SettingError,
        "learning rate: inf: expected a finite number",
    ),
    "flag for a rate": (
        lambda p: optim.SGD([p], lr=True),
        ArgumentError,
        "SGD: lr: expected a number .*, got bool True",
    ),
    "flag of a group": (
        lambda p: optim.SGD([{"params": [p], "lr": True}]),
        ArgumentError,
        "learning rate: .*got bool True",
    ),
    "word for a flag": (
        lambda p: optim.Adam([p], amsgrad="maybe"),
        ArgumentError,
        "Adam: amsgrad: expected a bool, got str 'maybe'",
    ),
    "word for a group's flag": (
        lambda p: optim.Adam([{"params": [p], "amsgrad": "maybe"}]),
        ArgumentError,
        "Invalid amsgrad: expected a bool, got str 'maybe'",
    ),
    "state": (
        lambda p: optim.Adam([p]).load_state_dict(3),
        ArgumentError,
        "load_state_dict: state_dict: expected a dict .*, got int 3",
    ),
    "closure": (
        lambda p: optim.Adam([p]).step(3),
        ArgumentError,
        "step: closure: expected a callable or None, got int 3",
    ),
    "clipping a number": (
        lambda p: nn.utils.clip_grad_norm_(3, 1.0),
        ArgumentError,
        "clip_grad_norm_: parameters: expected a Tensor or an iterable, got int 3",
    ),
    "clipping numbers": (
        lambda p: nn.utils.clip_grad_norm_([p, 3], 1.0),
        ArgumentError,
        r"clip_grad_norm_: parameters\[1\]: expected a Tensor, got int 3",
    ),
    "negative norm": (lambda p: nn.utils.clip_grad_norm_(p, -1), SettingError, "max_norm: .*at least 0.*, got -1"),
    "norm that is NaN": (lambda p: nn.utils.clip_grad_norm_(p, math.nan), SettingError, "max_norm: .*, got nan"),
    "negative limit": (lambda p: nn.utils.clip_grad_value_(p, -1), SettingError, "clip_value: .*at least 0.*, got -1"),
    "norm of no gradients": (
        lambda p: nn.utils.clip_grad_norm_(nn.Parameter(ones(2)), "a"),
        ArgumentError,
        "clip_grad_norm_: max_norm: expected a number, got str 'a'",
    ),
}


@pytest.mark.parametrize("case", OPTIMISERS)
def test_a_bad_setting_of_a_step_changes_no_parameter(case):
    """Optimisers and clipping name the setting that is wrong; parameter and gradient stay as they are."""
    call, error, message = OPTIMISERS[case]
    p = parameter()
    with pytest.raises(error, match=message):
        call(p)
    assert p.tolist() == [1.0, 1.0]
    assert p.grad.tolist() == [3.0, 4.0]


BACKWARDS = {
    "not a scalar": (lambda y: y.backward(), GraphError, r"only for scalar outputs: the output has shape \(3,\)"),
    "shape": (lambda y: y.backward(ones(2)), ShapeError, r"has shape \(2,\) and its tensor has shape \(3,\)"),
    "complex": (
        lambda y: y.backward(ones(3, dtype=lucid.complex64)),
        DtypeError,
        "gradient 0 is complex64 and its tensor float32: expected a real gradient",
    ),
    "number": (lambda y: y.backward(3), HookTypeError, "gradient 0: expected a Tensor or None, got int"),
    "array": (lambda y: y.backward(np.ones(3)), HookTypeError, "expected a Tensor or None, got ndarray"),
    "no inputs": (lambda y: y.sum().backward(inputs=[]), GraphError, "expected at least one tensor"),
}


@pytest.mark.parametrize("case", BACKWARDS)
def test_a_pass_that_cannot_begin_changes_no_gradient_and_frees_nothing(leaf, case):
    """A bad gradient is refused before the pass: gradients stay, and the graph still runs."""
    call, error, message = BACKWARDS[case]
    y = leaf * leaf
    with pytest.raises(error, match=message):
        call(y)
    assert unchanged(leaf)
    y.backward(lucid.tensor([1.0, 2.0, -1.0]))
    assert leaf.grad.tolist() == [8.0, 0.0, 3.0]


def test_a_second_pass_through_a_freed_graph_is_refused(leaf):
    """A freed graph raises GraphError that names the node and retain_graph, and adds nothing to the gradient."""
    y = (leaf * leaf).sum()
    lucid.autograd.grad(y, leaf)
    with pytest.raises(GraphError, match=r"MulBackward0: .* second time.*retain_graph=True"):
        y.backward()
    assert unchanged(leaf)


@pytest.mark.parametrize(
    ("returned", "error", "message"),
    [
        (lambda: "a", HookTypeError, "expected None or a Tensor to be returned, got str"),
        (lambda: np.ones(3), HookTypeError, "expected None or a Tensor to be returned, got ndarray"),
        (lambda: ones(2), HookError, r"expected shape \(3,\), float32 on (\S+), got shape \(2,\), float32 on \1"),
        (lambda: ones(3, dtype=lucid.int64), HookError, r"float32 on (\S+), got shape .*, int64 on \1"),
    ],
)
def test_a_tensor_hook_that_returns_something_else_is_named(leaf, returned, error, message):
    """A tensor hook's wrong return names the hook, expected and got; the gradient of its tensor stays."""
    handle = leaf.register_hook(lambda grad: returned())
    with pytest.raises(error, match=rf"tensor hook .*test_bad_input\.py.*{message}"):
        (leaf * 2).sum().backward()
    assert unchanged(leaf)
    handle.remove()
    (leaf * 2).sum().backward()
    assert leaf.grad.tolist() == [9.0, 10.0, 11.0]


def test_a_node_hook_that_returns_something_else_is_named(leaf):
    """A node hook's wrong return says how many gradients were expected; no gradient changes."""
    for returned, error, message in (
        (5, HookTypeError, "expected None or a tuple, got int"),
        ((None, None, None), HookError, "expected a tuple of 1 gradients, got 3"),
    ):
        y = leaf.exp().sum()
        y.grad_fn.register_hook(lambda grad_inputs, grad_outputs, returned=returned: returned)
        with pytest.raises(error, match=message):
            y.backward()
    assert unchanged(leaf)


def test_a_module_hook_that_returns_something_else_is_named():
    """Wrong returns of full backward and state-dict hooks are refused, and no parameter gets a gradient."""
    for register, kind in (
        ("register_full_backward_hook", "grad_input"),
        ("register_full_backward_pre_hook", "grad_output"),
    ):
        layer, x = nn.Linear(3, 2), lucid.randn(1, 3, requires_grad=True)
        getattr(layer, register)(lambda *_: "bad")
        with pytest.raises(HookTypeError, match=f"invalid {kind}: expected None or a tuple, got str"):
            layer(x).sum().backward()
        assert x.grad is None
    layer.register_state_dict_post_hook(lambda *_: {})
    with pytest.raises(HookTypeError, match="expected None to be returned, got dict"):
        layer.state_dict()


def test_what_is_not_callable_is_not_registered(leaf):
    """Registering a hook that is not callable is a HookTypeError and registers nothing."""
    layer = nn.Linear(3, 2)
    for register in (leaf.register_hook, layer.register_forward_hook, layer.register_full_backward_hook):
        with pytest.raises(HookTypeError, match="expected a callable hook, got int: 3"):
            register(3)
    layer(leaf).sum().backward()


def test_a_file_that_is_no_whole_checkpoint_is_refused_and_stays(tmp_path):
    """Truncated, empty and foreign files are a CheckpointError that names the file, which is left as it is."""
    path = tmp_path / "model"
    lucid.save({"a": lucid.tensor([1.5, 2.5])}, path)
    whole = path.read_bytes()
    for data in (whole[:-4], whole[:20], whole[:3], b"", b"not a checkpoint, but long enough to be one", whole + b"x"):
        path.write_bytes(data)
        with pytest.raises(CheckpointError, match=f"model is truncated, corrupt .*expected .*found {len(data)} bytes"):
            lucid.load(path)
        assert path.read_bytes() == data
    save_file({"w": np.ones(3)}, path, {"tree": "{}"})
    with pytest.raises(CheckpointError, match=r"a part of what lucid\.save wrote is gone"):
        lucid.load(path)


def test_a_checkpoint_that_cannot_be_written_leaves_what_was_there(tmp_path):
    """An object that cannot be saved, and a folder that does not exist, leave files and folder as they were."""
    path = tmp_path / "model"
    lucid.save([1], path)
    whole = path.read_bytes()
    with pytest.raises(CheckpointError, match=r"the value at 'a' is a object.*expected tensors"):
        lucid.save({"a": object()}, path)
    with pytest.raises(FileNotFoundError, match="missing"):
        lucid.save([1], tmp_path / "missing" / "model")
    assert path.read_bytes() == whole
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda s: s.pop("bias"), StateDictError, r'Missing key\(s\) in state_dict: "bias"'),
        (lambda s: s.update(extra=ones(1)), StateDictError, r'Unexpected key\(s\) in state_dict: "extra"'),
        (lambda s: s.update(bias=ones(4)), StateDictError, r"shape \(4,\) from checkpoint, .* current model is \(2,\)"),
        (lambda s: s.update(bias=3), StateDictError, '"bias", expected a Tensor in the state dict but got int'),
        (lambda s: s.update({3: ones(1)}), TypeError, "expected the keys of state_dict to be strings, got int: 3"),
    ],
)
def test_a_state_dict_that_does_not_fit_changes_no_parameter(change, error, message):
    """A mismatch names the key and both sides; even the entries that fit are not copied."""
    layer = nn.Linear(3, 2)
    before = contents(layer.state_dict())
    other = dict(nn.Linear(3, 2).state_dict())
    change(other)
    with pytest.raises(error, match=message):
        layer.load_state_dict(other)
    assert contents(layer.state_dict()) == before


def test_an_optimizer_refuses_a_state_of_other_shapes_and_a_bad_group():
    """A state dict or a group that does not fit leaves the optimizer's state and groups as they were."""
    first, second = nn.Linear(2, 2), nn.Linear(3, 2)
    optimizer, other = optim.Adam(first.parameters()), optim.Adam(second.parameters())
    first(lucid.randn(4, 2)).sum().backward()
    optimizer.step()
    with pytest.raises(StateDictError, match=r"expected exp_avg of shape \(2, 3\), got \(2, 2\)"):
        other.load_state_dict(optimizer.state_dict())
    with pytest.raises(ValueError, match="learning rate: -1: expected a finite number of at least 0"):
        other.add_param_group({"params": [nn.Parameter(ones(1))], "lr": -1})
    assert not other.state
    assert len(other.param_groups) == 1


def test_an_in_place_change_that_is_refused_changes_no_element(leaf):
    """Leaves, views of leaves, sizes and dtypes that do not fit are refused before a byte is written."""
    for change in (lambda: leaf.add_(1), lambda: leaf[0:1].mul_(2), lambda: leaf.__setitem__(0, 1.0)):
        with pytest.raises(InplaceError, match=r"leaf Variable that requires grad .*under lucid.no_grad\(\)"):
            change()
    assert unchanged(leaf)
    integers, single = lucid.tensor([1, 2]), ones(1)
    with pytest.raises(DtypeError, match="float32 can't be cast to the desired output type int64"):
        integers.add_(1.5)
    with pytest.raises(ShapeError, match=r"shape \(1,\) does not match the broadcast shape \(3,\)"):
        single.add_(ones(3))
    assert integers.tolist() == [1, 2]
    assert single.tolist() == [1.0]


def test_a_batch_that_is_refused_is_not_counted():
    """Batch normalisation changes its statistics and its count only for a batch that it normalises."""
    for momentum in (0.1, None):
        layer = nn.BatchNorm2d(3, momentum=momentum)
        before = contents(layer.state_dict())
        with pytest.raises(ShapeError, match=r"should contain 2 elements.*got shape \[3\]"):
            layer(ones(1, 2, 5, 5))
        assert contents(layer.state_dict()) == before
        layer(lucid.randn(2, 3, 2, 2))
        assert layer.num_batches_tracked.item() == 1


@pytest.mark.parametrize(
    "op",
    [
        lucid.zeros_like, lucid.ones_like, lucid.empty_like, lambda x: lucid.full_like(x, 1), lucid.rand_like,
        lucid.randn_like, lambda x: lucid.randint_like(x, 3),
    ],
)  # fmt: skip
def test_what_is_no_tensor_has_no_like(op):
    """A shape, a number or an array in the place of the tensor is named."""
    for value in ((1,), 3, np.ones(2)):
        with pytest.raises(TypeError, match=f"expected a Tensor, got {type(value).__name__}"):
            op(value)
