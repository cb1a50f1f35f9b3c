"""Scripts in the manner of PyTorch's documentation of DataLoader print the same when `torch` is `lucid` in them."""

from __future__ import annotations

import pytest

from tests.docs.pages import ROOT, printed_by_script

pytestmark = pytest.mark.cpu("data are read on the host")

SCRIPTS = {
    "samples by index, and streams that divide themselves among workers": """
import math

import torch
from torch.utils.data import ChainDataset, ConcatDataset, DataLoader, Dataset, IterableDataset, get_worker_info


class Squares(Dataset):
    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return {"x": torch.tensor([float(index), float(index**2)]), "index": index, "name": f"sample {index}"}


class Numbers(IterableDataset):
    def __init__(self, start, end):
        super().__init__()
        self.start, self.end = start, end

    def __iter__(self):
        info = get_worker_info()
        if info is None:
            return iter(range(self.start, self.end))
        share = math.ceil((self.end - self.start) / info.num_workers)
        start = self.start + info.id * share
        return iter(range(start, min(start + share, self.end)))


class Undivided(IterableDataset):
    def __init__(self, start, end):
        super().__init__()
        self.start, self.end = start, end

    def __iter__(self):
        return iter(range(self.start, self.end))


def divide(worker):
    info = get_worker_info()
    whole = info.dataset
    share = math.ceil((whole.end - whole.start) / info.num_workers)
    whole.start = whole.start + worker * share
    whole.end = min(whole.start + share, whole.end)


if __name__ == "__main__":
    for workers in (0, 2):
        for batch in DataLoader(Squares(5), batch_size=2, num_workers=workers):
            print(batch["x"].tolist(), batch["index"].tolist(), batch["name"])
        print([len(DataLoader(Squares(5), batch_size=2, drop_last=last)) for last in (False, True)])
        print([batch.tolist() for batch in DataLoader(Numbers(3, 10), batch_size=2, num_workers=workers)])
        print(list(DataLoader(Numbers(3, 7), batch_size=None, num_workers=workers)))
        print([batch.tolist() for batch in DataLoader(Undivided(3, 5), num_workers=workers)])
    print([batch.tolist() for batch in DataLoader(Undivided(3, 7), num_workers=2, worker_init_fn=divide)])
    print([batch.tolist() for batch in DataLoader(ChainDataset([Numbers(0, 2), Numbers(5, 7)]), batch_size=3)])
    print([(Squares(2) + Squares(3))[index]["index"] for index in range(5)], type(Squares(1) + Squares(1)).__name__)
    print(ConcatDataset([Squares(2), Squares(3)]).cumulative_sizes)
""",
    "batches of a class of one's own": """
import torch
from torch.utils.data import DataLoader, TensorDataset


class Pair:
    def __init__(self, samples):
        inputs, targets = zip(*samples)
        self.inputs, self.targets = torch.stack(inputs, 0), torch.stack(targets, 0)

    def pin_memory(self):
        self.inputs, self.targets = self.inputs.pin_memory(), self.targets.pin_memory()
        return self


def padded(samples):
    return torch.nn.utils.rnn.pad_sequence([torch.tensor(sample) for sample in samples], batch_first=True)


if __name__ == "__main__":
    inputs = torch.arange(10 * 5, dtype=torch.float32).view(10, 5)
    dataset = TensorDataset(inputs, inputs + 1)
    for workers in (0, 2):
        for number, pair in enumerate(DataLoader(dataset, batch_size=4, collate_fn=Pair, num_workers=workers)):
            print(number, type(pair).__name__, pair.inputs.sum().item(), pair.targets.tolist())
        rows = [[1, 2], [3], [4, 5, 6]]
        print([batch.tolist() for batch in DataLoader(rows, batch_size=2, collate_fn=padded, num_workers=workers)])
        print(list(DataLoader([1, 2, 3], batch_size=2, collate_fn=list, num_workers=workers)))
""",
    "samplers": """
import torch
from torch.utils.data import (
    BatchSampler, DataLoader, DistributedSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler,
    WeightedRandomSampler, random_split,
)


class ShortestFirst(Sampler[int]):
    def __init__(self, texts):
        self.texts = texts

    def __len__(self):
        return len(self.texts)

    def __iter__(self):
        sizes = torch.tensor([len(text) for text in self.texts])
        yield from torch.argsort(sizes).tolist()


class ShortestFirstBatches(Sampler[list[int]]):
    def __init__(self, texts, batch_size):
        self.texts, self.batch_size = texts, batch_size

    def __len__(self):
        return (len(self.texts) + self.batch_size - 1) // self.batch_size

    def __iter__(self):
        sizes = torch.tensor([len(text) for text in self.texts])
        for batch in torch.chunk(torch.argsort(sizes), len(self)):
            yield batch.tolist()


if __name__ == "__main__":
    texts = ["three", "a", "of", "four", "hello!"]
    for workers in (0, 2):
        print(list(DataLoader(texts, batch_size=2, sampler=ShortestFirst(texts), num_workers=workers)))
        loader = DataLoader(texts, batch_sampler=ShortestFirstBatches(texts, 2), num_workers=workers)
        print(len(loader), list(loader))
    print([list(BatchSampler(SequentialSampler(range(10)), batch_size=3, drop_last=last)) for last in (False, True)])
    ranks = [DistributedSampler(range(10), num_replicas=4, rank=rank, shuffle=False) for rank in range(4)]
    print([(len(rank), list(rank)) for rank in ranks])
    generator = torch.Generator().manual_seed(42)
    print(sorted(RandomSampler(range(5), generator=generator)), sorted(SubsetRandomSampler([7, 3])))
    print(len(list(WeightedRandomSampler([0.1, 0.9, 3.0], 5, replacement=True))))
    print(sorted(WeightedRandomSampler([0.9, 0.4, 0.05], 3, replacement=False)))
    parts = random_split(range(30), [0.3, 0.3, 0.4], generator=generator)
    print([len(part) for part in parts], sorted(index for part in parts for index in part.indices))
    rows = torch.arange(12).view(6, 2)
    whole = DataLoader(rows, batch_size=None, sampler=BatchSampler(SequentialSampler(rows), 4, drop_last=False))
    print([batch.tolist() for batch in whole])
    generator.manual_seed(1)
    loader = DataLoader(range(50), batch_size=50, shuffle=True, generator=generator)
    first, second = next(iter(loader)).tolist(), next(iter(loader)).tolist()
    generator.manual_seed(1)
    print(first == second, first == next(iter(loader)).tolist(), sorted(first) == list(range(50)))
""",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_script(name, tmp_path, monkeypatch):
    """A changed import is all that a script needs."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    source = SCRIPTS[name]
    assert printed_by_script(source.replace("torch", "lucid"), tmp_path) == printed_by_script(source, tmp_path)
