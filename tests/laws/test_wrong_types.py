"""A law: everything public, given a wrong type for any one of its parameters, raises an error of lucid's that names it.

The parameters are read off the signatures: a public callable that is not called here, or a parameter without a value,
fails. Valid calls are made of values by the names of parameters, and of the table `VALUES` where a name means another
thing; what is no argument of a user's, or takes anything, stands in `EXEMPT` with the reason.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from collections import OrderedDict

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.base import gpu
from lucid.errors import CudaUnavailableError, LucidError
from lucid.serialization import save

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


def pivots():
    """Return exchanges of no rows."""
    return lucid.tensor([1, 2, 3], dtype=lucid.int32)


def cube():
    """Return a stack of two matrices."""
    return lucid.ones(2, 3, 3)


def places():
    """Return two indices."""
    return lucid.tensor([0, 1])


def row_of_places():
    """Return a matrix of indices of one row."""
    return lucid.tensor([[0, 1, 0]])


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
    **each("input1 input2 anchor positive negative var", matrix),
    **each("input self other target tensor source data obj logits tensor1 tensor2 src x1 x2 real imag", matrix),
    **each("vec vec2 bias inputs sorted_sequence v", vector),
    **each("mat1 mat2 a b A B", square),
    **each("query key", cube),
    **each("index indices", places),
    **each("mask condition", mask),
    **each("hook fn pack_hook unpack_hook function callback", constant(nothing)),
    **each("dim dims start axis0 dim0 dimension", constant(0)),
    **each("step_size T_max T_0", constant(3)),
    **each("kernel_size output_size num_groups num_samples length shifts axis1 dim1 k step end seed", constant(1)),
    **each("groups upscale_factor downscale_factor padding", constant(1)),
    **each("chunks split_size_or_sections indices_or_sections segments", constant(1)),
    **each("in_features out_features row col embedding_dim", constant(2)),
    **each("embed_dim num_heads d_model nhead num_layers", constant(2)),
    "encoder_layer": lambda: nn.TransformerEncoderLayer(2, 1, 2),
    "decoder_layer": lambda: nn.TransformerDecoderLayer(2, 1, 2),
    **each("in_features out_features row col embedding_dim input_size hidden_size", constant(2)),
    **each("in_channels out_channels normalized_shape n steps num_features num_channels num_embeddings", constant(3)),
    **each("fill_value value max max_norm clip_value s val exponent threshold", constant(1.0)),
    **each("size sizes shape", constant((2, 3))),
    **each("mode enabled enable", constant(True)),
    **each("device spec device_type", constant("cpu")),
    **each("wait warmup active", constant(1)),
    **each("actual expected", matrix),
    **each("device spec", constant("cpu")),
    **each("activation nonlinearity", constant("relu")),
    **each("params parameters", lambda: [leaf()]),
    "min": constant(0.0),
    "sparsity": constant(0.1),
    "bounds": constant((0, 5)),
    "pad": constant((1, 1)),
    "unflattened_size": constant((1, 3)),
    "name": constant("a"),
    "message": constant("a"),
    "prefix": constant(""),
    "stream": constant(None),
    "type": lambda: lucid.float32,
    "d": lucid.get_default_dtype,
    "new_state": lucid.get_rng_state,
    "new_states": list,
    "num": lucid.get_num_threads,
    "precision": lucid.get_float32_matmul_precision,
    "weight": lambda: lucid.tensor(0.5),
    "total_norm": lambda: lucid.tensor(1.0),
    "running_mean": lambda: lucid.zeros(3),
    "running_var": lambda: lucid.ones(3),
    "tensors": lambda: [matrix(), matrix()],
    "operands": lambda: (matrix(),),
    "functions": lambda: [nothing],
    "defaults": dict,
    "state_dict": OrderedDict,
    "func": lambda: lambda x: (x * x).sum(),
    "outputs": lambda: leaf().sum(),
    **each("primals tangents", lambda: (vector(),)),
    "models": lambda: [nn.Linear(3, 1)],
    **each("model module from_module to_module root", lambda: nn.Linear(3, 1)),
    "tensor_name": constant("weight"),
    "optimizer": lambda: schedule().optimizer,
    "lr_lambda": constant(float),
    "gamma": constant(0.9),
    "loader": list,
}  # fmt: skip

INTEGERS = {"input": places, "other": places}
LABELS = {"target": places, "weight": vector}
LINE = {"input": lambda: lucid.ones(1, 2, 5), "weight": lambda: lucid.ones(2, 2, 3)}
PLANE = {"input": lambda: lucid.ones(1, 2, 5, 5), "weight": lambda: lucid.ones(2, 2, 3, 3)}
VOLUME = {"input": lambda: lucid.ones(1, 2, 5, 5, 5), "weight": lambda: lucid.ones(2, 2, 3, 3, 3)}
NO_ARGUMENTS = {"args": constant(())}
DOUBLES = {"inputs": lambda: nn.Parameter(lucid.ones(2, dtype=lucid.float64))}
FUSED = {**each("conv_w linear_w conv_b linear_b bn_rm bn_rv bn_w bn_b", vector), "bn_eps": constant(0.1)}

# By the name of a callable: the values that it does not take by name.
VALUES = {
    "RNNBase": {"mode": constant("LSTM")},
    "RNNCellBase": {"bias": constant(True), "num_chunks": constant(3)},
    "binomial": {"count": vector, "prob": vector},
    "cdist": {"x2": square},
    "swapdims": {"dim1": constant(1)},
    "multi_margin_loss": LABELS,
    "multilabel_margin_loss": {"target": lambda: lucid.tensor([[0, 1, -1], [2, -1, -1]])},
    "AdaptiveLogSoftmaxWithLoss": {"n_classes": constant(10), "cutoffs": constant([2, 5])},
    "ctc_loss": {
        "log_probs": lambda: lucid.zeros(4, 2, 3),
        "targets": lambda: lucid.tensor([[1], [2]]),
        "input_lengths": constant((4, 4)),
        "target_lengths": constant((1, 1)),
    },
    "cosine_embedding_loss": {"target": lambda: lucid.ones(2)},
    "glu": {"input": lambda: lucid.ones(2, 4), "dim": constant(0)},
    "graph": {"cuda_graph": lambda: lucid.cuda.CUDAGraph()},
    "derivative": {"kernel": lambda: gpu.cupy().ElementwiseKernel("T x", "T y", "y = x * x")},
    "graphed_step": {"step": constant(nothing)},
    "make_graphed_callables": {"callables": constant(nothing), "sample_args": constant(())},
    **each("bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift", INTEGERS),
    **each("conv1d conv_transpose1d adaptive_avg_pool1d adaptive_max_pool1d avg_pool1d max_pool1d", LINE),
    **each("conv2d conv_transpose2d adaptive_avg_pool2d adaptive_max_pool2d avg_pool2d max_pool2d", PLANE),
    **each("conv3d conv_transpose3d adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d max_pool3d", VOLUME),
    "lp_pool1d": {**LINE, "norm_type": constant(2.0)},
    **each("lp_pool2d fractional_max_pool2d", {**PLANE, "norm_type": constant(2.0), "output_size": constant(1)}),
    **each("lp_pool3d fractional_max_pool3d", {**VOLUME, "norm_type": constant(2.0), "output_size": constant(1)}),
    **{
        f"max_unpool{d}d": {
            "input": lambda d=d: lucid.ones(*[1] * (d + 2)),
            "indices": lambda d=d: lucid.zeros(*[1] * (d + 2), dtype=lucid.int64),
            "padding": constant(0),
        }
        for d in (1, 2, 3)
    },
    **each("FractionalMaxPool2d FractionalMaxPool3d", {"output_size": constant(1)}),
    **each("LPPool1d LPPool2d LPPool3d", {"norm_type": constant(2.0)}),
    **each("cross_entropy nll_loss", LABELS),
    **each("block_diag cartesian_prod", {"tensors": lambda: (vector(), vector())}),
    **each("atleast_1d atleast_2d atleast_3d", {"tensors": lambda: (vector(), vector())}),
    "broadcast_shapes": {"shapes": constant(((2, 1), (3,)))},
    "bucketize": {"boundaries": vector},
    **each("bartlett_window blackman_window hamming_window hann_window kaiser_window", {"window_length": constant(3)}),
    "heaviside": {"values": matrix},
    **each("addbmm", {"input": square, "batch1": cube, "batch2": cube}),
    "addmv": {"input": vector, "mat": square, "vec": vector},
    "addr": {"input": square, "vec1": vector, "vec2": vector},
    "as_strided_scatter": {"src": vector, "size": constant((3,)), "stride": constant((1,))},
    **each("combinations", {"input": vector}),
    "cov": {"fweights": lambda: lucid.tensor([1, 1, 1]), "aweights": vector},
    "diagonal_scatter": {"src": lambda: lucid.ones(2)},
    "dsplit": {"input": cube, "self": cube, "indices_or_sections": constant((1,))},
    **each("gcd lcm", INTEGERS),
    "hsplit": {"indices_or_sections": constant((1,))},
    **each("index_reduce", {"index": lambda: lucid.tensor([0, 1]), "source": matrix, "reduce": constant("mean")}),
    "isin": {"elements": matrix, "test_elements": vector},
    "kthvalue": {"k": constant(1)},
    **each("cholesky_inverse logdet", {"input": square, "self": square}),
    "cholesky_solve": {"input": square, "self": square, "L": square},
    **each("lu_solve lu_unpack", {"LU": square, "LU_data": square, **each("pivots LU_pivots", pivots)}),
    **each("orgqr ormqr", {"input": square, "self": square, "tau": vector, "other": square}),
    "multi_dot": {"tensors": lambda: [square(), square()]},
    "solve_triangular": {"A": square, "B": square, "upper": constant(True)},
    "tensorinv": {"A": square, "ind": constant(1)},
    "tensorsolve": {"A": square, "B": vector},
    "vecdot": {"x": vector, "y": vector},
    "vector_norm": {"x": vector},
    "matrix_power": {"input": square, "self": square, "n": constant(2)},
    "put": {"index": places, "source": lambda: lucid.ones(2)},
    **each("quantile nanquantile", {"q": constant(0.5)}),
    "renorm": {"p": constant(2.0), "maxnorm": constant(1.0)},
    "scatter_reduce": {"index": row_of_places, "src": matrix, "reduce": constant("sum")},
    "select_scatter": {"src": vector, "index": constant(0)},
    "slice_scatter": {"src": matrix},
    "split_with_sizes": {"split_sizes": constant((1, 1))},
    **each("trapezoid cumulative_trapezoid", {"y": matrix, "x": vector, "dx": constant(None)}),
    "vander": {"x": vector},
    "vdot": {"input": vector, "self": vector, "other": vector},
    "Muon": {"params": lambda: [matrix().requires_grad_()]},
    **each("Module Identity LogSigmoid Sigmoid Tanh", NO_ARGUMENTS),
    **each("Module Identity LogSigmoid Sigmoid Softmax2d Softsign Tanh Tanhshrink", NO_ARGUMENTS),
    **each("gradcheck gradgradcheck", DOUBLES),
    "fill": {"input": matrix},
    "frombuffer": {"buffer": constant(bytearray(8)), "dtype": constant(lucid.uint8)},
    "is_nonzero": {"input": lambda: lucid.ones(1), "self": lambda: lucid.ones(1)},
    "istft": {"input": lambda: lucid.ones(3, 4) + 0j, "self": lambda: lucid.ones(3, 4) + 0j, "n_fft": constant(4)},
    "stft": {"input": vector, "self": vector, "n_fft": constant(4), "return_complex": constant(True)},
    "set_autocast_dtype": {"dtype": constant(lucid.bfloat16)},
    "set_autocast_enabled": {"enabled": constant(False)},
    **each("clamp clip", {"min": constant(0.0)}),
    **each("addmm matmul mm mv t fill_diagonal_", {"input": square, "self": square, "other": square}),
    **each("bmm baddbmm", {"input": cube, "mat2": cube, "batch1": cube, "batch2": cube}),
    **each("dot ger inner", {"input": vector, "tensor": vector, "other": vector}),
    **each("meshgrid broadcast_tensors", {"tensors": lambda: (vector(), vector())}),
    **each("moveaxis", {"source": constant(0), "destination": constant(1)}),
    **each("gather scatter_add", {"index": row_of_places}),
    **each("hvp jvp vhp", {"v": vector}),
    **each("retain_grad register_hook register_post_accumulate_grad_hook", {"self": leaf}),
    "as_strided": {"stride": constant((3, 1))},
    "backward": {"self": lambda: leaf().sum(), "tensors": lambda: leaf().sum()},
    "bincount": {"input": places},
    "bitwise_not": INTEGERS,
    **each("channel_shuffle pixel_shuffle pixel_unshuffle", {"input": lambda: lucid.ones(1, 4, 2, 2)}),
    "can_cast": {"from_": lambda: lucid.float32, "to": lambda: lucid.float64},
    "promote_types": {"a": lambda: lucid.float32, "b": lambda: lucid.float64},
    "checkpoint": {"function": constant(nothing), "args": lambda: (leaf(),), "use_reentrant": constant(False)},
    "checkpoint_sequential": {"functions": lambda: [nn.ReLU()], "input": leaf, "use_reentrant": constant(False)},
    "device": {"type": constant("cpu")},
    "make_tensor": {"shape": constant((2, 3)), "dtype": lambda: lucid.float32},
    "dirac_": {"tensor": lambda: lucid.ones(2, 2, 3)},
    **each("dropout2d dropout3d feature_alpha_dropout", {"input": lambda: lucid.ones(2, 2, 2, 2)}),
    "dropout1d": {"input": cube},
    "einsum": {"args": lambda: ("ij->ji", matrix())},
    "embedding": {"input": places, "weight": matrix},
    "embedding_bag": {"input": row_of_places, "weight": matrix},
    "bilinear": {"input1": vector, "input2": vector, "weight": lambda: lucid.ones(1, 3, 3)},
    "Bilinear": each("in1_features in2_features", constant(2)),
    "flip": {"dims": constant((0,))},
    "fold": {"input": lambda: lucid.ones(1, 4, 6), "output_size": constant((3, 4)), "kernel_size": constant(2)},
    "from_dlpack": {"ext_tensor": lambda: np.ones(2)},
    "from_numpy": {"ndarray": lambda: np.ones(2)},
    "get_gradient_edge": {"tensor": lambda: leaf() * 2},
    "grad": {"outputs": lambda: saved.root * 1, "inputs": lambda: saved.root, "grad_outputs": lambda: lucid.ones(3)},
    "Hook": {"prehook": constant(nothing)},
    "grid_sample": {**PLANE, "grid": lambda: lucid.zeros(1, 2, 2, 2)},
    "affine_grid": {"theta": lambda: lucid.ones(1, 2, 3), "size": constant((1, 1, 2, 2))},
    "iinfo": {"type": lambda: lucid.int32},
    **each("imag view_as_real", {"input": lambda: matrix() + 1j}),
    "polygamma": {"n": constant(1)},
    "mvlgamma": {"p": constant(2)},
    "unravel_index": {"indices": places},
    "geometric_": {"p": constant(0.5)},
    "polar": {"abs": matrix, "angle": matrix},
    "view_as_complex": {"input": lambda: lucid.ones(3, 2)},
    "multi_head_attention_forward": {
        **each("query key value", lambda: lucid.ones(2, 1, 4)),
        **each("in_proj_bias bias_k bias_v out_proj_bias", constant(None)),
        **each("embed_dim_to_check num_heads", constant(4)),
        "in_proj_weight": lambda: lucid.ones(12, 4),
        "add_zero_attn": constant(False),
        "dropout_p": constant(0.0),
        "out_proj_weight": lambda: lucid.ones(4, 4),
    },
    "interpolate": {**PLANE, "size": constant(3)},
    "index_put": {"indices": lambda: (lucid.tensor([0]),), "values": constant(1.0)},
    **each("instance_norm local_response_norm", {"input": cube, "size": constant(2)}),
    **each("LocalResponseNorm CrossMapLRN2d", {"size": constant(3)}),
    "item": {"self": lambda: lucid.tensor(1.0)},
    "lerp": {"end": matrix},
    "linear": {"weight": square},
    "load": {"f": lambda: saved()},
    "normal": {"size": constant((2,))},
    "numpy": {"self": lambda: matrix().cpu()},
    "one_hot": {"tensor": places},
    "permute": {"dims": constant((1, 0))},
    "randint": {"bounds_and_size": constant((0, 5, (2,)))},
    "register_multi_grad_hook": {"tensors": lambda: [leaf()]},
    "repeat_interleave": {"repeats": constant(2)},
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
    "scaled_dot_product_attention": {"value": cube},
    "scatter": {"index": row_of_places, "value": constant(1.0)},
    "select": {"index": constant(0)},
    "ChainedScheduler": {"schedulers": lambda: [schedule()]},
    "CyclicLR": {"base_lr": constant(0.1), "max_lr": constant(1.0)},
    "MultiStepLR": {"milestones": constant([3])},
    "OneCycleLR": {"max_lr": constant(1.0), "total_steps": constant(10)},
    "SequentialLR": {"schedulers": lambda: [schedule()], "milestones": constant([])},
    "SWALR": {"swa_lr": constant(0.1)},
    "Sequential": {"args": lambda: (nn.ReLU(),)},
    "set_device": {"device": constant(0)},
    "squeeze": {"dim": constant(0)},
    "take_along_dim": {"indices": row_of_places, "dim": constant(0)},
    "tensordot": {"dims": constant(1)},
    "tile": {"dims": constant((2, 1))},
    "to": {"args": constant(("cpu",))},
    "Transformer": each("num_encoder_layers num_decoder_layers dim_feedforward", constant(1)),
    "unflatten": {"dim": constant(1), "sizes": constant((1, 3))},
    "Unflatten": {"dim": constant(1)},
    "unfold": {"size": constant(1), **PLANE},
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
    own = VALUES.get(short, VALUES.get(short.rstrip("_"), {}))
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


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in PUBLIC if has_arguments(name)])
def test_a_wrong_type_is_refused_by_name(name):
    """The error is lucid's, a builtin of its kind as well, and has the name of the parameter in its text."""
    parameters = parameters_of(name)
    try:
        called(name, parameters)
    except CudaUnavailableError:
        pytest.skip("needs a CUDA device")
    for parameter in parameters[name.startswith("Tensor.") :]:
        if f"{name}.{parameter.name}" in EXEMPT:
            continue
        for value in wrong_values(parameter):
            with pytest.raises(LucidError, match=rf"\b{parameter.name}\b") as error:
                called(name, parameters, parameter.name, value)
            assert isinstance(error.value, TypeError | ValueError | RuntimeError | LookupError)


def test_what_is_exempt_exists():
    """Each exception from the law is that of something public, or of one of its parameters."""
    known = {f"{name}.{parameter.name}" for name in PUBLIC for parameter in parameters_of_any(name)}
    assert set(EXEMPT) - known - set(PUBLIC) == set()


def parameters_of_any(name):
    """Return the parameters of what has a signature."""
    try:
        return parameters_of(name)
    except ValueError:
        return []
