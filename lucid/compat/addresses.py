"""PyTorch's addresses of lucid's objects elsewhere, and the modules that are made of this table.

`import lucid.fx` and ``from lucid.nn.modules.conv import _ConvNd`` find no file: `_Finder` makes the module when it is
asked for. What computes has a file of its own; what is only there so that code written for PyTorch finds it is a row
here, and where it does something of its own, a function in a file beside this one.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from lucid.public import publish

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from importlib.abc import Loader
else:
    # its module would take a thirtieth of the time of `import lucid`
    Loader = object

__all__ = ["ADDRESSES", "DISTRIBUTIONS", "LAYERS", "install", "names_at"]


class Address(NamedTuple):
    """A module's docstring, and its names, each after the place that it comes from.

    `place:` says where the names after it are found, and `name=own` that one has another name there.
    """

    doc: str
    names: str


# By PyTorch's module of layers: those in it, which are names of `lucid.nn`, and bases.
LAYERS = {
    "activation": (
        "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax Mish "
        "MultiheadAttention PReLU RReLU ReLU ReLU6 SELU SiLU Sigmoid Softmax Softmax2d Softmin Softplus Softshrink "
        "Softsign Tanh Tanhshrink Threshold"
    ),
    "adaptive": "AdaptiveLogSoftmaxWithLoss",
    "batchnorm": (
        "BatchNorm1d BatchNorm2d BatchNorm3d LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d SyncBatchNorm "
        "nn.layers.normalisation.tracked: _NormBase=Tracked nn.layers.normalisation.batch: _BatchNorm=BatchNorm"
    ),
    "channelshuffle": "ChannelShuffle",
    "container": "ModuleDict ModuleList ParameterDict ParameterList Sequential",
    "conv": (
        "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d LazyConv1d LazyConv2d LazyConv3d "
        "LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d nn.layers.convolution: _ConvNd=Convolution "
        "_ConvTransposeNd=TransposedConvolution"
    ),
    "distance": "CosineSimilarity PairwiseDistance",
    "dropout": (
        "AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout nn.layers.dropout: "
        "_DropoutNd=RandomDrop"
    ),
    "flatten": "Flatten Unflatten",
    "fold": "Fold Unfold",
    "instancenorm": (
        "InstanceNorm1d InstanceNorm2d InstanceNorm3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d "
        "nn.layers.normalisation.instance: _InstanceNorm=InstanceNorm nn.layers.normalisation.tracked: "
        "_NormBase=Tracked"
    ),
    "linear": "Bilinear Identity LazyLinear Linear",
    "loss": (
        "BCELoss BCEWithLogitsLoss CTCLoss CosineEmbeddingLoss CrossEntropyLoss GaussianNLLLoss HingeEmbeddingLoss "
        "HuberLoss KLDivLoss L1Loss MSELoss MarginRankingLoss MultiLabelMarginLoss MultiLabelSoftMarginLoss "
        "MultiMarginLoss NLLLoss PoissonNLLLoss SmoothL1Loss SoftMarginLoss TripletMarginLoss "
        "TripletMarginWithDistanceLoss nn.layers.losses.loss: _Loss=Loss _WeightedLoss=WeightedLoss"
    ),
    "normalization": "CrossMapLRN2d GroupNorm LayerNorm LocalResponseNorm RMSNorm",
    "padding": (
        "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d ReflectionPad1d "
        "ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d ZeroPad1d ZeroPad2d "
        "ZeroPad3d nn.layers.padding: _CircularPadNd=CircularPad _ConstantPadNd=ConstantPad "
        "_ReflectionPadNd=ReflectionPad _ReplicationPadNd=ReplicationPad"
    ),
    "pixelshuffle": "PixelShuffle PixelUnshuffle",
    "pooling": (
        "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d "
        "AvgPool1d AvgPool2d AvgPool3d FractionalMaxPool2d FractionalMaxPool3d LPPool1d LPPool2d LPPool3d MaxPool1d "
        "MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d nn.layers.pooling: _MaxPoolNd=MaxPool "
        "_AvgPoolNd=AvgPool _AdaptiveAvgPoolNd=AdaptiveAvgPool _AdaptiveMaxPoolNd=AdaptiveMaxPool "
        "_MaxUnpoolNd=MaxUnpool _LPPoolNd=LPPool"
    ),
    "rnn": "GRU GRUCell LSTM LSTMCell RNN RNNBase RNNCell RNNCellBase",
    "sparse": "Embedding EmbeddingBag",
    "transformer": "Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer",
    "upsampling": "Upsample UpsamplingBilinear2d UpsamplingNearest2d",
}

# By the name that pickles of older versions have for a folder: the one that it has now.
MOVED = {"backend": "base"}

# Modules of NumPy's that `lucid.numpy` has as they are; the first is its own.
NUMPYS = frozenset(("emath", "char", "ctypeslib", "dtypes", "exceptions", "ma", "polynomial", "rec", "strings"))

# By a file that they name, too: what of it is public.
OLDER = {"autograd.functions": "autograd: backward grad", "tensor.recording": "tensor.differentiating: detach"}

# Where layers are found when they are asked for, though they do not count as exported: the second by older pickles.
LAYERS_TOO = {"lucid.nn.modules", "lucid.nn.modules.lazy"}

# By PyTorch's module of distributions: what is in it, names of `lucid.distributions`.
DISTRIBUTIONS = {
    "bernoulli": "Bernoulli", "beta": "Beta", "binomial": "Binomial", "categorical": "Categorical",
    "cauchy": "Cauchy", "chi2": "Chi2", "continuous_bernoulli": "ContinuousBernoulli", "dirichlet": "Dirichlet",
    "exp_family": "ExponentialFamily", "exponential": "Exponential", "fishersnedecor": "FisherSnedecor",
    "gamma": "Gamma", "generalized_pareto": "GeneralizedPareto", "geometric": "Geometric", "gumbel": "Gumbel",
    "half_cauchy": "HalfCauchy", "half_normal": "HalfNormal", "independent": "Independent",
    "inverse_gamma": "InverseGamma", "kumaraswamy": "Kumaraswamy", "laplace": "Laplace",
    "lkj_cholesky": "LKJCholesky", "log_normal": "LogNormal", "logistic_normal": "LogisticNormal",
    "lowrank_multivariate_normal": "LowRankMultivariateNormal", "mixture_same_family": "MixtureSameFamily",
    "multinomial": "Multinomial", "multivariate_normal": "MultivariateNormal",
    "negative_binomial": "NegativeBinomial", "normal": "Normal",
    "one_hot_categorical": "OneHotCategorical OneHotCategoricalStraightThrough", "pareto": "Pareto",
    "poisson": "Poisson",
    "relaxed_bernoulli": "RelaxedBernoulli distributions.families.relaxed: LogitRelaxedBernoulli",
    "relaxed_categorical": "RelaxedOneHotCategorical distributions.families.relaxed: ExpRelaxedCategorical",
    "studentT": "StudentT", "transformed_distribution": "TransformedDistribution", "uniform": "Uniform",
    "von_mises": "VonMises", "weibull": "Weibull", "wishart": "Wishart",
}  # fmt: skip

# by the address below lucid
ADDRESSES = {
    "_C": Address(
        "What code written for PyTorch reads of a running backward pass, under the private names that it has there.",
        "autograd.engine.running: _current_autograd_node=current_node _will_engine_execute_node=will_execute "
        "_current_graph_task_execution_order=current_graph_task_execution_order "
        "_current_graph_task_id=current_graph_task_id",
    ),
    "_utils": Address(
        "Many tensors as one of one dimension and back, under the private names by which libraries take it from "
        "PyTorch.",
        "compat.helpers: _flatten_dense_tensors _unflatten_dense_tensors",
    ),
    "accelerator": Address(
        "The accelerator of this machine, whatever its kind: here always CUDA. Names and answers are those of "
        "`lucid.cuda`.",
        "compat.helpers: current_accelerator "
        "cuda: current_device_index=current_device current_stream device_count device_index=device empty_cache "
        "get_memory_info=mem_get_info is_available max_memory_allocated memory_allocated memory_reserved "
        "reset_peak_memory_stats set_device_index=set_device synchronize",
    ),
    "amp.autocast_mode": Address(
        "Mixed precision, where PyTorch has it.", "amp: autocast custom_bwd custom_fwd is_autocast_available"
    ),
    "autograd.grad_mode": Address(
        "The modes of recording, where PyTorch has them.",
        "autograd: enable_grad inference_mode no_grad set_grad_enabled set_multithreading_enabled",
    ),
    "compiler": Address(
        "What code says to PyTorch's compiler, of which lucid has none: functions come back as they are.",
        "compat.compilers: allow_in_graph disable is_compiling is_dynamo_compiling=is_compiling "
        "is_exporting=is_compiling reset",
    ),
    "fx": Address(
        "The classes by which tools tell traced modules apart: lucid traces no Python, so that nothing is one of them.",
        "compat.refusals: Graph GraphModule Node Tracer symbolic_trace",
    ),
    "jit": Address(
        "What marks code for PyTorch's compilers: lucid runs Python as it stands, so that marks change nothing.\n\n"
        "`lucid.compile` is here, too. What makes a step of small kernels faster is `lucid.cuda.graphed_step`.",
        "compat.compilers: Final ScriptModule compile export ignore is_scripting is_tracing script unused",
    ),
    "nn.modules": Address(
        "PyTorch's address of what concerns the modules of a whole process, and of each layer.\n\n"
        "`lucid.nn.modules.conv`, `batchnorm`, `loss` and the others have PyTorch's layers of each kind, and the bases "
        "by which\ntools tell them apart; the layers themselves are those of `lucid.nn`.",
        "nn.modules: lazy module utils",
    ),
    "nn.modules.lazy": Address(
        "Layers whose first input says how many features or channels there are.", "nn.lazy: LazyModuleMixin"
    ),
    "nn.modules.module": Address(
        "Hooks of all modules of the process: they fire before a module's own.\n\n"
        "One that cannot be called is refused with a TypeError. `every_step` is that of "
        "`Module.register_forward_hook`.",
        "nn: Module nn.module.state: _IncompatibleKeys=IncompatibleKeys "
        "nn.hooking.everywhere: register_module_backward_hook register_module_buffer_registration_hook "
        "register_module_forward_hook register_module_forward_pre_hook register_module_full_backward_hook "
        "register_module_full_backward_pre_hook register_module_module_registration_hook "
        "register_module_parameter_registration_hook",
    ),
    "nn.modules.utils": Address(
        "PyTorch's address of what is done with the state dicts of modules.",
        "compat.helpers: _ntuple _single _pair _triple _quadruple consume_prefix_in_state_dict_if_present",
    ),
    "onnx": Address(
        "PyTorch's address of the export to ONNX, which lucid does not have: scripts that import it run until they "
        "export.",
        "compat.refusals: export",
    ),
    "overrides": Address(
        "PyTorch's protocol by which classes take over functions: lucid calls no `__torch_function__`.\n\n"
        "A class on a tensor's place is left out of an op by its operators, or wraps what it needs.",
        "compat.overriding: handle_torch_function has_torch_function has_torch_function_unary "
        "has_torch_function_variadic is_tensor_like wrap_torch_function",
    ),
    "types": Address(
        "What annotations of code around tensors name: numbers, devices, files, storages.",
        "base.device: Device ops.base.storage: Storage=UntypedStorage compat.helpers: FileLike Number",
    ),
    "utils.hooks": Address("The handle of module hooks, where PyTorch has it.", "nn.hooks: RemovableHandle"),
    **{name: Address("Where older pickles look.", names) for name, names in OLDER.items()},
    **{
        f"{package}.{name}": Address(f"PyTorch's address of {what} of `lucid.{place}`.", f"{place}: {names}")
        for package, place, what, rows in (
            ("nn.modules", "nn", "layers", LAYERS),
            ("distributions", "distributions", "families", DISTRIBUTIONS),
        )
        for name, names in rows.items()
    },
}


def names_at(address: str) -> Iterator[tuple[str, str, str]]:
    """Yield for each name at an address the name, its module, and its name there.

    >>> from lucid.compat.addresses import names_at
    >>> list(names_at("utils.hooks"))
    [('RemovableHandle', 'lucid.nn.hooks', 'RemovableHandle')]
    """
    place = ""
    for entry in ADDRESSES[address].names.split():
        if entry.endswith(":"):
            place = f"lucid.{entry[:-1]}"
        else:
            name, _, own = entry.partition("=")
            yield name, place, own or name


class _Module(ModuleType):
    """The module of a row of the table."""

    def __getattr__(self, name: str) -> object:
        if f"{self.__name__}.{name}".removeprefix("lucid.") in ADDRESSES:
            return import_module(f"{self.__name__}.{name}")
        if self.__name__ in LAYERS_TOO and any(name in layers.split() for layers in LAYERS.values()):
            return getattr(sys.modules["lucid.nn"], name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


class SecondName(Loader):
    """Gives a module a place under another name, and leaves it as it is."""

    def __init__(self, own: Callable[[str], str]) -> None:
        self._own = own

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self._own(spec.name))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        if spec is not None:
            module.__spec__ = spec.loader_state


def _numpys(name: str) -> str:
    return "lucid.numpy.lib.scimath" if name == "lucid.numpy.emath" else name.removeprefix("lucid.")


def _moved(name: str) -> str:
    older, _, rest = name.removeprefix("lucid.").partition(".")
    return ".".join(("lucid", MOVED[older], *filter(None, [rest])))


class _Finder(Loader):
    """Makes the modules of the table."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        address = fullname.removeprefix("lucid.")
        if address == fullname:
            return None
        if address.partition(".")[0] in MOVED:
            return ModuleSpec(fullname, SecondName(_moved), is_package=True)
        if address.startswith("numpy.") and address.split(".")[1] in NUMPYS:
            return ModuleSpec(fullname, SecondName(_numpys), is_package=True)
        if address not in ADDRESSES:
            return None
        return ModuleSpec(fullname, self, is_package=any(each.startswith(f"{address}.") for each in ADDRESSES))

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Module(spec.name, ADDRESSES[spec.name.removeprefix("lucid.")].doc)

    def exec_module(self, module: ModuleType) -> None:
        values = {
            name: import_module(f"{place}.{name}") if place == module.__name__ else getattr(import_module(place), own)
            for name, place, own in names_at(module.__name__.removeprefix("lucid."))
        }
        exported = [name for name in values if not name.startswith("_")] or values
        vars(module).update(values, __all__=sorted(exported))
        publish(vars(module))


def install() -> None:
    """Let `import` find the modules of the table."""
    # before the finder of files, which would load those of a folder that has moved a second time
    sys.meta_path.insert(0, _Finder())
