"""Namespaces of which scripts ask what there is: each answers truly, or says what there is instead."""

from __future__ import annotations

import importlib
import subprocess
import sys
import types
import warnings
from importlib.util import find_spec

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.base import gpu
from lucid.compat import compilers
from lucid.errors import ArgumentError, SettingError
from lucid.version import Version

# ---- the version ----


@pytest.mark.parametrize(
    "row", ["0.9.1", "1.0.dev3", "1.0a1", "1.0a2", "1.0b1", "1.0rc1", "1.0rc2", "1.0", "1.0.1+cu12", "1.2", "1.10"]
)
def test_versions_are_in_order(row):
    """Numbers are compared as numbers, what is under way comes first; as text, and as a sequence of numbers."""
    rows = ["0.9.1", "1.0.dev3", "1.0a1", "1.0a2", "1.0b1", "1.0rc1", "1.0rc2", "1.0", "1.0.1+cu12", "1.2", "1.10"]
    place, version = rows.index(row), Version(row)
    for other, text in enumerate(rows):
        expected = (place < other, place <= other, place > other, place >= other, place == other, place != other)
        assert (version < text, version <= text, version > text, version >= text, version == text, version != text) == (
            expected
        )


def test_versions_and_other_things():
    """Missing numbers are 0; it is a text, and equals nothing else."""
    assert Version("1.2") == "1.2.0" == Version("1.2.0")
    assert Version("1.2") >= (1, 2)
    assert Version("1.2") < (1, 10)
    assert Version("1.2") == [1, 2, 0]
    assert Version("1.2") != 1.2
    assert Version("1.2") != "unknown"
    assert isinstance(lucid.__version__, str)
    assert {Version("1.2"): 1}["1.2"] == 1
    with pytest.raises(TypeError):
        _ = Version("1.2") < 3
    assert lucid.version.cuda is None
    assert lucid.version.hip is None


# ---- devices ----


def test_the_accelerator():
    """It is CUDA where there is one, and nothing otherwise."""
    accelerator = lucid.accelerator
    assert accelerator.is_available() == lucid.cuda.is_available()
    assert accelerator.device_count() == lucid.cuda.device_count()
    if not lucid.cuda.is_available():
        assert accelerator.current_accelerator() is None
        return
    assert accelerator.current_accelerator() == lucid.device("cuda")
    with accelerator.device_index(accelerator.device_count() - 1):
        assert accelerator.current_device_index() == accelerator.device_count() - 1
        accelerator.set_device_index(0)
        assert accelerator.current_device_index() == 0
    accelerator.synchronize()
    assert accelerator.get_memory_info() == lucid.cuda.mem_get_info()


def test_other_devices():
    """There are none."""
    assert not lucid.backends.mps.is_available()
    assert not lucid.backends.mps.is_built()


def test_precision_of_products():
    """It is that of `allow_tf32`, either way."""
    try:
        for name, allowed, found in (("high", True, "high"), ("medium", True, "high"), ("highest", False, "highest")):
            lucid.set_float32_matmul_precision(name)
            assert lucid.backends.cuda.matmul.allow_tf32 is allowed
            assert lucid.get_float32_matmul_precision() == found
        with pytest.raises(ArgumentError, match=r"expected one of \('highest', 'high', 'medium'\), got 'low'"):
            lucid.set_float32_matmul_precision("low")
        lucid.backends.cuda.matmul.allow_tf32 = True
        assert lucid.get_float32_matmul_precision() == "high"
    finally:
        lucid.backends.cuda.matmul.allow_tf32 = False


def test_threads(monkeypatch):
    """OpenBLAS is asked and told; where NumPy has another library, the error says so."""
    cpu = importlib.import_module("lucid.backends.cpu")
    before = lucid.get_num_threads()
    try:
        lucid.set_num_threads(1)
        assert lucid.get_num_threads() == 1
    finally:
        lucid.set_num_threads(before)
    assert lucid.get_num_threads() == before
    with pytest.raises(SettingError, match="num: expected at least 1, got 0"):
        lucid.set_num_threads(0)
    monkeypatch.setattr(cpu, "_function", lambda verb: None)
    assert lucid.get_num_threads() >= 1
    with pytest.raises(SettingError, match="does not compute by OpenBLAS here: set OMP_NUM_THREADS"):
        lucid.set_num_threads(2)


# ---- processes ----


def test_a_single_process():
    """There is one, its number is 0; nobody waits for others (`tests/collectives` has several)."""
    distributed = lucid.distributed
    assert distributed.is_available()
    assert not distributed.is_initialized()
    assert not distributed.is_torchelastic_launched()
    assert distributed.is_mpi_available() == distributed.is_gloo_available() == bool(find_spec("mpi4py"))
    assert distributed.is_nccl_available() == bool(find_spec("nccl"))
    for asked in (distributed.is_mpi_available, distributed.is_nccl_available):
        assert asked.__module__ == "lucid.distributed"
    assert (distributed.get_rank(), distributed.get_world_size()) == (0, 1)
    assert distributed.ReduceOp.SUM is not distributed.ReduceOp.MAX


def test_nothing_is_spread_over_processes():
    """The classes can be asked for, nothing is an instance, and making one says what there is instead."""
    fsdp, spread, mesh = lucid.distributed.fsdp, lucid.distributed.tensor, lucid.distributed.device_mesh
    kinds = (fsdp.FSDPModule, fsdp.FullyShardedDataParallel, fsdp.MixedPrecisionPolicy, spread.DTensor, mesh.DeviceMesh)
    layer = lucid.nn.Linear(1, 1)
    assert not any(isinstance(value, kinds) for value in (layer, layer.weight))
    experimental = importlib.import_module("lucid.distributed.tensor.experimental")
    for call in (*kinds, fsdp.fully_shard, mesh.init_device_mesh, experimental.implicit_replication):
        with pytest.raises(NotImplementedError, match=f"{call.__name__}: each process of lucid has whole models"):
            call()


def test_modules_on_several_devices():
    """No module is one of them, and who makes one is told what to use."""
    assert not isinstance(nn.Linear(1, 1), nn.DataParallel | nn.parallel.DistributedDataParallel)
    with pytest.raises(NotImplementedError, match=r"^DataParallel: .*DistributedDataParallel"):
        nn.DataParallel(nn.Linear(1, 1), device_ids=[0])


# ---- compilers and protocols ----


def test_nothing_is_said_to_a_compiler():
    """Functions come back as they are, decorated or not, and none is being traced."""
    compiler = lucid.compiler
    functions = [abs, len]
    assert compiler.allow_in_graph(functions) is functions
    assert compiler.disable(abs, recursive=False) is abs
    assert compiler.disable(reason="graph break")(abs) is abs
    answers = [compiler.is_compiling(), compiler.is_dynamo_compiling(), compiler.is_exporting()]
    assert answers == [False] * 3
    assert compiler.reset() is None


def test_compile_says_once_that_it_does_nothing():
    """It returns what it was given, as a function, a decorator and a decorator with settings."""
    compilers._said.clear()
    model = nn.Linear(1, 1)
    with pytest.warns(UserWarning, match="lucid.compile returns its argument as it is") as seen:
        assert lucid.compile(model, mode="max-autotune") is model
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lucid.compile(model) is model
        assert lucid.compile(fullgraph=True)(abs) is abs
        compilers._said.clear()
        assert lucid.compile(abs, disable=True) is abs
        assert lucid.compile(disable=True)(abs) is abs
    with pytest.raises(ArgumentError, match="model: expected a module or a function, got int"):
        lucid.compile(3)


def test_marks_for_compilers():
    """They change nothing, and nothing is being compiled."""
    jit = lucid.jit
    compilers._said.clear()
    with pytest.warns(UserWarning, match="lucid.jit.script returns its argument"):
        assert jit.script(abs) is abs
    assert jit.script(abs) is jit.ignore(abs) is jit.ignore(drop=True)(abs) is jit.unused(abs) is jit.export(abs) is abs
    assert not jit.is_scripting()
    assert not jit.is_tracing()


def test_nothing_takes_over():
    """No class is asked, and functions do what they do."""
    overrides = lucid.overrides
    assert not overrides.has_torch_function((lucid.ones(1),))
    assert not overrides.has_torch_function_unary(lucid.ones(1))
    assert not overrides.has_torch_function_variadic(1, 2)
    assert overrides.handle_torch_function(lucid.add, (), lucid.ones(1), 2, alpha=3).item() == 7
    assert overrides.wrap_torch_function(len)(abs) is abs
    assert overrides.is_tensor_like(nn.Parameter(lucid.ones(1)))
    assert not overrides.is_tensor_like(np.ones(1))


def test_types():
    """What annotations name is there."""
    assert isinstance(1.5, lucid.types.Number)
    assert isinstance(lucid.ones(1).untyped_storage(), lucid.types.Storage)
    assert lucid.types.__all__ == ["Device", "FileLike", "Number", "Storage"]


# ---- TensorBoard ----


class Writer:
    """What tensorboardX has of a writer."""

    def __init__(self, folder):
        self.seen = [folder]

    def add_scalar(self, tag, scalar_value, global_step=None):
        self.seen.append((tag, scalar_value, global_step))

    def add_scalars(self, tag, values):
        self.seen.append((tag, values))

    def close(self):
        self.seen.append("closed")


@pytest.fixture
def tensorboard(monkeypatch):
    """Return the module, on top of a stand-in for tensorboardX."""
    monkeypatch.setitem(sys.modules, "tensorboardX", types.SimpleNamespace(SummaryWriter=Writer))
    monkeypatch.delitem(sys.modules, "lucid.utils.tensorboard", raising=False)
    yield importlib.import_module("lucid.utils.tensorboard")
    sys.modules.pop("lucid.utils.tensorboard", None)


def test_writers_take_tensors(tensorboard):
    """Tensors come to it as NumPy's arrays, also by name, in dicts and of bfloat16; the rest as it is."""
    writer = tensorboard.SummaryWriter("runs")
    assert isinstance(writer, Writer)
    writer.add_scalar("a", lucid.tensor(1.5, requires_grad=True), 3)
    writer.add_scalar("b", scalar_value=lucid.tensor(2.5, dtype=lucid.bfloat16))
    writer.add_scalars("c", {"x": lucid.ones(1), "y": 2})
    writer.close()
    folder, (_, one, step), (_, two, _), (_, several), closed = writer.seen
    assert (folder, float(one), step, float(two), closed) == ("runs", 1.5, 3, 2.5, "closed")
    assert isinstance(one, np.ndarray)
    assert two.dtype == np.float32
    assert several["x"].tolist() == [1.0]
    assert isinstance(several["x"], np.ndarray)
    assert several["y"] == 2


def test_without_tensorboardx(monkeypatch):
    """The module is there, for whoever walks through lucid's; asking for the class says what to install."""
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    monkeypatch.delitem(sys.modules, "lucid.utils.tensorboard", raising=False)
    module = importlib.import_module("lucid.utils.tensorboard")
    with pytest.raises(ImportError, match="pip install tensorboardX"):
        module.SummaryWriter
    assert not hasattr(module, "no_such_name")


# ---- imports ----

LATER = (
    "accelerator", "compiler", "distributed", "jit", "multiprocessing", "overrides", "profiler", "testing", "types",
    "ops.creation.cuda_generators", "utils",
)  # fmt: skip


def test_nothing_of_it_is_imported_with_lucid():
    """Each namespace is imported when it is first asked for, and is then the module of that name."""
    code = (
        f"import sys, lucid\nloaded = [name for name in {LATER} if 'lucid.' + name in sys.modules]\n"
        "assert not loaded and 'multiprocessing' not in sys.modules, loaded\n"
        f"for name in {[name for name in LATER if '.' not in name]}:\n"
        "    assert getattr(lucid, name) is sys.modules['lucid.' + name], name\n"
        "assert lucid.compile and lucid.get_num_threads() and lucid.cuda.manual_seed_all"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})
    assert gpu.is_available() == lucid.cuda.is_available()
