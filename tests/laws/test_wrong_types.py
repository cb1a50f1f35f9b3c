"""A law: everything public, given a wrong type for any one of its parameters, raises an error of lucid's that names it.

The parameters are read off the signatures: a public callable that is not called here, or a parameter without a value,
fails. An op is called as a row of the table of samples calls it (`tests/calls.py`), a layer as in `tests/layers.py`,
anything else with values by the names of parameters, and of the table `VALUES` where a name means another thing; what
is no argument of a user's, or takes anything, stands in `EXEMPT` with the reason.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import re
import sys
from collections import OrderedDict

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.base import gpu
from lucid.errors import CudaUnavailableError, LucidError
from lucid.serialization import save
from tests.calls import all_calls
from tests.layers import LAYERS

NAMESPACES = (
    "lucid", "lucid.nn", "lucid.nn.functional", "lucid.nn.init", "lucid.nn.utils", "lucid.nn.utils.parametrize",
    "lucid.nn.utils.parametrizations", "lucid.nn.utils.stateless", "lucid.func", "lucid.nn.hooks", "lucid.fft",
    "lucid.special", "lucid.nn.modules", "lucid.nn.modules.module", "lucid.nn.modules.utils", "lucid.optim",
    "lucid.optim.optimizer",
    "lucid.optim.lr_scheduler", "lucid.optim.swa_utils",
    "lucid.autograd", "lucid.autograd.graph", "lucid.autograd.functional", "lucid.autograd.function",
    "lucid.autograd.profiler", "lucid.amp", "lucid.utils", "lucid.utils.checkpoint", "lucid.utils.hooks",
    "lucid.backends", "lucid.backends.cuda", "lucid.backends.cudnn", "lucid.cuda", "lucid._C",
    "lucid.testing", "lucid.profiler", "lucid.linalg",
)  # fmt: skip

MADE_BY_LUCID = "lucid makes it and hands it out; nobody calls it"
ANYTHING = "takes anything by design"
NO_CUDA = "is looked at on a CUDA device only"
EXEMPT = {
    "lucid.is_tensor.obj": ANYTHING,
    "Tensor.astype.copy": "takes the truth of anything, as in NumPy",
    "lucid.nn.Identity.args": ANYTHING,
    "lucid.utils.checkpoint.checkpoint.args": "they are the arguments of the user's function",
    "lucid.cuda.warmup.inputs": "they are the arguments of the user's model",
    "lucid.nn.functional.embedding.norm_type": "is read only together with max_norm",
    "lucid.nn.functional.embedding_bag.norm_type": "is read only together with max_norm",
    "lucid.max.keepdim": "is read only together with dim",
    "lucid.min.keepdim": "is read only together with dim",
    "lucid.autograd.grad.only_inputs": "is there for PyTorch's sake and does nothing",
    "lucid.save.obj": "the error names the place inside of the object",
    "lucid.cuda.device.device": NO_CUDA,
    "lucid.cuda.max_memory_allocated.device": NO_CUDA,
    "lucid.cuda.memory_allocated.device": NO_CUDA,
    "lucid.cuda.memory_reserved.device": NO_CUDA,
    "lucid.cuda.stream.stream": NO_CUDA,
    "lucid.autograd.graph.queue_callback": "is called from inside of a pass; see tests/parity/autograd/test_running.py",
    "lucid.nn.hooks.ContextualHook": "takes names of methods of the class; see tests/nn/hooking/test_hook_errors.py",
    "lucid.nn.hooks.StateHook": "is abstract: its subclasses are the user's",
    "lucid.optim.lr_scheduler.LRScheduler": "is abstract: its subclasses are the user's",
    "lucid.nn.utils.parametrize.ParametrizationList": MADE_BY_LUCID,
    "lucid.nn.utils.stateless.functional_call.args": "one argument that is no tuple is the argument",
    "lucid.nn.hooks.HookTable": MADE_BY_LUCID,
    "lucid.nn.hooks.RemovableHandle": MADE_BY_LUCID,
    "lucid.autograd.RemovableHandle": MADE_BY_LUCID,
    "lucid.autograd.SavedTensor": MADE_BY_LUCID,
    "lucid.autograd.graph.GradientEdge": MADE_BY_LUCID,
    "lucid.compile": "returns its argument, and looks at no setting",
    "lucid.nn.DataParallel": "is not there: the error says what is instead",
    "lucid.profiler.ProfilerAction": "is an enumeration",
    "lucid.profiler.ProfilerActivity": "is an enumeration",
    "lucid.dtype": MADE_BY_LUCID,
    "lucid.layout": MADE_BY_LUCID,
    "lucid.memory_format": MADE_BY_LUCID,
    "lucid.cuda.compile": "the source is text; see tests/cuda/source/test_sources.py",
}


class Wrong:
    """What fits nowhere."""


def leaf(*sizes):
    """Return a parameter of ones."""
    return nn.Parameter(lucid.ones(*sizes or (3,)))


def matrix():
    """Return a matrix of numbers below 1."""
    return lucid.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]) / 8


def vector():
    """Return three numbers."""
    return lucid.tensor([1.0, 2.0, 3.0])


def square():
    """Return a regular matrix."""
    return lucid.eye(3) + 0.1


@functools.cache
def schedule():
    """Return a schedule, the same each time."""
    return lucid.optim.lr_scheduler.ExponentialLR(lucid.optim.SGD([leaf()], momentum=0.9), 0.9)


def mask():
    """Return where the matrix is positive."""
    return matrix() > 0


def nothing(*_):
    """Return None: a hook that changes nothing."""


def constant(value):
    """Return a function that gives `value`."""
    return lambda: value


def each(names, value):
    """Return a dict of one value for several names."""
    return dict.fromkeys(names.split(), value)


# By the name of a parameter: how its valid value is made.
BY_NAME = {
    **each("input self other tensor data obj src", matrix),
    **each("vec inputs", vector),
    **each("condition", mask),
    **each("hook fn pack_hook unpack_hook function", constant(nothing)),
    **each("step_size T_max T_0", constant(3)),
    **each("kernel_size seed", constant(1)),
    **each("segments", constant(1)),
    **each("embed_dim num_heads d_model nhead num_layers", constant(2)),
    "decoder_layer": lambda: nn.TransformerDecoderLayer(2, 1, 2),
    **each("in_features out_features input_size hidden_size", constant(2)),
    **each("out_channels n num_features", constant(3)),
    **each("fill_value value max_norm clip_value val", constant(1.0)),
    **each("size", constant((2, 3))),
    **each("mode enabled enable", constant(True)),
    **each("device spec device_type", constant("cpu")),
    **each("wait warmup active", constant(1)),
    **each("actual expected", matrix),
    **each("nonlinearity", constant("relu")),
    **each("params parameters", lambda: [leaf()]),
    "sparsity": constant(0.1),
    "bounds": constant((0, 5)),
    "name": constant("a"),
    "message": constant("a"),
    "prefix": constant(""),
    "stream": constant(None),
    "d": lucid.get_default_dtype,
    "new_state": lucid.get_rng_state,
    "new_states": list,
    "num": lucid.get_num_threads,
    "precision": lucid.get_float32_matmul_precision,
    "total_norm": lambda: lucid.tensor(1.0),
    "tensors": lambda: [matrix(), matrix()],
    "defaults": dict,
    "state_dict": OrderedDict,
    "func": lambda: lambda x: (x * x).sum(),
    **each("primals tangents", lambda: (vector(),)),
    "models": lambda: [nn.Linear(3, 1)],
    **each("model module from_module to_module root", lambda: nn.Linear(3, 1)),
    "tensor_name": constant("weight"),
    "optimizer": lambda: schedule().optimizer,
    "lr_lambda": constant(float),
    "gamma": constant(0.9),
    "loader": list,
}  # fmt: skip

NO_ARGUMENTS = {"args": constant(())}
DOUBLES = {"inputs": lambda: nn.Parameter(lucid.ones(2, dtype=lucid.float64))}
FUSED = {**each("conv_w linear_w conv_b linear_b bn_rm bn_rv bn_w bn_b", vector), "bn_eps": constant(0.1)}

# By the name of a callable: the values that it does not take by name.
VALUES = {
    "astype": {"x": vector, "dtype": constant(np.float64)},
    "RNNBase": {"mode": constant("LSTM")},
    "RNNCellBase": {"bias": constant(True), "num_chunks": constant(3)},
    "binomial": {"count": vector, "prob": vector},
    "AdaptiveLogSoftmaxWithLoss": {"n_classes": constant(10), "cutoffs": constant([2, 5])},
    "graph": {"cuda_graph": lambda: lucid.cuda.CUDAGraph()},
    "derivative": {"kernel": lambda: gpu.cupy().ElementwiseKernel("T x", "T y", "y = x * x")},
    "graphed_step": {"step": constant(nothing)},
    "make_graphed_callables": {"callables": constant(nothing), "sample_args": constant(())},
    "broadcast_shapes": {"shapes": constant(((2, 1), (3,)))},
    "Muon": {"params": lambda: [matrix().requires_grad_()]},
    **each("Module Identity LogSigmoid Sigmoid Softmax2d Softsign Tanh Tanhshrink", NO_ARGUMENTS),
    **each("gradcheck gradgradcheck", DOUBLES),
    "fill": {"input": matrix},
    "is_nonzero": {"input": lambda: lucid.ones(1)},
    "set_autocast_dtype": {"dtype": constant(lucid.bfloat16)},
    "set_autocast_enabled": {"enabled": constant(False)},
    **each("fill_diagonal_", {"self": square}),
    **each("hvp jvp vhp", {"v": vector}),
    **each("register_hook register_post_accumulate_grad_hook", {"self": leaf}),
    "backward": {"self": lambda: leaf().sum(), "tensors": lambda: leaf().sum()},
    "can_cast": {"from_": lambda: lucid.float32, "to": lambda: lucid.float64},
    "promote_types": {"a": lambda: lucid.float32, "b": lambda: lucid.float64},
    "checkpoint": {"function": constant(nothing), "args": lambda: (leaf(),), "use_reentrant": constant(False)},
    "checkpoint_sequential": {"functions": lambda: [nn.ReLU()], "input": leaf, "use_reentrant": constant(False)},
    "device": {"type": constant("cpu")},
    "make_tensor": {"shape": constant((2, 3)), "dtype": lambda: lucid.float32},
    "dirac_": {"tensor": lambda: lucid.ones(2, 2, 3)},
    "Bilinear": each("in1_features in2_features", constant(2)),
    "from_dlpack": {"ext_tensor": lambda: np.ones(2)},
    "from_numpy": {"ndarray": lambda: np.ones(2)},
    "get_gradient_edge": {"tensor": lambda: leaf() * 2},
    "grad": {"outputs": lambda: saved.root * 1, "inputs": lambda: saved.root, "grad_outputs": lambda: lucid.ones(3)},
    "Hook": {"prehook": constant(nothing)},
    "iinfo": {"type": lambda: lucid.int32},
    "polygamma": {"n": constant(1)},
    "geometric_": {"p": constant(0.5)},
    "load": {"f": lambda: saved()},
    "numpy": {"self": lambda: matrix().cpu()},
    "register_multi_grad_hook": {"tensors": lambda: [leaf()]},
    "save": {"f": lambda: saved()},
    **each("register_parametrization", {"parametrization": nn.Identity}),
    "remove_parametrizations": {"module": lambda: nn.utils.parametrizations.weight_norm(nn.Linear(3, 1))},
    **each("fuse_conv_bn_eval", {"conv": lambda: nn.Conv1d(3, 3, 1).eval(), "bn": lambda: nn.BatchNorm1d(3).eval()}),
    **each("fuse_linear_bn_eval", {"linear": lambda: nn.Linear(3, 3).eval(), "bn": lambda: nn.BatchNorm1d(3).eval()}),
    **each("fuse_conv_bn_weights fuse_linear_bn_weights", FUSED),
    **each("spectral_norm weight_norm", {"name": constant("weight")}),
    "remove_spectral_norm": {"module": lambda: nn.utils.spectral_norm(nn.Linear(3, 1))},
    "remove_weight_norm": {"module": lambda: nn.utils.weight_norm(nn.Linear(3, 1))},
    "functional_call": {"parameter_and_buffer_dicts": dict, "args": lambda: (lucid.ones(3),)},
    "record_stream": {"stream": lambda: lucid.cuda.Stream()},
    "ChainedScheduler": {"schedulers": lambda: [schedule()]},
    "CyclicLR": {"base_lr": constant(0.1), "max_lr": constant(1.0)},
    "MultiStepLR": {"milestones": constant([3])},
    "OneCycleLR": {"max_lr": constant(1.0), "total_steps": constant(10)},
    "SequentialLR": {"schedulers": lambda: [schedule()], "milestones": constant([])},
    "SWALR": {"swa_lr": constant(0.1)},
    "set_device": {"device": constant(0)},
    "Transformer": each("num_encoder_layers num_decoder_layers dim_feedforward", constant(1)),
    "warmup": {"inputs": lambda: (matrix(),)},
}  # fmt: skip


@pytest.fixture(autouse=True)
def settings(tmp_path):
    """Let the calls change nothing for other tests."""
    saved.path, saved.root = tmp_path / "file", leaf()
    save({"a": matrix()}, saved.path)
    before = lucid.get_default_dtype(), lucid.get_default_device()
    yield
    lucid.set_default_dtype(before[0])
    lucid.set_default_device(before[1])
    lucid.set_grad_enabled(True)
    lucid.use_deterministic_algorithms(False)
    lucid.cuda.set_debug(False)
    lucid.autograd.set_detect_anomaly(False)
    lucid.autograd.set_multithreading_enabled(True)
    lucid.set_printoptions(profile="default")


def saved():
    """Return the path of a file that `save` wrote."""
    return saved.path


def unwrapped(value):
    """Return an op without what gives it further keywords: `lucid` and `Tensor` have one each."""
    return inspect.unwrap(value) if inspect.isfunction(value) else value


def public():
    """Return everything public that can be called, by its full name; what changes its input is another than the op."""
    found = {}
    for place in NAMESPACES:
        module = importlib.import_module(place)
        own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == place]
        for name in getattr(module, "__all__", own):
            value = getattr(module, name)
            if callable(value) and not name.startswith("_"):
                found.setdefault((id(unwrapped(value)), name.endswith("_")), (f"{place}.{name}", value))
    for name in dir(lucid.Tensor):
        getattr(lucid.Tensor, name)  # a method of a module that is imported late takes its place by this
        value = inspect.getattr_static(lucid.Tensor, name)
        value = getattr(value, "__func__", value)
        if callable(value) and not name.startswith("_"):
            found.setdefault((id(unwrapped(value)), name.endswith("_")), (f"Tensor.{name}", value))
    return dict(found.values())


PUBLIC = public()


def parameters_of(name):
    """Return the parameters of a callable; of the in-place form of an op, those of the op."""
    parameters = [*inspect.signature(PUBLIC[name]).parameters.values()]
    if name.startswith("Tensor.") and parameters[-1].kind is parameters[-1].VAR_KEYWORD and name.endswith("_"):
        parameters = [*inspect.signature(getattr(lucid.Tensor, name[7:-1])).parameters.values()]
    return [p for p in parameters if p.kind is not p.VAR_KEYWORD]


@functools.cache
def recorded():
    """Return what the rows of the table of samples give public functions, by their code; the first row of each."""
    return {call.function.__code__: call for call in reversed(all_calls())}


class Layers:
    """`lucid.nn`, which notes what each class is given first."""

    def __init__(self):
        self.noted = {}

    def __getattr__(self, name):
        kind = getattr(nn, name)

        def make(*args, **kwargs):
            self.noted.setdefault(kind, inspect.signature(kind).bind(*args, **kwargs).arguments)
            return kind(*args, **kwargs)

        return make


@functools.cache
def constructed():
    """Return what the rows of the table of layers give their classes."""
    layers = Layers()
    for row in LAYERS.values():
        row(layers)
    return layers.noted


def called_with(name):
    """Return how the arguments are made with which a row of samples, or of layers, calls something public."""
    function = PUBLIC[name]
    if isinstance(function, type):
        return {key: constant(value) for key, value in constructed().get(function, {}).items()}
    if name.startswith("Tensor.") and name.endswith("_"):
        function = getattr(lucid.Tensor, name[7:-1], function)
    call = recorded().get(getattr(unwrapped(function), "__code__", None))
    return {} if call is None else {key: constant(value) for key, value in call.given(lucid).items()}


def value_of(parameter, name):
    """Return a valid value of a parameter that has no default."""
    if parameter not in BY_NAME:
        pytest.fail(
            f"{name} cannot be called: in tests/laws/test_wrong_types.py give its parameter {parameter!r} a value, in "
            f"BY_NAME if the name means the same everywhere, else under {name.rpartition('.')[2]!r} in VALUES; if "
            f"it is no argument of a user's or takes anything, {name!r} or '{name}.{parameter}' in EXEMPT, and why"
        )
    return BY_NAME[parameter]()


def arguments(name, parameters, wrong=None, value=None):
    """Return valid arguments of what is public under `name`, but for the parameter `wrong`."""
    short = name.rpartition(".")[2]
    own = called_with(name) or VALUES.get(short, VALUES.get(short.rstrip("_"), {}))
    args, kwargs = [], {}
    for parameter in parameters:
        if parameter.name == wrong:
            given = value
        elif parameter.name in own:
            given = own[parameter.name]()
        elif parameter.default is not parameter.empty:
            continue
        elif parameter.kind is not parameter.VAR_POSITIONAL or parameter.name in BY_NAME:
            given = value_of(parameter.name, name)
        else:
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            args += [given] if parameter.name == wrong else given
        elif parameter.kind is parameter.KEYWORD_ONLY or len(args) < parameters.index(parameter):
            kwargs[parameter.name] = given
        else:
            args.append(given)
    return args, kwargs


def called(name, parameters, wrong=None, value=None):
    """Call what is public under `name`, with valid arguments but for the parameter `wrong`."""
    args, kwargs = arguments(name, parameters, wrong, value)
    result = PUBLIC[name](*args, **kwargs)
    if isinstance(result, lucid.utils.hooks.RemovableHandle | lucid.autograd.RemovableHandle):
        result.remove()


def wrong_values(parameter):
    """Return values that a parameter does not take, by its annotation."""
    annotation = str(parameter.annotation)
    values = [Wrong()]
    if not re.search(r"str|Any|Literal|Params|Entries", annotation):
        values.append("a")
    if annotation.startswith("int"):
        values.append(1.5)
    if annotation.startswith("float"):
        values += [1j, np.complex64(1j)]
    if annotation.startswith("str") and not re.search(r"Iterable|Sequence|list", annotation):
        values.append([])  # it has no hash: sets and dicts of what there is raise for it
    if not re.search(r"str|Any|Iterable|Sequence|Literal", annotation):
        values.append([Wrong()])
    return values


def has_arguments(name):
    """Return whether something public takes arguments of the user's; exceptions and abstract classes do not."""
    value = PUBLIC[name]
    if isinstance(value, type) and issubclass(
        value, BaseException | lucid.autograd.Function | lucid.autograd.FunctionCtx
    ):
        return False
    return name not in EXEMPT and bool(parameters_of(name)[name.startswith("Tensor.") :])


@functools.cache
def public_words():
    """Return the names of public functions, classes and methods: as they are called, and those of their own."""
    words = {word.rstrip("_") for name in PUBLIC for word in (name, name.rpartition(".")[2])}
    return words | {unwrapped(value).__name__ for value in PUBLIC.values() if hasattr(unwrapped(value), "__name__")}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in PUBLIC if has_arguments(name)])
def test_a_wrong_type_is_refused_by_name(name):
    """The error is lucid's, a builtin of its kind as well, and names the parameter.

    The function or the class that it names is a public one, none that a user has never written.
    """
    parameters = parameters_of(name)
    try:
        called(name, parameters)
    except CudaUnavailableError:
        pytest.skip("needs a CUDA device")
    except Exception as error:
        raise AssertionError(
            f"{name} refuses the arguments that it is given here as valid ones: give those that it takes under "
            f"{name.rpartition('.')[2]!r} in VALUES ('self' is the tensor of a method)"
        ) from error
    for parameter in parameters[name.startswith("Tensor.") :]:
        if f"{name}.{parameter.name}" in EXEMPT:
            continue
        for value in wrong_values(parameter):
            with pytest.raises(LucidError, match=rf"\b{parameter.name}\b") as error:
                called(name, parameters, parameter.name, value)
            assert isinstance(error.value, TypeError | ValueError | RuntimeError | LookupError)
            title = re.match(r"([\w.]+): \w+(\[\d+\])?: ", str(error.value))
            assert title is None or title[1].rstrip("_") in public_words(), title


class Noted(dict):
    """A dict that keeps which of its keys were looked up."""

    def __init__(self, entries):
        super().__init__(entries)
        self.taken = set()

    def __getitem__(self, key):
        self.taken.add(key)
        return super().__getitem__(key)


@pytest.mark.filterwarnings("ignore")
def test_every_value_is_needed(monkeypatch):
    """Each entry of the tables of values is an argument of something public that no row calls."""
    tables = {id(values): Noted(values) for values in (BY_NAME, *VALUES.values())}
    of_callables = {name: tables[id(values)] for name, values in VALUES.items()}
    monkeypatch.setattr(sys.modules[__name__], "VALUES", of_callables)
    monkeypatch.setattr(sys.modules[__name__], "BY_NAME", tables[id(BY_NAME)])
    called_for = {name.rpartition(".")[2] for name in PUBLIC if has_arguments(name) and not called_with(name)}
    for name in filter(has_arguments, PUBLIC):
        with contextlib.suppress(CudaUnavailableError):
            arguments(name, parameters_of(name))
    needless = [f"{key} of {sorted(table)}" for table in tables.values() for key in table.keys() - table.taken]
    needless += sorted(of_callables.keys() - called_for - {name.rstrip("_") for name in called_for})
    assert not needless, f"take away from BY_NAME or VALUES what no call is given: {needless}"


def test_what_is_exempt_exists():
    """Each exception from the law is that of something public, or of one of its parameters."""
    known = {f"{name}.{parameter.name}" for name in PUBLIC for parameter in parameters_of_any(name)}
    gone = sorted(set(EXEMPT) - known - set(PUBLIC))
    assert not gone, f"take away from EXEMPT what is not public, or has no such parameter: {gone}"


def parameters_of_any(name):
    """Return the parameters of what has a signature."""
    try:
        return parameters_of(name)
    except ValueError:
        return []
