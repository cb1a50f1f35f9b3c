"""`python -m benchmarks.gpu`: everything that can be checked on a machine with a GPU, as one JSON file.

Stages, in order: the tests marked `gpu`, the whole suite, the example, the benchmarks, steps fed by loaders, the
bandwidth of kernels. A skipped test counts as a failure here, since the device that it waited for is there. Needs CuPy,
NumPy and pytest, PyTorch to compare with, and no network; a stage whose packages are missing is reported as not run.
The file is written anew after every stage, so that a run cut short leaves what it had. Exit status: 0 all passed, 1 a
stage failed, 2 there is no CUDA device.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks.command import RESULTS, machine, version

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent
PASSED, FAILED, NO_DEVICE = 0, 1, 2
# How the package is built says nothing about a device, and building it needs more than is installed there.
PYTEST = (
    sys.executable,
    "-m",
    "pytest",
    "-q",
    "--continue-on-collection-errors",
    "--ignore=tests/laws/test_packaging.py",
)


class NoDeviceError(RuntimeError):
    """There is no CUDA device to run on."""


@dataclass(frozen=True)
class Stage:
    """A command to run, the modules it cannot do without, and how to read the report that it writes.

    `read` returns what to store and the complaints that make the stage fail although the command succeeded.
    """

    name: str
    command: tuple[str, ...]
    needs: tuple[str, ...] = ()
    report: Path | None = None
    read: Callable[[Path], tuple[object, list[str]]] | None = None


@dataclass
class Outcome:
    """What came of a stage: `passed`, `failed` or `not run`, and why."""

    name: str
    status: str
    seconds: float = 0.0
    complaints: list[str] = field(default_factory=list)
    content: object = None
    output: str = ""


def device() -> dict[str, object]:
    """Return the first device and the versions around it; NoDeviceError says what is missing."""
    try:
        import cupy
    except ImportError as error:
        message = f"CuPy cannot be imported ({error}); install lucid-cupy[cuda12] or lucid-cupy[cuda13]"
        raise NoDeviceError(message) from error
    runtime = cupy.cuda.runtime
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        message = f"CuPy {cupy.__version__} finds no CUDA device: {error}"
        raise NoDeviceError(message) from error
    if count == 0:
        message = f"CuPy {cupy.__version__} counts 0 CUDA devices"
        raise NoDeviceError(message)
    properties = runtime.getDeviceProperties(0)
    return {
        "name": properties["name"].decode(),
        "count": count,
        "compute_capability": f"{properties['major']}.{properties['minor']}",
        "memory_bytes": properties["totalGlobalMem"],
        "cuda_runtime": runtime.runtimeGetVersion(),
        "cuda_driver": runtime.driverGetVersion(),
        "cupy": cupy.__version__,
        **{name: version(name) for name in ("ml_dtypes", "nvtx", "opt_einsum", "rich", "safetensors", "hypothesis")},
    }


def read_tests(report: Path) -> tuple[object, list[str]]:
    """Return the counts in pytest's report; every skipped test is a complaint, and so is a run of no test."""
    suites = list(ET.parse(report).getroot().iter("testsuite"))
    counts = {
        key: sum(int(suite.get(key, 0)) for suite in suites) for key in ("tests", "failures", "errors", "skipped")
    }
    complaints = [] if counts["tests"] else ["no test was run"]
    for suite in suites:
        for case in suite.iter("testcase"):
            skipped = case.find("skipped")
            if skipped is not None:
                complaints.append(f"skipped: {case.get('classname')}.{case.get('name')}: {skipped.get('message')}")
    return counts, complaints


def read_rows(report: Path) -> tuple[object, list[str]]:
    """Return the benchmarks' rows; those that could not be run are complaints."""
    rows = json.loads(report.read_text(encoding="utf-8"))["rows"]
    return rows, [f"{row['name']}: not run: {row['not_run']}" for row in rows if row["not_run"]]


def read_kernels(report: Path) -> tuple[object, list[str]]:
    """Return bandwidths and launches; rows that could not be run are complaints, and so is their absence."""
    content = json.loads(report.read_text(encoding="utf-8"))
    rows = content["rows"]
    complaints = [
        f"{row['family']}, {row['dtype']}, {row['mib']:g} MiB: not run: {row['not_run']}"
        for row in rows
        if row["not_run"]
    ]
    return content, complaints if rows else ["no kernel was measured"]


def tests(name: str, report: Path, *selection: str) -> Stage:
    """Return the stage that runs the selected tests."""
    return Stage(name, (*PYTEST, *selection, f"--junitxml={report}"), ("pytest",), report, read_tests)


def stages(scratch: Path, epochs: int, rounds: int) -> list[Stage]:
    """Return every stage in order."""
    example = (sys.executable, "examples/train_digits.py", "--device", "cuda", "--epochs", str(epochs))
    benchmarks = (sys.executable, "-m", "benchmarks", "--device", "cuda", "--rounds", str(rounds))
    loaders = (sys.executable, "-m", "benchmarks.data", "--device", "cuda", "--rounds", str(rounds))
    rows, bandwidths, fed = scratch / "benchmarks.json", scratch / "kernels.json", scratch / "data.json"
    kernels = (sys.executable, "-m", "benchmarks.kernels", "--json", str(bandwidths))
    return [
        tests("tests on the device", scratch / "device.xml", "-m", "gpu"),
        tests("whole suite", scratch / "suite.xml"),
        Stage("example", (*example, "--out", str(scratch / "out")), ("sklearn", "matplotlib", "rich", "safetensors")),
        Stage("benchmarks", (*benchmarks, "--json", str(rows)), ("torch",), rows, read_rows),
        Stage("loaders", (*loaders, "--json", str(fed)), ("torch",), fed, read_rows),
        Stage("kernels", kernels, ("torch", "rich"), bandwidths, read_kernels),
    ]


def environment() -> dict[str, str]:
    """Return the stages' environment: the real device, required, and this checkout importable without installing."""
    variables = {key: value for key, value in os.environ.items() if key != "LUCID_CUDA_SIMULATOR"}
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return {**variables, "LUCID_REQUIRE_GPU": "1", "PYTHONPATH": path}


def run(stage: Stage, timeout: float) -> Outcome:
    """Run one stage and judge it; nothing that it does raises here."""
    missing = [name for name in stage.needs if importlib.util.find_spec(name) is None]
    if missing:
        return Outcome(stage.name, "not run", complaints=[f"not installed: {', '.join(missing)}"])
    start = time.perf_counter()
    complaints: list[str] = []
    try:
        child = subprocess.run(
            stage.command,
            cwd=ROOT,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            check=False,
        )
        output = child.stdout
        if child.returncode:
            complaints.append(f"exit status {child.returncode}")
    except subprocess.TimeoutExpired as expired:
        written = expired.stdout or b""
        output = written.decode(errors="replace") if isinstance(written, bytes) else written
        complaints.append(f"stopped after {timeout:.0f} s")
    content = None
    if stage.report and stage.read:
        if stage.report.exists():
            content, found = stage.read(stage.report)
            complaints += found
        else:
            complaints.append(f"left no {stage.report.name}")
    status = "failed" if complaints else "passed"
    return Outcome(stage.name, status, time.perf_counter() - start, complaints, content, output[-20_000:])


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="only stages whose name contains this")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds for one stage (default 1800)")
    parser.add_argument("--epochs", type=int, default=30, help="epochs of the example (default 30)")
    parser.add_argument("--rounds", type=int, default=30, help="rounds of a benchmark row (default 30)")
    parser.add_argument("--json", type=Path, default=RESULTS / "gpu.json", help="where to write what came of it")
    options = parser.parse_args(argv)
    try:
        content: dict[str, object] = {"device": device(), "machine": machine(), "stages": []}
    except NoDeviceError as error:
        print(f"nothing was run: {error}", file=sys.stderr)
        return NO_DEVICE
    outcomes: list[Outcome] = []
    options.json.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        for stage in stages(Path(folder), options.epochs, options.rounds):
            if options.only not in stage.name:
                continue
            print(f"{stage.name} ...", flush=True)
            outcome = run(stage, options.timeout)
            outcomes.append(outcome)
            print(outcome.output, *outcome.complaints, f"{stage.name}: {outcome.status}", sep="\n", flush=True)
            content["stages"] = [asdict(each) for each in outcomes]
            options.json.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    print(f"written to {options.json}")
    return FAILED if any(outcome.status == "failed" for outcome in outcomes) else PASSED


if __name__ == "__main__":
    sys.exit(main())
