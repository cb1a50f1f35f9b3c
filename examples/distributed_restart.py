"""A worker is killed in the middle of training, and Ray Train goes on from a checkpoint: the weights are the same bits.

pip install 'ray[train]', then: python examples/distributed_restart.py [--workers 2 --gpu]
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import tempfile
import time
from pathlib import Path

import numpy as np

import lucid
from lucid import distributed as dist
from lucid import nn
from lucid.distributed.ray import LucidTrainer

STEPS, EVERY, DEADLY = 40, 10, 23


def train(config: dict[str, object]) -> None:
    """Train as one of the workers; in the run that is to be hit, the last one kills itself once."""
    import ray.train  # noqa: PLC0415 - only workers need it

    dist.init_process_group()
    rank, size = dist.get_rank(), dist.get_world_size()
    device = f"cuda:{os.environ['LOCAL_RANK']}" if config["gpu"] else "cpu"
    lucid.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4)).to(device)
    optimizer = lucid.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    begin = 0
    checkpoint = ray.train.get_checkpoint()
    if checkpoint is not None:
        with checkpoint.as_directory() as folder:
            state = lucid.load(Path(folder) / "state.lucid")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        begin = state["step"]
    together = nn.parallel.DistributedDataParallel(model)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((STEPS, 32, 32)).astype(np.float32)
    y = rng.integers(0, 4, (STEPS, 32))
    for step in range(begin, STEPS):
        if config["killed"] and step == DEADLY and rank == size - 1 and checkpoint is None:
            os.kill(os.getpid(), signal.SIGKILL)
        own = [lucid.tensor(part[step, rank::size], device=device) for part in (x, y)]
        optimizer.zero_grad()
        nn.functional.cross_entropy(together(own[0]), own[1]).backward()
        optimizer.step()
        if (step + 1) % EVERY:
            continue
        weights = b"".join(parameter.cpu().detach().numpy().tobytes() for parameter in model.parameters())
        told = {"weights": hashlib.sha256(weights).hexdigest()[:16], "begun at": begin}
        with tempfile.TemporaryDirectory() as folder:
            saved = None
            if rank == 0:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1}
                lucid.save(state, Path(folder) / "state.lucid")
                saved = ray.train.Checkpoint.from_directory(folder)
            ray.train.report(told, checkpoint=saved)
    dist.destroy_process_group()


def main() -> None:
    """Train without and with a worker that dies, and compare the weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=1, help="several need a GPU each")
    parser.add_argument("--gpu", action="store_true")
    given = parser.parse_args()
    import ray.train  # noqa: PLC0415 - after the arguments, since it takes seconds

    ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    weights = {}
    with tempfile.TemporaryDirectory() as storage:
        for killed in (False, True):
            began = time.perf_counter()
            result = LucidTrainer(
                train,
                train_loop_config={"killed": killed, "gpu": given.gpu},
                scaling_config=ray.train.ScalingConfig(num_workers=given.workers, use_gpu=given.gpu),
                run_config=ray.train.RunConfig(
                    name=f"killed {killed}", storage_path=storage,
                    failure_config=ray.train.FailureConfig(max_failures=1),
                ),
            ).fit()  # fmt: skip
            weights[killed] = result.metrics["weights"]
            print(f"killed: {killed}; {result.metrics}; {time.perf_counter() - began:.1f} s")
    ray.shutdown()
    assert weights[False] == weights[True], weights
    print("The weights are the same bits.")


if __name__ == "__main__":
    main()
