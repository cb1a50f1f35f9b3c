"""Datasets, the order of their samples, batches, and workers that read ahead; see `docs/users/data.md`."""

from __future__ import annotations

from lucid.errors import WorkerError
from lucid.public import publish as _publish
from lucid.settings.documents import document as _document
from lucid.utils.data.collate import default_collate, default_convert
from lucid.utils.data.dataloader import DataLoader
from lucid.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from lucid.utils.data.distributed import DistributedSampler
from lucid.utils.data.prefetch import prefetch
from lucid.utils.data.randomness import sample_seed
from lucid.utils.data.reading import WorkerInfo, get_worker_info
from lucid.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from lucid.utils.data.stats import LoaderStats

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler", "IterableDataset",
    "LoaderStats", "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset", "SubsetRandomSampler",
    "TensorDataset", "WeightedRandomSampler", "WorkerError", "WorkerInfo", "default_collate", "default_convert",
    "get_worker_info", "prefetch", "random_split", "sample_seed",
]  # fmt: skip

_publish(globals())
_document(__all__, globals())
