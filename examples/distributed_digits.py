"""Train a network on handwritten digits on 1, 2 or 4 processes: the weights are the same to the last bit.

    python examples/distributed_digits.py
    python -m lucid.distributed.run --nproc-per-node 2 examples/distributed_digits.py
    mpiexec -n 4 python examples/distributed_digits.py
    mpiexec -n 4 python examples/distributed_digits.py --control

Each batch is cut into four shards, however many processes there are, and sums over shards are made in the order of a
tree: the SHA-256 of the weights does not tell how many processes have trained them. With ``--control`` a process takes
its part of a batch at once, and MPI adds as it likes: each number of processes has weights of its own.
"""

from __future__ import annotations

import argparse
import hashlib
from typing import TYPE_CHECKING

from train_digits import DigitNet, digits

import lucid
from lucid import distributed as dist
from lucid import nn
from lucid.nn import functional
from lucid.nn.parallel import DistributedDataParallel
from lucid.utils.data import DataLoader, DistributedSampler, TensorDataset

if TYPE_CHECKING:
    from lucid import Tensor

SHARDS = 4
BATCH = 64
LEARNING_RATE = 3e-3


def train(model: DistributedDataParallel, pictures: Tensor, labels: Tensor, epochs: int) -> None:
    """Train on this process's part of each batch."""
    data = TensorDataset(pictures, labels)
    sampler = DistributedSampler(data, dist.get_world_size(), dist.get_rank(), drop_last=True)
    loader = DataLoader(data, batch_size=BATCH // dist.get_world_size(), sampler=sampler, drop_last=True)
    optimizer = lucid.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    model.train()
    for _ in range(epochs):
        for batch in loader:
            optimizer.zero_grad()
            for x, y in [batch] if model.shards is None else model.split(*batch):
                functional.cross_entropy(model(x), y).backward()
            optimizer.step()


@lucid.no_grad()
def accuracy(model: nn.Module, pictures: Tensor, labels: Tensor) -> float:
    """Return the share of digits that are told right."""
    model.eval()
    return (model(pictures).argmax(1) == labels).sum().item() / len(labels)


def digest(model: nn.Module) -> str:
    """Return the SHA-256 of all weights."""
    return hashlib.sha256(b"".join(value.numpy().tobytes() for value in model.state_dict().values())).hexdigest()


def main() -> None:
    """Train, and let the first process print how well it went and the weights' digest."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--control", action="store_true", help="sum in whatever order")
    arguments = parser.parse_args()
    dist.init_process_group()
    lucid.manual_seed(0)
    pictures, labels, held_out, held_out_labels = digits("cpu")
    model = DistributedDataParallel(DigitNet(), shards=None if arguments.control else SHARDS)
    train(model, pictures, labels, arguments.epochs)
    if dist.get_rank() == 0:
        share = accuracy(model.module, held_out, held_out_labels)
        print(f"processes {dist.get_world_size()}  accuracy {share:.3f}  weights {digest(model.module)}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
