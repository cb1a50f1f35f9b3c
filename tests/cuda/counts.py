"""What a training step asks of a device, counted on the simulated one: ``python -m tests.cuda.counts`` prints JSON.

The models are small in every size but their depth. Counts of operations do not depend on sizes but in one thing:
products of heads take one launch, as those of the benchmarks do too, and copies and cuBLAS if they are much larger.
"""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from unittest import mock

import numpy as np

from benchmarks import models
from benchmarks.measure import Peer

ROOT = Path(__file__).resolve().parents[2]


def digits_model(peer):
    """Return the digits example's model."""
    nn = peer.lib.nn
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(512, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10),
    ).to(peer.device)  # fmt: skip


def digits(peer):
    """Return a training step of the digits example's model, without the example's hooks."""
    model = digits_model(peer)
    optimizer = peer.lib.optim.Adam(model.parameters(), lr=1e-3)
    return models.training_step(optimizer, models.classify(peer, model, (4, 1, 8, 8), 10))


def gpt(peer):
    """Return a training step of the benchmarks' GPT, narrow and with a short context."""
    with mock.patch.multiple(models, WIDTH=16, CONTEXT=8, HEADS=2):
        step = models.gpt(peer)

    def narrow():
        with mock.patch.multiple(models, WIDTH=16, CONTEXT=8, HEADS=2):
            step()

    return narrow


STEPS = {"digits": digits, "gpt": gpt}


def example():
    """Return the module of the digits example."""
    path = ROOT / "examples" / "train_digits.py"
    spec = importlib.util.spec_from_file_location("train_digits", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def example_steps():
    """Return a function that takes steps of the digits example itself, hooks and batches included."""
    import lucid

    program = example()
    program.BATCH = 4
    run = program.Run(seed=0, device="cuda")
    random = np.random.default_rng(0)
    pictures = lucid.tensor(random.random((64, 1, 8, 8), np.float32), device="cuda")
    labels = lucid.tensor(random.integers(0, 10, 64), device="cuda")
    steps = run.train(pictures, labels)
    return lambda: next(steps)


def count(step):
    """Return what the third of three steps asks of the device: by then kernels are compiled and state exists."""
    import lucid
    from lucid.cuda.simulator.counting import Counters, counters

    step()
    lucid.cuda.reset_peak_memory_stats()
    step()
    counters.reset()
    before = lucid.cuda.memory_allocated()
    step()
    kernels = counters.kernels
    library = counters.library + counters.copies
    return {
        **{name: getattr(counters, name) for name in Counters.__annotations__},
        "kernels": dict(kernels),
        "operations": counters.launches + library,
        "library": library + sum(times for name, times in kernels.items() if name.startswith("cupy_")),
        "peak": lucid.cuda.max_memory_allocated() - before,
    }


def main():
    from lucid.base import gpu

    # arrays lie as on a GPU, without the bytes that the simulator's checks put between them
    gpu.cupy().empty(1)
    gpu.cupy().cuda.set_allocator(gpu.cupy().get_default_memory_pool().malloc)
    peer = Peer("lucid", "cuda")
    made = {name: count(build(peer)) for name, build in STEPS.items()}
    print(json.dumps({**made, "example": count(example_steps())}))


if __name__ == "__main__":
    os.environ["LUCID_CUDA_SIMULATOR"] = "1"
    main()
