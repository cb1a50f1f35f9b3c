"""PyTorch-style automatic differentiation on NumPy and CuPy, with hooks that fire at guaranteed moments.

The docstring of a function says what is particular to it. What holds for every one of its kind says `help` of a page:

- `lucid.ops.base.declaration`: elementwise functions; promotion, broadcasting, in-place forms
- `lucid.ops.reduction.sums`: reductions, cumulative ones too: `dim`, `keepdim`, `dtype`; `lucid.ops.reduction.sorting`
- `lucid.ops.creation`, `lucid.ops.shape`, `lucid.ops.index`, `lucid.ops.linalg`, `lucid.ops.decomposition`,
  `lucid.ops.fft.short_time`
- `lucid.nn.functional`, which names those of its functions; `lucid.nn`; `lucid.optim`: all optimizers;
  `lucid.optim.lr_scheduler`: all schedules of learning rates
"""

from __future__ import annotations

import importlib as _importlib
import typing as _typing
from math import e, inf, nan, pi

# before what imports it: as deep in the stack as that, its import takes up to 30 ms longer, since Python gets and frees
# a piece of the stack with each call across the end of one
import numpy as _numpy  # noqa: F401, ICN001  # pyright: ignore[reportUnusedImport]

from lucid import autograd, backends, cuda, errors, version

# before the function of its name, which takes its place as an attribute
from lucid import tensor as _tensor  # noqa: F401  # pyright: ignore[reportUnusedImport]
from lucid.autograd.anomaly import is_anomaly_enabled
from lucid.autograd.modes.autocast import (
    autocast,
    autocast_decrement_nesting,
    autocast_increment_nesting,
    clear_autocast_cache,
    get_autocast_dtype,
    is_autocast_cache_enabled,
    is_autocast_enabled,
    set_autocast_cache_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
)
from lucid.autograd.modes.state import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from lucid.backends.cuda import get_float32_matmul_precision, set_float32_matmul_precision
from lucid.base.device import device, get_default_device, set_default_device
from lucid.base.dtype import (
    bfloat16,
    can_cast,
    complex64,
    complex128,
    dtype,
    float16,
    float32,
    float64,
    get_default_dtype,
    int8,
    int16,
    int32,
    int64,
    promote_types,
    result_type,
    set_default_dtype,
    uint8,
)
from lucid.base.dtype import bool_ as bool
from lucid.base.dtype import complex64 as cfloat
from lucid.base.dtype import complex128 as cdouble
from lucid.base.dtype import float16 as half
from lucid.base.dtype import float32 as float
from lucid.base.dtype import float64 as double
from lucid.base.dtype import int16 as short
from lucid.base.dtype import int32 as int
from lucid.base.dtype import int64 as long
from lucid.base.limits import finfo, iinfo
from lucid.compat import addresses as _addresses
from lucid.cuda.switches import are_deterministic_algorithms_enabled, use_deterministic_algorithms

# imports, of tests/namespaces/ops.txt by `python -m tests.namespaces.exports`
from lucid.ops.activation.elu import celu, selu
from lucid.ops.activation.hard import hardshrink, threshold
from lucid.ops.activation.prelu import prelu, rrelu
from lucid.ops.activation.relu import relu
from lucid.ops.activation.sigmoid import sigmoid, tanh
from lucid.ops.activation.softmax import log_softmax, softmax
from lucid.ops.base import keywords as _keywords
from lucid.ops.base.formats import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    strided,
)
from lucid.ops.base.strided import as_strided
from lucid.ops.creation.constructors import TYPES as _TYPES
from lucid.ops.creation.data import as_tensor, asarray, from_numpy, frombuffer, scalar_tensor, tensor
from lucid.ops.creation.filling import empty, empty_like, full, full_like, ones, ones_like, zeros, zeros_like
from lucid.ops.creation.generators import Generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from lucid.ops.creation.random import rand, rand_like, randint, randint_like, randn, randn_like, randperm
from lucid.ops.creation.ranges import arange, eye, linspace, logspace, tril_indices, triu_indices
from lucid.ops.creation.sampling import bernoulli, binomial, multinomial, normal, poisson
from lucid.ops.creation.windows import bartlett_window, blackman_window, hamming_window, hann_window, kaiser_window
from lucid.ops.elementwise.arithmetic import add, copysign, mul, neg, nextafter, positive, rsub, sub
from lucid.ops.elementwise.combination import addcdiv, addcmul, lerp
from lucid.ops.elementwise.comparison import eq, fmax, fmin, ge, gt, heaviside, le, lt, maximum, minimum, ne
from lucid.ops.elementwise.complex import (
    abs,
    angle,
    complex,
    conj,
    imag,
    polar,
    real,
    resolve_conj,
    resolve_neg,
    sgn,
    sign,
    view_as_complex,
    view_as_real,
)
from lucid.ops.elementwise.division import div, floor_divide, fmod, gcd, lcm, reciprocal, remainder
from lucid.ops.elementwise.exponential import (
    exp,
    exp2,
    expm1,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logaddexp2,
    logit,
    xlogy,
)
from lucid.ops.elementwise.logic import (
    bitwise_and,
    bitwise_left_shift,
    bitwise_not,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
)
from lucid.ops.elementwise.nonfinite import isfinite, isinf, isnan, isneginf, isposinf, isreal, nan_to_num, signbit
from lucid.ops.elementwise.power import float_power, frexp, ldexp, pow, rsqrt, sqrt, square
from lucid.ops.elementwise.rounding import ceil, floor, frac, round, trunc
from lucid.ops.elementwise.selection import clamp, clamp_max, clamp_min, clip, where
from lucid.ops.elementwise.special import digamma, erf, erfc, erfinv, i0, lgamma, mvlgamma, polygamma
from lucid.ops.elementwise.trigonometry import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cos,
    cosh,
    deg2rad,
    hypot,
    rad2deg,
    sin,
    sinc,
    sinh,
    tan,
)
from lucid.ops.index.gather import gather, take, take_along_dim, unravel_index
from lucid.ops.index.index_select import index_add, index_copy, index_fill, index_select
from lucid.ops.index.indexing import index_put
from lucid.ops.index.masked_select import argwhere, masked_fill, masked_scatter, masked_select, nonzero
from lucid.ops.index.placing import as_strided_scatter, diagonal_scatter, put, select_scatter, slice_scatter
from lucid.ops.index.scatter import scatter, scatter_add
from lucid.ops.index.scatter_reduce import index_reduce, scatter_reduce
from lucid.ops.index.select import narrow, select
from lucid.ops.linalg.addmm import addmm, baddbmm
from lucid.ops.linalg.composed import addbmm, addmv, addr, adjoint, cross, kron, trace, vander, vdot
from lucid.ops.linalg.distances import cdist, dist, pairwise_distance, pdist
from lucid.ops.linalg.einsum import einsum, inner, tensordot
from lucid.ops.linalg.products import bmm, dot, matmul, mm, mv, outer
from lucid.ops.reduction.closeness import allclose, equal, isclose
from lucid.ops.reduction.covariance import corrcoef, cov, renorm
from lucid.ops.reduction.cumulative import cumprod, cumsum, prod
from lucid.ops.reduction.differences import cumulative_trapezoid, diff, trapezoid
from lucid.ops.reduction.extremes import amax, amin, aminmax, argmax, argmin, max, min
from lucid.ops.reduction.membership import bucketize, histc, isin, unique_consecutive
from lucid.ops.reduction.norms import cosine_similarity, logsumexp, norm
from lucid.ops.reduction.ranks import kthvalue, mode, msort, nanmedian, nanquantile, quantile
from lucid.ops.reduction.running import cummax, cummin, logcumsumexp
from lucid.ops.reduction.sorting import argsort, bincount, searchsorted, sort, topk, unique
from lucid.ops.reduction.statistics import median, std, std_mean, var, var_mean
from lucid.ops.reduction.sums import all, any, count_nonzero, mean, nanmean, nansum, sum
from lucid.ops.shape.axes import flip, fliplr, flipud, movedim, permute, roll, rot90, swapaxes, t, transpose
from lucid.ops.shape.broadcasting import broadcast_tensors, broadcast_to, meshgrid
from lucid.ops.shape.diagonal import diag, diag_embed, diagonal, tril, triu
from lucid.ops.shape.joining import cat, concat, hstack, stack, vstack
from lucid.ops.shape.repeating import repeat_interleave, tile
from lucid.ops.shape.reshape import clone, flatten, ravel, reshape, squeeze, unflatten, unsqueeze
from lucid.ops.shape.shuffling import channel_shuffle, pixel_shuffle, pixel_unshuffle
from lucid.ops.shape.splitting import chunk, dsplit, hsplit, split, split_with_sizes, tensor_split, unbind, vsplit
from lucid.ops.shape.stacking import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    block_diag,
    cartesian_prod,
    column_stack,
    combinations,
    dstack,
)
from lucid.public import publish as _publish
from lucid.settings.documents import document as _document
from lucid.tensor import Tensor
from lucid.tensor.attributes import is_inference
from lucid.tensor.differentiating import detach
from lucid.tensor.inplace import fill
from lucid.tensor.inplace_methods import celu_, relu_, rrelu_, selu_, threshold_
from lucid.tensor.interop import from_dlpack
from lucid.tensor.layout import (
    Size,
    broadcast_shapes,
    get_device,
    is_complex,
    is_conj,
    is_floating_point,
    is_same_size,
    is_signed,
    is_tensor,
    numel,
)
from lucid.tensor.operators import is_nonzero
from lucid.tensor.printing import set_printoptions
from lucid.version import __version__

if _typing.TYPE_CHECKING:
    from lucid import _C as _C
    from lucid import (
        accelerator,
        amp,
        compiler,
        distributed,
        distributions,
        fft,
        func,
        futures,
        fx,
        jit,
        linalg,
        multiprocessing,
        nn,
        onnx,
        optim,
        overrides,
        profiler,
        special,
        testing,
        types,
        utils,
    )  # fmt: skip
    from lucid import numpy as numpy
    from lucid.backends.cpu import get_num_threads, set_num_threads
    from lucid.compat.compilers import compile
    from lucid.func import vmap
    from lucid.futures import Future

    # later imports, of tests/namespaces/ops.txt by `python -m tests.namespaces.exports`
    from lucid.ops.decomposition.chains import matrix_power
    from lucid.ops.decomposition.inverses import det, slogdet
    from lucid.ops.decomposition.inverses import inv as inverse
    from lucid.ops.decomposition.lu import lu_unpack
    from lucid.ops.decomposition.matrix_exp import matrix_exp
    from lucid.ops.decomposition.older import logdet, lu_solve, pinverse, qr, svd
    from lucid.ops.decomposition.orthogonal import geqrf, ormqr
    from lucid.ops.decomposition.orthogonal import householder_product as orgqr
    from lucid.ops.decomposition.triangular import cholesky, cholesky_inverse, cholesky_solve
    from lucid.ops.fft.short_time import istft, stft
    from lucid.ops.layers.convolution import (
        conv1d,
        conv2d,
        conv3d,
        conv_transpose1d,
        conv_transpose2d,
        conv_transpose3d,
    )
    from lucid.ops.layers.dropout import dropout
    from lucid.ops.layers.linear import bilinear
    from lucid.ops.layers.normalisation import group_norm, layer_norm, rms_norm
    from lucid.ops.pooling.adaptive import adaptive_avg_pool1d
    from lucid.ops.pooling.pooling import avg_pool1d, max_pool1d, max_pool2d, max_pool3d
    from lucid.serialization import load, save
else:
    _addresses.install()

    # What tensors alone do not need is imported when it is first asked for: a sixth of the time of `import lucid`.
    _LATER = {
        "_C": "lucid._C", "accelerator": "lucid.accelerator", "amp": "lucid.amp", "compiler": "lucid.compiler",
        "distributed": "lucid.distributed", "distributions": "lucid.distributions", "fft": "lucid.fft",
        "func": "lucid.func", "futures": "lucid.futures", "fx": "lucid.fx", "jit": "lucid.jit",
        "linalg": "lucid.linalg", "multiprocessing": "lucid.multiprocessing", "nn": "lucid.nn", "onnx": "lucid.onnx",
        "optim": "lucid.optim", "overrides": "lucid.overrides", "profiler": "lucid.profiler",
        "special": "lucid.special", "testing": "lucid.testing", "types": "lucid.types", "utils": "lucid.utils",
        "numpy": "lucid.numpy", "get_num_threads": "lucid.backends.cpu", "set_num_threads": "lucid.backends.cpu",
        "compile": "lucid.compat.compilers", "vmap": "lucid.func", "Future": "lucid.futures",
        "matrix_power": "lucid.ops.decomposition.chains", "det": "lucid.ops.decomposition.inverses",
        "slogdet": "lucid.ops.decomposition.inverses", "inverse": "lucid.ops.decomposition.inverses:inv",
        "lu_unpack": "lucid.ops.decomposition.lu", "matrix_exp": "lucid.ops.decomposition.matrix_exp",
        "logdet": "lucid.ops.decomposition.older", "lu_solve": "lucid.ops.decomposition.older",
        "pinverse": "lucid.ops.decomposition.older", "qr": "lucid.ops.decomposition.older",
        "svd": "lucid.ops.decomposition.older", "geqrf": "lucid.ops.decomposition.orthogonal",
        "ormqr": "lucid.ops.decomposition.orthogonal",
        "orgqr": "lucid.ops.decomposition.orthogonal:householder_product",
        "cholesky": "lucid.ops.decomposition.triangular", "cholesky_inverse": "lucid.ops.decomposition.triangular",
        "cholesky_solve": "lucid.ops.decomposition.triangular", "istft": "lucid.ops.fft.short_time",
        "stft": "lucid.ops.fft.short_time", "conv1d": "lucid.ops.layers.convolution",
        "conv2d": "lucid.ops.layers.convolution", "conv3d": "lucid.ops.layers.convolution",
        "conv_transpose1d": "lucid.ops.layers.convolution", "conv_transpose2d": "lucid.ops.layers.convolution",
        "conv_transpose3d": "lucid.ops.layers.convolution", "dropout": "lucid.ops.layers.dropout",
        "bilinear": "lucid.ops.layers.linear", "group_norm": "lucid.ops.layers.normalisation",
        "layer_norm": "lucid.ops.layers.normalisation", "rms_norm": "lucid.ops.layers.normalisation",
        "adaptive_avg_pool1d": "lucid.ops.pooling.adaptive", "avg_pool1d": "lucid.ops.pooling.pooling",
        "max_pool1d": "lucid.ops.pooling.pooling", "max_pool2d": "lucid.ops.pooling.pooling",
        "max_pool3d": "lucid.ops.pooling.pooling", "load": "lucid.serialization", "save": "lucid.serialization",
    }  # fmt: skip

    def __getattr__(name: str) -> object:
        if name not in _LATER:
            raise AttributeError(f"module 'lucid' has no attribute {name!r}")
        path, _, own_name = _LATER[name].partition(":")
        module = _importlib.import_module(path)
        globals()[name] = module if path == f"lucid.{name}" else getattr(module, own_name or name)
        _keywords.add_to_functions((name,), globals())
        _document((name,), globals())
        return globals()[name]

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


is_distributed = is_neg = is_conj

# second names, of tests/namespaces/ops.txt by `python -m tests.namespaces.exports`
multiply, negative, subtract = mul, neg, sub
greater_equal, greater, less_equal, less, not_equal = ge, gt, le, lt, ne
absolute, conj_physical = abs, conj
divide, true_divide = div, div
fix = trunc
arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh = acos, acosh, asin, asinh, atan, atan2, atanh
ger = outer
trapz = trapezoid
moveaxis, swapdims = movedim, transpose
concatenate, row_stack = cat, vstack
unsafe_chunk, unsafe_split, unsafe_split_with_sizes = chunk, split, split_with_sizes

BFloat16Tensor = _TYPES["lucid.BFloat16Tensor"]
BoolTensor = _TYPES["lucid.BoolTensor"]
ByteTensor = _TYPES["lucid.ByteTensor"]
CharTensor = _TYPES["lucid.CharTensor"]
DoubleTensor = _TYPES["lucid.DoubleTensor"]
FloatTensor = _TYPES["lucid.FloatTensor"]
HalfTensor = _TYPES["lucid.HalfTensor"]
IntTensor = _TYPES["lucid.IntTensor"]
LongTensor = _TYPES["lucid.LongTensor"]
ShortTensor = _TYPES["lucid.ShortTensor"]

__all__ = [
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "Future", "Generator",
    "HalfTensor", "IntTensor", "LongTensor", "ShortTensor", "Size", "Tensor", "__version__", "abs", "absolute",
    "accelerator", "acos", "acosh", "adaptive_avg_pool1d", "add", "addbmm", "addcdiv", "addcmul", "addmm", "addmv",
    "addr", "adjoint", "all", "allclose", "amax", "amin", "aminmax", "amp", "angle", "any", "arange", "arccos",
    "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "are_deterministic_algorithms_enabled", "argmax",
    "argmin", "argsort", "argwhere", "as_strided", "as_strided_scatter", "as_tensor", "asarray", "asin", "asinh",
    "atan", "atan2", "atanh", "atleast_1d", "atleast_2d", "atleast_3d", "autocast", "autocast_decrement_nesting",
    "autocast_increment_nesting", "autograd", "avg_pool1d", "backends", "baddbmm", "bartlett_window", "bernoulli",
    "bfloat16", "bilinear", "bincount", "binomial", "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or",
    "bitwise_right_shift", "bitwise_xor", "blackman_window", "block_diag", "bmm", "bool", "broadcast_shapes",
    "broadcast_tensors", "broadcast_to", "bucketize", "can_cast", "cartesian_prod", "cat", "cdist", "cdouble", "ceil",
    "celu", "celu_", "cfloat", "channel_shuffle", "channels_last", "channels_last_3d", "cholesky", "cholesky_inverse",
    "cholesky_solve", "chunk", "clamp", "clamp_max", "clamp_min", "clear_autocast_cache", "clip", "clone",
    "column_stack", "combinations", "compile", "compiler", "complex", "complex64", "complex128", "concat",
    "concatenate", "conj", "conj_physical", "contiguous_format", "conv1d", "conv2d", "conv3d", "conv_transpose1d",
    "conv_transpose2d", "conv_transpose3d", "copysign", "corrcoef", "cos", "cosh", "cosine_similarity", "count_nonzero",
    "cov", "cross", "cuda", "cummax", "cummin", "cumprod", "cumsum", "cumulative_trapezoid", "deg2rad", "det", "detach",
    "device", "diag", "diag_embed", "diagonal", "diagonal_scatter", "diff", "digamma", "dist", "distributed",
    "distributions", "div", "divide", "dot", "double", "dropout", "dsplit", "dstack", "dtype", "e", "einsum", "empty",
    "empty_like", "enable_grad", "eq", "equal", "erf", "erfc", "erfinv", "errors", "exp", "exp2", "expm1", "eye", "fft",
    "fill", "finfo", "fix", "flatten", "flip", "fliplr", "flipud", "float", "float16", "float32", "float64",
    "float_power", "floor", "floor_divide", "fmax", "fmin", "fmod", "frac", "frexp", "from_dlpack", "from_numpy",
    "frombuffer", "full", "full_like", "func", "futures", "fx", "gather", "gcd", "ge", "geqrf", "ger",
    "get_autocast_dtype", "get_default_device", "get_default_dtype", "get_device", "get_float32_matmul_precision",
    "get_num_threads", "get_rng_state", "greater", "greater_equal", "group_norm", "gt", "half", "hamming_window",
    "hann_window", "hardshrink", "heaviside", "histc", "hsplit", "hstack", "hypot", "i0", "iinfo", "imag", "index_add",
    "index_copy", "index_fill", "index_put", "index_reduce", "index_select", "inf", "inference_mode", "initial_seed",
    "inner", "int", "int8", "int16", "int32", "int64", "inverse", "is_anomaly_enabled", "is_autocast_cache_enabled",
    "is_autocast_enabled", "is_complex", "is_conj", "is_distributed", "is_floating_point", "is_grad_enabled",
    "is_inference", "is_inference_mode_enabled", "is_neg", "is_nonzero", "is_same_size", "is_signed", "is_tensor",
    "isclose", "isfinite", "isin", "isinf", "isnan", "isneginf", "isposinf", "isreal", "istft", "jit", "kaiser_window",
    "kron", "kthvalue", "layer_norm", "layout", "lcm", "ldexp", "le", "lerp", "less", "less_equal", "lgamma", "linalg",
    "linspace", "load", "log", "log1p", "log2", "log10", "log_softmax", "logaddexp", "logaddexp2", "logcumsumexp",
    "logdet", "logical_and", "logical_not", "logical_or", "logical_xor", "logit", "logspace", "logsumexp", "long", "lt",
    "lu_solve", "lu_unpack", "manual_seed", "masked_fill", "masked_scatter", "masked_select", "matmul", "matrix_exp",
    "matrix_power", "max", "max_pool1d", "max_pool2d", "max_pool3d", "maximum", "mean", "median", "memory_format",
    "meshgrid", "min", "minimum", "mm", "mode", "moveaxis", "movedim", "msort", "mul", "multinomial", "multiply",
    "multiprocessing", "mv", "mvlgamma", "nan", "nan_to_num", "nanmean", "nanmedian", "nanquantile", "nansum", "narrow",
    "ne", "neg", "negative", "nextafter", "nn", "no_grad", "nonzero", "norm", "normal", "not_equal", "numel", "ones",
    "ones_like", "onnx", "optim", "orgqr", "ormqr", "outer", "overrides", "pairwise_distance", "pdist", "permute", "pi",
    "pinverse", "pixel_shuffle", "pixel_unshuffle", "poisson", "polar", "polygamma", "positive", "pow", "prelu",
    "preserve_format", "prod", "profiler", "promote_types", "put", "qr", "quantile", "rad2deg", "rand", "rand_like",
    "randint", "randint_like", "randn", "randn_like", "randperm", "ravel", "real", "reciprocal", "relu", "relu_",
    "remainder", "renorm", "repeat_interleave", "reshape", "resolve_conj", "resolve_neg", "result_type", "rms_norm",
    "roll", "rot90", "round", "row_stack", "rrelu", "rrelu_", "rsqrt", "rsub", "save", "scalar_tensor", "scatter",
    "scatter_add", "scatter_reduce", "searchsorted", "seed", "select", "select_scatter", "selu", "selu_",
    "set_autocast_cache_enabled", "set_autocast_dtype", "set_autocast_enabled", "set_default_device",
    "set_default_dtype", "set_float32_matmul_precision", "set_grad_enabled", "set_num_threads", "set_printoptions",
    "set_rng_state", "sgn", "short", "sigmoid", "sign", "signbit", "sin", "sinc", "sinh", "slice_scatter", "slogdet",
    "softmax", "sort", "special", "split", "split_with_sizes", "sqrt", "square", "squeeze", "stack", "std", "std_mean",
    "stft", "strided", "sub", "subtract", "sum", "svd", "swapaxes", "swapdims", "t", "take", "take_along_dim", "tan",
    "tanh", "tensor", "tensor_split", "tensordot", "testing", "threshold", "threshold_", "tile", "topk", "trace",
    "transpose", "trapezoid", "trapz", "tril", "tril_indices", "triu", "triu_indices", "true_divide", "trunc", "types",
    "uint8", "unbind", "unflatten", "unique", "unique_consecutive", "unravel_index", "unsafe_chunk", "unsafe_split",
    "unsafe_split_with_sizes", "unsqueeze", "use_deterministic_algorithms", "utils", "vander", "var", "var_mean",
    "vdot", "version", "view_as_complex", "view_as_real", "vmap", "vsplit", "vstack", "where", "xlogy", "zeros",
    "zeros_like",
]  # fmt: skip

_keywords.add_to_functions(__all__, globals())

_publish(globals())
_document(__all__, globals())
