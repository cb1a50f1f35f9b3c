"""How processes are connected by NCCL, and what is said where something for it is missing."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from lucid.base import gpu
from lucid.collectives.engines import communicator
from lucid.collectives.engines.communicator import Peers
from lucid.collectives.job.watch import Apart, Watch
from lucid.errors import DistributedError, SettingError
from tests.collectives import jobs
from tests.pieces import raising

STANDIN = Path(jobs.NCCL["PYTHONPATH"].rpartition(":")[2]) / "nccl" / "core" / "__init__.py"
CALLED = (
    "allgather", "allreduce", "alltoall", "broadcast", "gather", "recv", "reduce", "reduce_scatter", "scatter", "send",
    "init", "shrink", "finalize", "destroy", "abort", "get_async_error", "get_last_error",
)  # fmt: skip


@pytest.fixture
def address(monkeypatch):
    """Return what sets the environment of a launcher, of which nothing is there."""
    for name in ("MASTER_ADDR", "MASTER_PORT", "NCCL_COMM_ID", "TORCHELASTIC_USE_AGENT_STORE"):
        monkeypatch.setenv(name, "")
    return monkeypatch.setenv


def identity_of(*ranks):
    """Return what processes without MPI find out about the address of the first."""
    peers = Peers("some", ranks, Watch(Apart(ranks[0], 4)), None)
    said = SimpleNamespace(get_unique_id=lambda: communicator.os.environ["NCCL_COMM_ID"])
    return peers._identity(said, 0.0, 1.0)


def test_the_address_of_rank_0_comes_from_the_launcher(address):
    """NCCL makes the same identity of it everywhere; beside torchrun's own store at that port the next one is taken."""
    for given, missing in (({}, "MASTER_ADDR and MASTER_PORT are"), ({"MASTER_ADDR": "here"}, "MASTER_PORT is")):
        for name, value in given.items():
            address(name, value)
        with pytest.raises(SettingError, match=f"{missing} missing"):
            identity_of(0, 1)
    address("MASTER_PORT", "29500")
    assert identity_of(0, 1) == "here:29500"
    address("NCCL_COMM_ID", "")
    address("TORCHELASTIC_USE_AGENT_STORE", "True")
    assert identity_of(0, 1) == "here:29501"
    address("NCCL_COMM_ID", "there:1")
    assert identity_of(0, 1) == "there:1"
    address("NCCL_COMM_ID", "")
    with pytest.raises(DistributedError, match="through rank 0, which is not the first of this group"):
        identity_of(1, 2)


def test_what_is_missing_is_said(monkeypatch):
    """nccl4py, libnccl, or one of the CUDA version that CuPy has, each with what to install."""
    find = communicator.library.__wrapped__

    monkeypatch.setattr(communicator, "import_module", raising(ImportError("No module named 'nccl'")))
    with pytest.raises(
        DistributedError, match=r"by nccl4py \(No module named 'nccl'\): pip install 'lucid-cupy\[nccl13\]"
    ):
        find()
    version = SimpleNamespace(libnccl=None)
    core = SimpleNamespace(get_version=lambda: version)
    monkeypatch.setattr(communicator, "import_module", lambda _: core)
    with pytest.raises(DistributedError, match=r"finds no libnccl.so.2: pip install 'lucid-cupy\[nccl13\]'"):
        find()
    version.libnccl = SimpleNamespace(cuda_variant=SimpleNamespace(major=13))
    runtime = SimpleNamespace(runtimeGetVersion=lambda: 12090)
    monkeypatch.setattr(gpu, "cupy", lambda: SimpleNamespace(cuda=SimpleNamespace(runtime=runtime)))
    with pytest.raises(DistributedError, match=r"CuPy is for CUDA 12, .* is for CUDA 13: .*cuda13,nccl13"):
        find()
    runtime.runtimeGetVersion = lambda: 13020
    assert find() is core


def test_the_stand_in_has_nccl4pys_signatures(monkeypatch):
    """Names, order, kinds and defaults of the parameters of all that is called; where nccl4py is installed."""
    core = pytest.importorskip("nccl.core", reason="nccl4py is not installed")
    spec = importlib.util.spec_from_file_location("standin", STANDIN)
    standin = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "standin", standin)
    spec.loader.exec_module(standin)
    pairs = [(getattr(core.Communicator, name), getattr(standin.Communicator, name)) for name in CALLED]
    names = ("get_unique_id", "get_error_string", "get_version", "group")
    pairs += [(getattr(core, name), getattr(standin, name)) for name in names]
    pairs += [(core.UniqueId.from_bytes, standin.UniqueId.from_bytes)]
    for real, ours in pairs:
        theirs, given = (inspect.signature(each).parameters.values() for each in (real, ours))
        assert [(p.name, p.kind, p.default) for p in theirs] == [(p.name, p.kind, p.default) for p in given], real
    assert {each.name: each.value for each in core.NcclRedOp} == {each.name: each.value for each in standin.NcclRedOp}
    assert inspect.signature(core.NCCLConfig).parameters["blocking"].kind is inspect.Parameter.KEYWORD_ONLY
    assert len(bytes(core.UniqueId())) == len(bytes(standin.UniqueId())) == communicator._ID_BYTES
    states = core.communicator._Result
    assert (states.Success, states.InProgress) == (communicator.SUCCESS, communicator.IN_PROGRESS)
