"""Ray Train as launcher: it starts workers, notices dead ones, and starts all again from the last checkpoint."""

from __future__ import annotations

import dataclasses
import os
import socket
from importlib import import_module
from typing import TYPE_CHECKING, Any

from lucid.errors import DistributedError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LucidTrainer"]


def LucidTrainer(train_loop_per_worker: Callable[..., Any], **settings: Any) -> Any:
    """Return a trainer of Ray Train's; its workers find RANK, WORLD_SIZE and so on in their environment.

    The loop calls `init_process_group`, saves checkpoints by ``ray.train.report`` in the first process, and begins with
    ``ray.train.get_checkpoint()``. Several workers have CUDA devices: Ray starts no MPI, through which CPU tensors go.

    Parameters
    ----------
    train_loop_per_worker : callable
        What each worker calls.
    **settings
        Those of Ray's ``DataParallelTrainer``: ``train_loop_config=``, ``scaling_config=``, ``run_config=``, ...

    Returns
    -------
    ray.train.v2.api.data_parallel_trainer.DataParallelTrainer
        Its ``fit()`` runs all.

    Raises
    ------
    DistributedError
        If Ray Train is not installed.

    Notes
    -----
    After a worker was killed, Ray may go on from the last checkpoint but one, where the newest report had not been
    stored yet. The weights of the end are the same.
    """
    try:
        backend, trainers = import_module("ray.train.backend"), import_module("ray.train.v2.api.data_parallel_trainer")
    except ImportError as error:
        raise DistributedError(f"LucidTrainer needs Ray Train ({error}): pip install 'ray[train]'") from error

    class LucidBackend(backend.Backend):
        share_cuda_visible_devices = True

        def on_start(self, worker_group: Any, backend_config: object) -> None:
            worker_group.execute(_tell, *worker_group.execute_single(0, _address))

    @dataclasses.dataclass
    class LucidConfig(backend.BackendConfig):
        @property
        def backend_cls(self) -> type:
            return LucidBackend

    return trainers.DataParallelTrainer(train_loop_per_worker, backend_config=LucidConfig(), **settings)


def _address() -> tuple[str, int]:
    """Return the address of the first worker, and a free port there."""
    with socket.socket() as free:
        free.bind(("", 0))
        return import_module("ray.util").get_node_ip_address(), free.getsockname()[1]


def _tell(address: str, port: int) -> None:
    """Set rank and size in the environment of a worker, as other launchers do."""
    context = import_module("ray.train").get_context()
    numbers = {
        "RANK": context.get_world_rank(),
        "WORLD_SIZE": context.get_world_size(),
        "LOCAL_RANK": context.get_local_rank(),
        "LOCAL_WORLD_SIZE": context.get_local_world_size(),
        "MASTER_PORT": port,
    }
    os.environ.update({"MASTER_ADDR": address, **{name: str(number) for name, number in numbers.items()}})
