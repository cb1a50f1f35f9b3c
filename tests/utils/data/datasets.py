"""Datasets that worker processes import: nothing here takes long to import."""

from __future__ import annotations

import random
import time

import numpy as np

import lucid
from lucid.utils.data import Dataset, IterableDataset, get_worker_info, sample_seed


class OfSize(Dataset):
    """Has `size` samples."""

    def __len__(self):
        return self.size


class Samples(OfSize):
    """Sample i is what a function gives for i."""

    def __init__(self, size, sample):
        self.size = size
        self.sample = sample

    def __getitem__(self, index):
        return self.sample(index)


class Numbers(OfSize):
    """Sample i is i, and a random number of its own."""

    def __init__(self, size=77):
        self.size = size

    def __getitem__(self, index):
        return index, np.random.default_rng(sample_seed()).random(), float(lucid.rand(1, device="cpu"))


class Augmented(Numbers):
    """Sample i is i, and what the generators of Python and NumPy give."""

    def __getitem__(self, index):
        return index, random.random(), np.random.random()  # noqa: NPY002


class Seeds(OfSize):
    """The seed of each sample."""

    size = 4

    def __getitem__(self, index):
        return sample_seed()


class Stream(IterableDataset):
    """The numbers up to `size`, of which each worker has its own."""

    def __init__(self, size=77):
        self.size = size

    def __iter__(self):
        info = get_worker_info()
        for number in range(self.size) if info is None else range(info.id, self.size, info.num_workers):
            yield number, np.random.default_rng(sample_seed()).random(), 0.0


class Resumable(Stream):
    """A stream that says where it is, and goes on there."""

    def __init__(self, size=77):
        super().__init__(size)
        self.position = 0

    def __iter__(self):
        info = get_worker_info()
        step = 1 if info is None else info.num_workers
        first = 0 if info is None else info.id
        while first + self.position * step < self.size:
            self.position += 1
            yield first + (self.position - 1) * step, np.random.default_rng(sample_seed()).random(), 0.0
        self.position = 0

    def state_dict(self):
        return {"position": self.position}

    def load_state_dict(self, state):
        self.position = state["position"]


def broken_start(number):
    raise ValueError(f"worker {number} cannot start")


def as_they_are(samples):
    return samples


class Failing(OfSize):
    """Does something at one index."""

    def __init__(self, act, at=37, size=200):
        self.act = act
        self.at = at
        self.size = size

    def __getitem__(self, index):
        if index == self.at:
            self.act()
        return np.full(3, index, np.float32)


class Slow(OfSize):
    """Takes its time."""

    def __init__(self, seconds, size=200):
        self.seconds = seconds
        self.size = size

    def __getitem__(self, index):
        time.sleep(self.seconds)
        return index
