"""`python -m benchmarks.cold`: how long the first step of a training takes while its kernels are not compiled yet.

Each row is a fresh process with an empty cache of kernels, which makes a model and takes one step. NVIDIA's NVRTC
compiles, for sm_90 and without a GPU, all that the step asks for, CuPy's own kernels too; archives are read and
unpacked. The device is simulated and does no work: what a GPU needs to load and to run the code is not in the figures,
nor are imports, nor what the simulator does where CUDA would do something else.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

from benchmarks import command, models
from benchmarks.measure import Peer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).resolve().parents[1]
ARCHITECTURE = "sm_90"
ENVIRONMENT = {
    "LUCID_CUDA_SIMULATOR": "1",
    "LUCID_SIMULATOR_EXECUTE": "0",
    "CUPY_CACHE_IN_MEMORY": "1",
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
}
WAYS = {
    "whole units": "all that a file declares for a dtype, as until commit 548da9c",
    "what is launched": "each kernel when it is launched first",
    "cached": "the same again, with what the first process has kept",
    "built": "from an archive of python -m lucid.cuda.build",
}
# At most so many seconds, which no test asserts.
GOALS = {"what is launched": 8.0, "built": 2.0}


@dataclass(frozen=True)
class First:
    """What making a model and its first step took, in seconds: medians of the rounds.

    `processor` is the time of all threads, which other work on the machine does not change.
    """

    model: str
    way: str
    seconds: float
    processor: float
    compiling: float
    compilations: int
    kernels: int
    goal: float | None


# ---- in a process of its own ----


def digits() -> Callable[[], Any]:
    """Return the first step of the digits example, hooks and batches included; its data are noise."""
    import numpy as np

    import lucid

    spec = importlib.util.spec_from_file_location("train_digits", ROOT / "examples" / "train_digits.py")
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    random = np.random.default_rng(0)
    pictures = lucid.tensor(random.random((256, 1, 8, 8), np.float32), device="cuda")
    labels = lucid.tensor(random.integers(0, 10, 256), device="cuda")
    return lambda: next(program.Run(seed=0, device="cuda").train(pictures, labels))


def gpt() -> Callable[[], Any]:
    """Return the making of the benchmarks' GPT and its first step."""

    def made_and_run() -> None:
        models.gpt(Peer("lucid", "cuda"))()

    return made_and_run


def gpt_warmed_up() -> Callable[[], Any]:
    """Return the same with `lucid.cuda.warmup` before the step, on which all cores compile."""

    def made_and_run() -> None:
        import lucid

        model, inputs, loss = models.gpt_parts(Peer("lucid", "cuda"))
        lucid.cuda.warmup(model, *inputs, loss=loss)
        optimizer = lucid.optim.AdamW(model.parameters(), lr=1e-3)
        models.training_step(optimizer, lambda: loss(model(*inputs)))()

    return made_and_run


MODELS = {"digits": digits, "gpt": gpt, "gpt, warmed up": gpt_warmed_up}


class Clock:
    """What was compiled, how long that took, and what the simulator did meanwhile."""

    def __init__(self) -> None:
        self.compilations = 0
        self.compiling = self.simulating = self.processor = 0.0

    def compile(self, nvrtc: Any, unit: Any, options: Sequence[str] = ()) -> tuple[dict[str, str], bytes, str]:
        started = time.perf_counter()
        told = nvrtc(unit, ARCHITECTURE, options)
        self.compilations += 1
        self.compiling += time.perf_counter() - started
        return told


def first_step(model: str, way: str, cache_folder: str) -> dict[str, float]:
    """Take the step in this process; return what it took."""
    import lucid
    from lucid.cuda import cache
    from lucid.cuda.build import nvrtc
    from lucid.cuda.driver import CudaDriver
    from lucid.cuda.launch import kernels
    from lucid.cuda.launch.kernels import Unit
    from lucid.cuda.simulator import bootstrap

    clock, real, found = Clock(), nvrtc.compiler(), bootstrap.compiled
    launched: set[int] = set()

    class Driver(CudaDriver):
        """Finds and compiles as on a GPU, and has nowhere to load that to."""

        whole_units = way == "whole units"

        def __init__(self) -> None:
            super().__init__()
            self.launch = lambda handle, *_: launched.add(handle)
            self.allow_shared = lambda *_: None

        def _module(self, image: Any) -> Any:
            # the mangled names stand for what CUDA would call it
            return SimpleNamespace(get_function=lambda name: SimpleNamespace(ptr=hash((name, len(image.code)))))

    def of_cupy(text: str, names: Any, options: Any, folders: Any) -> Path:
        """Compile what CuPy gives the simulated NVRTC by the real one, too."""
        own = [option for option in options if option.startswith(("-I", "-D"))]
        clock.compile(told, Unit("CuPy's", "cupy", text, dict.fromkeys(names, "")), own)
        started, processor = time.perf_counter(), time.process_time()
        try:
            return found(text, names, options, folders)
        finally:
            clock.simulating += time.perf_counter() - started
            clock.processor += time.process_time() - processor

    step = MODELS[model]()
    lucid.ones(1, device="cuda")
    # The simulator's libraries came from the user's cache; that of kernels is another from here on.
    os.environ["LUCID_CACHE_DIR"] = cache_folder
    cache._lasting.cache_clear()
    kernels.drive(Driver)
    kernels._loaded = type(kernels._loaded)()
    for kernel in kernels.KERNELS:
        kernel._launchers.clear()
    told = real.told
    with (
        mock.patch.object(real, "told", lambda unit, _, options=(): clock.compile(told, unit, options)),
        mock.patch.object(bootstrap, "compiled", of_cupy),
    ):
        started, processor = time.perf_counter(), time.process_time()
        step()
        seconds = time.perf_counter() - started - clock.simulating
        processor = time.process_time() - processor - clock.processor
    return {
        "seconds": seconds,
        "processor": processor,
        "compiling": clock.compiling,
        "compilations": clock.compilations,
        "kernels": len(launched),
    }


# ---- the command ----


def measured(model: str, way: str, built: Path, rounds: int) -> First:
    """Return the medians of fresh processes."""
    taken: list[dict[str, float]] = []
    for _ in range(rounds):
        print(f"{model}, {way} ...", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, **ENVIRONMENT, "LUCID_BUILT_KERNELS": str(built) if way == "built" else "0"}
            again = [sys.executable, "-m", "benchmarks.cold", "--child", model, way, folder]
            for _ in range(2 if way == "cached" else 1):
                ran = subprocess.run(again, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
        taken.append(json.loads(ran.stdout.splitlines()[-1]))
    middle = {name: statistics.median(each[name] for each in taken) for name in taken[0]}
    return First(
        model, way, *(round(middle[name], 3) for name in ("seconds", "processor", "compiling")),
        int(middle["compilations"]), int(middle["kernels"]), GOALS.get(way),
    )  # fmt: skip


def build(folder: Path) -> dict[str, object]:
    """Build the archive that rows of that name read; return what it took."""
    started = time.perf_counter()
    given = [sys.executable, "-m", "lucid.cuda.build", "--arch", ARCHITECTURE, "--out", str(folder)]
    subprocess.run(given, cwd=ROOT, check=True)
    (archive,) = folder.glob("*.zip")
    return {"seconds": round(time.perf_counter() - started, 1), "bytes": archive.stat().st_size}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cold", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="processes for each row (default 3)")
    parser.add_argument("--built", type=Path, help="a folder of python -m lucid.cuda.build (default: build one)")
    parser.add_argument("--json", type=Path, default=command.RESULTS / "cold.json", help="where to write the results")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(first_step(*options.child)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        cost = None if options.built else build(Path(folder))
        built = options.built or Path(folder)
        rows = [measured(model, way, built.absolute(), options.rounds) for model in MODELS for way in WAYS]
    print("model | way | first step, s | processor, s | NVRTC, s | compilations | kernels | goal, s")
    for row in rows:
        times = (f"{each:.2f}" for each in (row.seconds, row.processor, row.compiling))
        print(row.model, row.way, *times, row.compilations, row.kernels, row.goal or "-", sep=" | ")
    command.write(options.json, rows, architecture=ARCHITECTURE, ways=WAYS, build=cost, rounds=options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
