"""PyTorch's public names and how often public code uses them, for `python -m lucid.compat`.

`python -m tests.parity.pytorch_names FOLDER... > lucid/compat/names.json`, each folder a checkout of public code, says
for each name in how many of 10,000 files that import PyTorch it stands, the mean of the folders.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import sys
import warnings
from collections import Counter
from pathlib import Path

import torch

# Modules, and the classes whose members are asked for. What is not documented is left out by its name below.
NAMESPACES = (
    "torch", "torch.Tensor", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.Module", "torch.nn.utils",
    "torch.nn.utils.parametrizations", "torch.nn.utils.parametrize", "torch.nn.utils.prune", "torch.nn.utils.rnn",
    "torch.nn.utils.stateless", "torch.optim", "torch.optim.Optimizer", "torch.optim.lr_scheduler",
    "torch.optim.swa_utils", "torch.amp", "torch.autograd", "torch.autograd.functional", "torch.autograd.graph",
    "torch.cuda", "torch.distributed", "torch.distributions", "torch.fft", "torch.func", "torch.linalg",
    "torch.special", "torch.testing", "torch.utils.checkpoint", "torch.utils.data",
)  # fmt: skip
CLASSES = ("torch.Tensor", "torch.nn.Module", "torch.optim.Optimizer")
TOP_CLASSES = {"Tensor", "Size", "Generator", "Stream", "Event"} | {
    f"{kind}Tensor" for kind in ("BFloat16", "Bool", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short")
}
# Deprecated, sparse, quantised, of the tracing compilers, of other hardware; or of PyTorch's inside.
LEFT_OUT = re.compile(
    r"""_ | .*(?:sparse|quanti[zs]|vulkan|mkldnn|miopen|cudnn|fbgemm|nnpack|xpu|ipu|hpu|mtia|maia|xla|qint|quint|mps
    |coalesce|crow_ind|ccol_ind|col_ind|row_ind|q_scale|q_zero|q_per|qscheme|q_axis|dequant|choose_qparams|nested
    |lobpcg|_copy$|_copy_$|named|rename|refine_names|align_|names$|sym_|_values$|int_repr|storage_type|Storage|sspaddmm
    |smm$|hspmm|Float8|float8|float4|bits|complex32|chalf|c10|cuda_path|script|jit|Graph.*Pool|nccl|Nccl|gds|Gds|tunable
    |GreenContext|caching_allocator|can_device|check_error|cudart|cusolver|magma|has_|is_jiterator|memory_usage
    |utilization|temperature|power_draw|clock_rate|jiterator|SEQ_|symeig|solve_triangular_).*
    |(?:eig|lstsq|qr|geqrf|orgqr|ormqr|lu_solve|triangular_solve|chain_matmul|cholesky_.*|matrix_rank|norm_except_dim
    |rnn_.*|lstm.*|gru.*|import_ir.*|fork|wait|batch_norm_.*|native_.*|unsafe_.*|[su]?int[1-7]|uint(?:16|32|64)
    |is_(?:xpu|ipu|meta|maia)|adaptive_max_pool\d+d_with.*|.*pool\dd_with_indices|map\d?_|apply_|reinforce|volatile
    |handle_torch_function|boolean_dispatch|assert_int_or_pair|factory_kwargs|tree_map|FileCheck|NLLLoss2d|Container
    |.*DataPipe|.*datapipe.*|DataChunk|argument_validation|runtime_validation.*|non_deterministic|T_destination
    |dump_patches|LoggingTensorMode|capture_logs|TorchDispatchMode|GraphExecGroup|NestedIO.*|Profiler.*|kineto_.*
    |clip_grad_norm|classproperty|parse_.*|unify_type.*|merge_type.*|profiler_.*|init_num_threads|thread_safe.*|jagged
    |bit|spmm|saddmm|fused_moving.*|legacy_.*|compiled_with.*|get_file_path|.*memory_cached|cudaStatus|Future
    |grid_sampler.*|affine_grid_generator|constant_pad_nd|feature_dropout|frobenius_norm|nuclear_norm|reset_max_.*
    |set_default_tensor_type|is_storage|typename|convolution|binary_cross_entropy_with_logits
    |.*Options|is_traceable_wrapper_subclass|upsample.*|type_before.*|transfer_.*|NamedMember.*|swap_in_.*
    |as_subclass|backward_.*|Any|Callable|Optional|Union|TYPE_CHECKING|T|Final|Literal|overload|.*Type|.*Error
    |AnyType|.*Impl|[A-Z][a-z]+Handle|.*_handler|prepare_.*|segment_reduce|resize_as_sparse_|conv_tbc|dense_dim|hash_.*)$
    """,
    re.VERBOSE,
)


def names_in(path: str) -> set[str]:
    """Return the names that PyTorch has at `path`, of a module only what users call or pass on."""
    if path in CLASSES:
        module, _, name = path.rpartition(".")
        members = set(dir(getattr(importlib.import_module(module), name))) - set(dir(object))
        return {member for member in members if not LEFT_OUT.match(member)}
    module = importlib.import_module(path)

    kinds = (torch.dtype, torch.layout, torch.memory_format)
    elsewhere = {
        id(value)
        for value in (*vars(torch).values(), *vars(torch.nn).values(), torch.optim.Optimizer)
        if inspect.isclass(value)
    }
    found = set()
    for name, value in vars(module).items():
        borrowed = path not in {"torch", "torch.nn", "torch.optim"} and id(value) in elsewhere
        left_out = path == "torch" and name.endswith("_")  # of its functions only the methods are documented
        own = str(getattr(value, "__module__", "torch") or "torch").startswith("torch")
        if path == "torch" and inspect.isclass(value) and name[0].isupper() and name not in TOP_CLASSES:
            continue  # of the compilers inside
        left_out |= path == "torch.nn.init" and not name.endswith("_") and name != "calculate_gain"  # deprecated
        if (callable(value) or isinstance(value, kinds)) and own and not (LEFT_OUT.match(name) or left_out or borrowed):
            found.add(name)
    return found


def roots(tree: ast.AST) -> dict[str, str]:
    """Return what each imported name stands for, of a module: ``{"F": "torch.nn.functional"}``."""
    known = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    known[alias.asname] = alias.name
                else:
                    known[alias.name.partition(".")[0]] = alias.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            known |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return known


def used_in(source: str) -> set[str]:
    """Return the full names that a file uses, and ``.name`` for each attribute of what it did not import."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of their strings
        tree = ast.parse(source)
    known = roots(tree)
    if not any(name.partition(".")[0] == "torch" for name in known.values()):
        return set()
    used = {name for name in known.values() if name.startswith("torch.")}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            parts, base = [node.attr], node.value
            while isinstance(base, ast.Attribute):
                parts.append(base.attr)
                base = base.value
            if isinstance(base, ast.Name) and base.id in known:
                used.add(".".join([known[base.id], *reversed(parts)]))
            else:
                used.add(f".{node.attr}")
    return used


def counts(folder: Path) -> Counter[str]:
    """Return in how many of 10,000 files of a folder that import PyTorch each name stands."""
    found, files = Counter(), 0
    for file in sorted(folder.rglob("*.py")):
        try:
            used = used_in(file.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        files += bool(used)
        found.update(used)
    return Counter({name: 10_000 * count / files for name, count in found.items()})


def table(folders: list[Path]) -> dict[str, dict[str, int]]:
    """Return for each namespace its names and how often each is used."""
    total = Counter()
    for folder in folders:
        total.update(counts(folder))

    def often(path: str, name: str) -> int:
        return round((total[f"{path}.{name}"] + total[f".{name}"] * (path in CLASSES)) / len(folders))

    return {path: {name: often(path, name) for name in sorted(names_in(path))} for path in NAMESPACES}


if __name__ == "__main__":
    rows = table([Path(name) for name in sys.argv[1:]])
    print(json.dumps(rows, indent=1))
