"""What launchers, the environment and arguments say of a process: together, in part, or against each other."""

from __future__ import annotations

import os
import sys

import pytest

import lucid
from lucid import distributed as dist
from lucid.collectives.job.launch import Place, place
from lucid.errors import SettingError
from tests.collectives.jobs import LAUNCHERS, NAMES, job, run


@pytest.fixture(autouse=True)
def started_by_nobody(monkeypatch):
    """Let no variable of a launcher that has started the tests be seen."""
    for name in (*NAMES, *(each for each in os.environ if each.startswith(LAUNCHERS))):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("variables", "arguments", "mpi", "expected"),
    [
        ({}, (-1, -1), None, (0, 1)),
        ({}, (1, 2), None, (1, 2)),
        ({"RANK": "1", "WORLD_SIZE": "2"}, (-1, -1), None, (1, 2)),
        ({"RANK": "1", "WORLD_SIZE": "2"}, (1, 2), (1, 2), (1, 2)),
        ({}, (-1, -1), (3, 4), (3, 4)),
        ({"RANK": "1", "WORLD_SIZE": "2"}, (-1, 2), None, (1, 2)),
        ({}, (3, -1), (3, 4), (3, 4)),
        ({"RANK": "0"}, (-1, -1), None, "RANK without WORLD_SIZE"),
        ({"WORLD_SIZE": "2"}, (-1, -1), None, "WORLD_SIZE without RANK"),
        ({"RANK": "a", "WORLD_SIZE": "2"}, (-1, -1), None, r"RANK.*expected an int, got 'a'"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, (-1, -1), None, "expected a rank of 0 .. size - 1, got 2 of 2"),
        ({}, (0, -1), None, "rank and world_size together"),
        ({}, (-1, 2), None, "rank and world_size together"),
        ({"RANK": "0", "WORLD_SIZE": "2"}, (1, 2), None, "contradict.*arguments.*1 of 2; RANK and WORLD_SIZE: rank 0"),
        ({"RANK": "0", "WORLD_SIZE": "2"}, (-1, -1), (0, 1), "contradict.*MPI: rank 0 of 1.*mpiexec -n N"),
        ({}, (-1, 2), (0, 4), "contradict.*arguments.*0 of 2; MPI: rank 0 of 4"),
        ({}, (0, 2), (0, 4), "contradict.*MPI: rank 0 of 4"),
    ],
)
def test_who_says_which_process_this_is(variables, arguments, mpi, expected, monkeypatch):
    """All that is said has to agree; what is missing or contradicts is named."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    told = mpi and Place(*mpi, "MPI")
    if isinstance(expected, str):
        with pytest.raises(SettingError, match=expected):
            place(*arguments, told)
    else:
        assert place(*arguments, told)[:2] == expected


def test_one_of_several_that_have_not_come_together(monkeypatch):
    """Where a launcher has started several, nothing is computed by one alone in silence."""
    monkeypatch.setenv("WORLD_SIZE", "4")
    for call in (dist.get_rank, dist.get_world_size, dist.barrier, lambda: dist.all_reduce(lucid.ones(1))):
        with pytest.raises(SettingError, match=r"WORLD_SIZE=4.*call lucid.distributed.init_process_group\(\) first"):
            call()
    monkeypatch.setenv("WORLD_SIZE", "many")
    with pytest.raises(SettingError, match=r"WORLD_SIZE.*expected an int, got 'many'"):
        dist.get_rank()
    monkeypatch.delenv("WORLD_SIZE")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    with pytest.raises(SettingError, match="OMPI_COMM_WORLD_SIZE=2"):
        dist.get_rank()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"backend": "mpx"}, "backend: expected 'mpi'.*got 'mpx'"),
        ({"backend": "cpu:nccl"}, "backend"),
        ({"backend": ""}, "backend"),
        ({"backend": 3}, "backend"),
        ({"init_method": "file:///tmp/x"}, "init_method: expected 'env://' or 'tcp://address:port'"),
        ({"init_method": "tcp://127.0.0.1"}, "init_method"),
        ({"store": object()}, "store"),
        ({"timeout": 0}, "timeout: expected more than 0 seconds"),
        ({"timeout": "1"}, "timeout"),
        ({"rank": 0}, "rank and world_size together"),
        ({"backend": "nccl", "rank": "0"}, "rank"),
    ],
)
def test_arguments_that_are_refused(arguments, words):
    """Each is named with what it may be, before anything has begun."""
    with pytest.raises((SettingError, TypeError), match=words):
        dist.init_process_group(**arguments)
    assert not dist.is_initialized()


def test_an_address_goes_to_the_environment(monkeypatch):
    """PyTorch's form of rank 0's address is where NCCL looks for it."""
    monkeypatch.setenv("MASTER_ADDR", "elsewhere")
    monkeypatch.setenv("MASTER_PORT", "1")
    dist.init_process_group(init_method="tcp://10.0.0.1:2345", rank=0, world_size=1)
    dist.destroy_process_group()
    assert (os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"]) == ("10.0.0.1", "2345")


def test_the_number_on_this_machine(monkeypatch):
    """It is LOCAL_RANK, or what is given for where that is not set."""
    assert dist.get_node_local_rank(fallback_rank=5) == 5
    with pytest.raises(SettingError, match="LOCAL_RANK is not in the environment"):
        dist.get_node_local_rank()
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert dist.get_node_local_rank() == 3


SAYS = """
import os, sys
from lucid import distributed as dist
dist.init_process_group()
names = "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"
names += "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"
with open(f"said{dist.get_rank()}", "w") as said:
    print(dist.get_rank(), dist.get_world_size(), *(os.environ[name] for name in names), *sys.argv[1:], file=said)
dist.barrier()
sys.exit(int(sys.argv[2]))
"""


def test_the_command_that_starts_processes(tmp_path, monkeypatch):
    """Each process has its numbers, as many threads as the user says, and what is given; the status is the script's."""
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    (tmp_path / "says.py").write_text(SAYS)
    command = [sys.executable, "-m", "lucid.distributed.run", "--standalone", "--nnodes=1", "--nproc-per-node", "2"]
    command += ["--master_port", "12345", "--rdzv-backend=c10d", "--rdzv_endpoint", "localhost:0", "--node_rank=0"]
    ended = run([*command, "says.py", "--lr", "3"], tmp_path, OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="3")
    assert ended.status == 3, ended
    for rank in range(2):
        said = (tmp_path / f"said{rank}").read_text()
        assert said == f"{rank} 2 {rank} 2 {rank} 2 127.0.0.1 12345 2 3 2 --lr 3\n", ended


def test_wrong_calls_of_the_command(tmp_path):
    """The number of processes is required, and at least one; the status is that of a wrong call."""
    for arguments, words in (
        (["x.py"], "--nproc-per-node"),
        (["--nproc-per-node", "0", "x.py"], "at least 1, got 0"),
        (["--nproc-per-node", "2", "--max-restarts", "3", "x.py"], "--max-restarts"),
        (["--nproc-per-node", "2", "--nnodes", "2", "x.py"], "--nnodes: expected 1, as the processes are of this"),
    ):
        ended = run([sys.executable, "-m", "lucid.distributed.run", *arguments], tmp_path)
        assert (ended.status, words in ended.err) == (2, True), ended


def test_several_processes_without_mpi(tmp_path):
    """Who is started by another launcher than MPI's, as by torchrun, is told by whom CPU processes are started."""
    code = "from lucid import distributed as dist; dist.init_process_group('gloo')"
    ended = run([sys.executable, "-c", code], tmp_path, RANK="0", WORLD_SIZE="2")
    assert ended.status != 0
    assert "mpiexec -n N python script.py" in ended.err, ended


SPAWNS = """
import os
import lucid
from lucid import distributed as dist, multiprocessing
def worker(number, size, base):
    dist.init_process_group("mpi", rank=number, world_size=size)
    dist.all_reduce(x := lucid.tensor(base + number))
    assert x.item() == 21, x
    dist.destroy_process_group()
def lost():
    try:
        dist.init_process_group("mpi")
    except lucid.errors.SettingError as error:
        assert "started by multiprocessing inside" in str(error), error
        os._exit(7)
if __name__ == "__main__":
    assert multiprocessing.spawn(worker, args=(2, 10), nprocs=2) is None
    child = multiprocessing.Process(target=lost)
    child.start()
    child.join()
    print("child", child.exitcode, flush=True)
"""


def test_processes_of_a_launcher_are_those_of_spawn(tmp_path):
    """A script that starts its processes by itself runs in those of a launcher; what these start is told why not."""
    (tmp_path / "spawns.py").write_text(SPAWNS)
    for ended in (
        job(2, ["spawns.py"], tmp_path),
        run([sys.executable, "-m", "lucid.distributed.run", "--nproc-per-node=2", "spawns.py"], tmp_path),
    ):
        assert (ended.status, ended.out.count("child 7")) == (0, 2), ended


def test_a_launcher_that_is_not_known(tmp_path):
    """MPI itself is asked where a number of processes is given, as an argument or in the environment."""
    ended = job(2, ["-c", UNKNOWN], tmp_path)
    assert (ended.status, ended.out.count("together")) == (0, 2), ended


UNKNOWN = """
import os
from lucid import distributed as dist
from lucid.collectives.job import launch
rank = launch.rank_under_mpi()
launch._MPI = ()
dist.init_process_group("mpi", rank=int(rank), world_size=2)
dist.barrier()
dist.destroy_process_group()
os.environ.update(RANK=rank, WORLD_SIZE="2")
dist.init_process_group("gloo")
dist.barrier()
print("together", flush=True)
"""


def test_a_device_that_mpi_does_not_take(tmp_path):
    """A CUDA tensor is refused by a group for CPU tensors, in words; a capture is not interrupted by the host."""
    ended = job(2, ["-c", ON_A_DEVICE], tmp_path, LUCID_CUDA_SIMULATOR="1")
    assert (ended.status, ended.out.count("refused")) == (0, 2), ended


ON_A_DEVICE = """
import lucid
from lucid import distributed as dist
dist.init_process_group("mpi", timeout=60)
try:
    dist.all_reduce(lucid.ones(2, device="cuda"))
except lucid.errors.DeviceError as error:
    assert "all_reduce: this group computes with cpu tensors, got one on cuda" in str(error), error
graph = lucid.cuda.CUDAGraph()
try:
    with lucid.cuda.graph(graph):
        dist.all_reduce(lucid.ones(2))
except lucid.errors.CaptureError as error:
    assert "all_reduce" in str(error), error
    print("refused", flush=True)
dist.barrier()
"""
