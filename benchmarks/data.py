"""`python -m benchmarks.data`: loaders of both libraries, a batch at a time, as a table and as JSON.

A row is the time from one batch to the next of a loop that does nothing else. Workers stay for the next epoch, but
where the time to the first batch is the row. With `--device cuda` the rows are steps of training: on batches that a
loader puts on the device, and on one that lies there.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from functools import cache
from typing import TYPE_CHECKING, Any

from benchmarks import command
from benchmarks.measure import Peer, Row, looped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.measure import Sampler

ROWS_OF_DATA, WIDTH, BATCH = 6400, 784, 64
IMAGES, SIDE = 512, 64
LOOP = 100  # batches that are timed together
THREADS = 2


class Rows:
    """Rows of an array with their numbers, one by one."""

    def __init__(self) -> None:
        import numpy as np

        self.rows = np.random.default_rng(0).standard_normal((ROWS_OF_DATA, WIDTH), np.float32)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self.rows[index], index % 10


class Pictures:
    """Small JPEG pictures, decoded one by one."""

    def __init__(self) -> None:
        import numpy as np
        from PIL import Image

        random = np.random.default_rng(0)
        self.files = []
        for _ in range(IMAGES):
            file = io.BytesIO()
            small = Image.fromarray(random.integers(0, 256, (8, 8, 3), np.uint8))
            small.resize((SIDE, SIDE)).save(file, "JPEG")
            self.files.append(file.getvalue())

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        import numpy as np
        from PIL import Image

        return np.array(Image.open(io.BytesIO(self.files[index]))), index % 10


def tensors(peer: Peer) -> Any:
    rows = Rows().rows
    return data_of(peer).TensorDataset(peer.tensor(rows), peer.tensor([n % 10 for n in range(len(rows))]))


def data_of(peer: Peer) -> Any:
    return peer.lib.utils.data


def endless(loader: Any) -> Iterator[Any]:
    while True:
        yield from loader


def steady(name: str, dataset: Callable[..., Any], workers: int, budget: float | None = 1.0, **only_lucid: Any) -> Row:
    """Return the row of a batch in the middle of an epoch."""

    def build(peer: Peer) -> Sampler:
        settings: dict[str, Any] = {"num_workers": workers, "persistent_workers": bool(workers)}
        if peer.name == "lucid":
            settings |= only_lucid
        made = dataset(peer) if dataset is tensors else dataset()
        batches = endless(data_of(peer).DataLoader(made, batch_size=BATCH, shuffle=True, **settings))

        def sample() -> float:
            # many, and the first ones untimed: workers have read ahead meanwhile
            for _ in range(10):
                next(batches)
            start = time.perf_counter()
            for _ in range(LOOP):
                next(batches)
            return (time.perf_counter() - start) / LOOP * 1e6

        return sample

    return Row(name, budget, build, most_rounds=20)


def again(name: str, **methods: str) -> Row:
    """Return the row of the first batch of a further loader of the program, workers started by each peer's method."""

    def build(peer: Peer) -> Sampler:
        dataset = tensors(Peer(peer.name))
        method = methods[peer.name]

        def sample() -> float:
            start = time.perf_counter()
            batches = iter(
                data_of(peer).DataLoader(dataset, batch_size=BATCH, num_workers=2, multiprocessing_context=method)
            )
            next(batches)
            taken = time.perf_counter() - start
            del batches
            return taken * 1e3

        sample()
        return sample

    return Row(name, 1.0, build, unit="ms", most_rounds=10)


def first(name: str, **methods: str) -> Row:
    """Return the row of the first batch of the first loader of a program."""

    def build(peer: Peer) -> Sampler:
        arguments = [sys.executable, "-m", "benchmarks.data", "--first", peer.name, methods[peer.name]]

        def sample() -> float:
            done = subprocess.run(arguments, capture_output=True, text=True, check=True)
            return float(done.stdout)

        sample()
        return sample

    return Row(name, 1.0, build, unit="ms", most_rounds=5)


def first_batch(name: str, method: str) -> float:
    """Return the milliseconds from the making of a loader, after the library was imported, to its first batch."""
    peer = Peer(name)
    dataset = tensors(peer)
    start = time.perf_counter()
    next(iter(data_of(peer).DataLoader(dataset, batch_size=BATCH, num_workers=2, multiprocessing_context=method)))
    return (time.perf_counter() - start) * 1e3


@cache
def pictures() -> Pictures:
    return Pictures()


ROWS = [
    steady("TensorDataset, rows of 784, batch of 64", tensors, 0),
    steady("TensorDataset, rows of 784, batch of 64, 2 workers", tensors, 2),
    steady("rows of 784 one by one, batch of 64", Rows, 0),
    steady("rows of 784 one by one, batch of 64, 2 workers", Rows, 2),
    steady("JPEG 64 x 64, batch of 64, 2 workers", pictures, 2),
    steady("JPEG 64 x 64, batch of 64, 2 threads beside PyTorch's processes", pictures, 2, None, worker="thread"),
    again("first batch of a further loader, 2 workers, forked", lucid="fork", torch="fork"),
    again("first batch of a further loader, 2 workers, by a server", lucid="forkserver", torch="forkserver"),
    again("first batch of a further loader, 2 workers, default", lucid="forkserver", torch="fork"),
    first("first batch of a program, 2 workers, forked", lucid="fork", torch="fork"),
    first("first batch of a program, 2 workers, by a server", lucid="forkserver", torch="forkserver"),
    first("first batch of a program, 2 workers, default", lucid="forkserver", torch="fork"),
]


# ---- on a device ----


def digits(peer: Peer) -> tuple[Any, Any]:
    nn = peer.lib.nn
    model = nn.Sequential(nn.Linear(WIDTH, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
    return model.to(peer.device), tensors(Peer(peer.name))


def large_pictures(peer: Peer) -> tuple[Any, Any]:
    import numpy as np

    nn = peer.lib.nn
    model = nn.Sequential(
        nn.Conv2d(3, 32, 7, stride=4), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2), nn.ReLU(), nn.MaxPool2d(4),
        nn.Flatten(), nn.Linear(64 * 6 * 6, 10),
    )  # fmt: skip
    images = np.random.default_rng(0).standard_normal((256, 3, 224, 224), np.float32)
    host = Peer(peer.name)
    return model.to(peer.device), data_of(peer).TensorDataset(
        host.tensor(images), host.tensor([n % 10 for n in range(256)])
    )


def fed(name: str, parts: Callable[[Peer], tuple[Any, Any]]) -> Row:
    """Return the row of a step: of the first peer on batches of a loader, of the second on one that lies there."""

    def build(peer: Peer) -> Sampler:
        lucid = Peer("lucid", peer.device)
        model, dataset = parts(lucid)
        optimizer = lucid.lib.optim.SGD(model.parameters(), lr=1e-3)
        loader = data_of(lucid).DataLoader(
            dataset, BATCH, shuffle=True, num_workers=2, persistent_workers=True, drop_last=True,
            pin_memory=peer.device != "cpu", device=peer.device,
        )  # fmt: skip
        batches = endless(loader)
        if peer.name != "lucid":
            there = next(batches)
            batches.close()
            batches = iter(lambda: there, None)

        def step() -> None:
            x, y = next(batches)
            optimizer.zero_grad()
            lucid.lib.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()

        return looped(lucid, step)

    return Row(name, 1.03, build, most_rounds=20)


FED = [
    fed("step of the digits' model, batches of a loader beside one that lies there", digits),
    fed("step on 224 x 224 pictures, batches of a loader beside one that lies there", large_pictures),
]


def main(argv: Sequence[str] | None = None) -> int:
    parser = command.parser("python -m benchmarks.data", __doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), help="measure steps fed by a loader, on this device")
    parser.add_argument("--first", nargs=2, metavar=("LIBRARY", "METHOD"), help="print one time to a first batch")
    options = parser.parse_args(argv)
    if options.first:
        print(first_batch(*options.first))
        return 0
    os.environ.setdefault("OMP_NUM_THREADS", str(THREADS))
    rows, device = (FED, options.device) if options.device else (ROWS, "cpu")
    results = command.measured(rows, options, (Peer("lucid", device), Peer("torch", device)), THREADS)
    if not results:
        return 2
    command.show(results, f"loaders of lucid and PyTorch, medians of up to {options.rounds} rounds")
    path = options.json
    if path is None and rows is ROWS and len(results) == len(ROWS) and not options.quick:
        path = command.RESULTS / "data.json"
    if path is not None:
        command.write(path, results, device=device, threads=THREADS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
