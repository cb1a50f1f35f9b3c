"""A process that no launcher has started is a group of one, and everything computes there, on each device."""

from __future__ import annotations

import os
import warnings

import numpy as np
import pytest

import lucid
from lucid import distributed as dist
from lucid.collectives import world
from lucid.errors import DeviceError, DistributedError, NotDifferentiableError, SettingError
from tests.collectives.jobs import LAUNCHERS, NAMES
from tests.device import DEVICE


@pytest.fixture(autouse=True)
def started_by_nobody(monkeypatch):
    """Let no variable of a launcher that has started the tests be seen, and no group stay behind."""
    for name in [*NAMES, *(each for each in os.environ if each.startswith(LAUNCHERS))]:
        monkeypatch.delenv(name, raising=False)
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


BACKEND = "nccl" if DEVICE == "cuda" else "mpi"


def given(values):
    """Return a tensor on the device of the run."""
    return lucid.tensor(values, device=DEVICE)


@pytest.mark.parametrize("together", [False, True])
def test_every_collective_gives_what_there_is(together):
    """With a group of one or none at all, results are this process's values, and asynchronous ones are works."""
    if together:
        dist.init_process_group(BACKEND, rank=0, world_size=1, init_method="env://")
    assert dist.is_initialized() == together
    assert (dist.get_rank(), dist.get_world_size()) == (0, 1)
    x = given([1.0, 2.0])
    for call in (
        lambda: dist.all_reduce(x),
        lambda: dist.all_reduce(x, dist.ReduceOp.AVG),
        lambda: dist.broadcast(x, 0),
        lambda: dist.reduce(x, 0),
        dist.barrier,
        dist.monitored_barrier,
    ):
        assert call() is None
        assert x.tolist() == [1.0, 2.0]
    for call in (
        lambda into: dist.all_gather([into], x),
        lambda into: dist.all_gather_into_tensor(into, x),
        lambda into: dist.gather(x, [into]),
        lambda into: dist.scatter(into, [x]),
        lambda into: dist.reduce_scatter(into, [x]),
        lambda into: dist.reduce_scatter_tensor(into, x),
        lambda into: dist.all_to_all([into], [x]),
        lambda into: dist.all_to_all_single(into, x, [2], [2]),
    ):
        for into in (given([0.0, 0.0]), given([[0.0, 9.0], [0.0, 9.0]])[:, 0]):
            assert call(into) is None
            assert into.tolist() == [1.0, 2.0]
    work = dist.all_reduce(x, async_op=True)
    assert isinstance(work, dist.Work)
    assert work.is_completed()
    assert work.wait()
    group = dist.new_group([0])
    assert isinstance(group, dist.ProcessGroup)
    assert (group.rank(), group.size(), dist.get_process_group_ranks(group)) == (0, 1, [0])
    dist.all_reduce(x, group=group)
    with pytest.raises(SettingError, match="another process"):
        dist.send(x, 0)
    with pytest.raises(SettingError, match=r"expected one of the ranks .*\[0\], got 1"):
        dist.recv(x, 1)


def test_objects_of_one_process():
    """Object lists hold this process's objects, copied by pickling."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dist.all_gather_object(into := [None], {"a": [1]})
        assert into == [{"a": [1]}]
        dist.gather_object(2, into)
        assert into == [2]
        dist.broadcast_object_list(into, 0)
        assert into == [2]
        dist.scatter_object_list(got := [None], [3])
        assert got == [3]


def test_the_other_kind_of_device():
    """A group for one kind of device refuses the other, with one process as with several."""
    other = "nccl" if DEVICE == "cpu" else "mpi"
    dist.init_process_group(other)
    assert dist.get_backend() == other
    with pytest.raises(DeviceError, match=rf"all_reduce: .*got one on {DEVICE}: .*'{BACKEND}'"):
        dist.all_reduce(given([1.0]))
    dist.all_reduce(x := given([1.0]), group=dist.new_group(backend=BACKEND))
    assert x.item() == 1.0


def test_a_group_that_was_left():
    """There is one default group at a time, and what was destroyed refuses."""
    dist.init_process_group()
    assert dist.get_backend() == "cpu:mpi,cuda:nccl"
    with pytest.raises(SettingError, match="twice"):
        dist.init_process_group()
    part = dist.new_group()
    dist.destroy_process_group(part)
    with pytest.raises(DistributedError, match="left it by destroy_process_group"):
        dist.barrier(part)
    dist.barrier()
    dist.destroy_process_group()
    with pytest.raises(SettingError, match="no process group was initialized"):
        dist.destroy_process_group()


def test_refused_alone_too():
    """What is wrong with several processes is wrong with one."""
    x = given([1.0]).requires_grad_()
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        dist.all_reduce(x.view(1))
    dist.all_reduce(y := x * 2)
    with pytest.raises(NotDifferentiableError, match="all_reduce has written into a tensor on the graph"):
        y.backward()
    with pytest.raises(TypeError, match="Tensor"):
        dist.all_reduce(np.ones(1))
    with pytest.raises(ValueError, match="tensor_list: expected 1 tensors, one for each process, got 2"):
        dist.all_gather([x, x], x)


def test_what_scripts_ask_before_they_begin():
    """The backend of a kind of device, and the mark of a main function, which changes nothing."""
    assert [dist.get_default_backend_for_device(each) for each in ("cpu", "cuda")] == ["mpi", "nccl"]
    assert dist.elastic.multiprocessing.errors.record(given) is given


def test_gloo_is_said_to_be_mpi_once(monkeypatch):
    """The backend that most scripts for CPUs name is MPI's here."""
    world._say_gloo.cache_clear()
    with pytest.warns(UserWarning, match="'gloo' is 'mpi' in lucid"):
        dist.init_process_group("gloo")
    assert dist.get_backend() == dist.get_backend(dist.new_group()) == "gloo"  # as scripts ask
    dist.destroy_process_group()
    dist.init_process_group("gloo")
