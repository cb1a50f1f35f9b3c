"""The run: the stages one after another in their boxes, a summary after each."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.gpu import rehearsal
from benchmarks.gpu.device import NoDeviceError
from benchmarks.gpu.facts import RUN, Facts, FolderError, kind, kinds, read, text_of
from benchmarks.gpu.processes import ROOT, Workers
from benchmarks.gpu.rows import Scope, Setting
from benchmarks.gpu.stages import BOXES, stage
from benchmarks.gpu.summary import write

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from typing import IO

LOG = "log.txt"
SHORTEST = 5  # seconds below which a stage is not begun
DESCRIPTION = 60  # seconds for a process to say what device there is; a simulated one may have to be built before
CEILING = 3600  # seconds of a rehearsal, whose stages end by their rows: only what hangs meets it


def environment(scratch: Path, prepared: Path, *, simulated: bool) -> dict[str, str]:
    """Return what processes find: this checkout, what was prepared, fresh caches, and no setting from outside.

    A simulated device keeps the user's cache, in which its kernels lie compiled.
    """
    made = {name: value for name, value in os.environ.items() if not name.startswith("LUCID_")}
    path = [str(ROOT), str(scratch / "site") if (scratch / "site").exists() else "", made.get("PYTHONPATH", "")]
    made |= {
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
        "PYTHONUNBUFFERED": "1",
        "PYTHONFAULTHANDLER": "1",
        **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    }
    if simulated:
        kept = os.environ.get("LUCID_CACHE_DIR")
        return made | {"LUCID_CUDA_SIMULATOR": "1"} | ({"LUCID_CACHE_DIR": kept} if kept else {})
    for name, folder in (("CUPY_CACHE_DIR", "cupy"), ("LUCID_CACHE_DIR", "lucid")):
        (scratch / folder).mkdir(mode=0o700, exist_ok=True)
        made[name] = str(scratch / folder)
    if (prepared / "built").is_dir():
        # a folder that travelled may have rights with which lucid does not trust it
        shutil.copytree(prepared / "built", scratch / "built", copy_function=shutil.copyfile, dirs_exist_ok=True)
        made["LUCID_BUILT_KERNELS"] = str(scratch / "built")
    return made


def install(prepared: Path, scratch: Path) -> None:
    """Install the wheels that were prepared into a folder of the run's own."""
    if wheels := sorted(map(str, (prepared / "wheels").glob("*.whl"))):
        options = ("--quiet", "--no-index", "--no-deps", "--no-compile", "--no-cache-dir")
        command = [sys.executable, "-m", "pip", "install", *options, "--target", str(scratch / "site"), *wheels]
        subprocess.run(command, check=False)


def described(variables: dict[str, str], seconds: float | None) -> dict[str, object]:
    """Return what a process of its own says of device and machine; NoDeviceError if there is no device."""
    command = [sys.executable, "-m", "benchmarks.gpu", "--describe"]
    try:
        child = subprocess.run(
            command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise NoDeviceError(f"the device has not answered within {error.timeout:g} s") from error
    if child.returncode:
        raise NoDeviceError(child.stderr.strip().splitlines()[-1] if child.stderr.strip() else "no device")
    return json.loads(child.stdout.splitlines()[-1])


def boxes(names: Sequence[str], budget: float | None) -> dict[str, float]:
    """Return the seconds of each stage: its own, or its share of a budget."""
    factor = 1.0 if budget is None or not names else budget / sum(BOXES[name] for name in names)
    return {name: BOXES[name] * factor for name in names}


def left_to_do(folder: Path, wanted: Sequence[str]) -> list[str]:
    """Return the stages that have not come to their end."""
    ended = {fact["ended"] for fact in read(folder) if fact["stage"] == RUN and "ended" in fact and not fact["left"]}
    return [name for name in wanted if name not in ended]


def left_in(folder: Path, name: str, since: float) -> int:
    """Return how many rows the processes of a stage had to leave."""
    return sum(fact.get("left", 0) for fact in read(folder) if fact["stage"] == name and fact["at"] >= since)


def one(name: str, setting: Setting, box: float, log: IO[bytes]) -> None:
    """Run a stage in its box; nothing that happens there raises here."""
    facts, told = Facts(setting.folder, name), Facts(setting.folder, RUN)
    log.write(f"\n======== {name}\n".encode())
    begun = time.time()
    try:
        made = stage(name)
        scope = Scope(str(setting.folder), name, until=begun + box)
        if setting.rehearsed:
            scope = replace(scope, rows=made.rehearsed, faults=rehearsal.FAULTS.get(name, {}))
        workers = Workers(setting, facts, log)
        workers.start_all(made.groups(setting), scope)
        workers.wait(begun + box)
        made.finish(setting, facts)
    except Exception as error:
        facts(ok=False, error=f"the stage could not be run: {text_of(error)}")
    left = left_in(setting.folder, name, begun)
    # the stages of a rehearsal end by their rows: its box says nothing
    known = {} if setting.rehearsed else {"box": round(box, 1)}
    told(ended=name, seconds=round(time.time() - begun, 1), **known, left=left)


def run(options: argparse.Namespace) -> None:
    """Run the stages that are asked for and not done yet.

    NoDeviceError if there is nothing to run them on, FolderError if others in the folder ran on something else.
    """
    begun, simulated = time.time(), options.simulate or options.rehearse
    folder, prepared = options.out.resolve(), options.prepared.resolve()
    with tempfile.TemporaryDirectory(prefix="lucid-gpu-") as name:
        scratch = Path(name)
        if not simulated:
            install(prepared, scratch)
        variables = environment(scratch, prepared, simulated=simulated)
        description = described(variables, None if simulated else DESCRIPTION)
        head = {**description, "simulated": simulated, "rehearsed": options.rehearse}
        before, here = kinds(read(folder)), kind(head)
        if before and before != [here]:
            words = f"{folder} holds facts of {' and of '.join(before)}, but this is {here}: name another folder"
            raise FolderError(words)
        folder.mkdir(parents=True, exist_ok=True)
        told = Facts(folder, RUN)
        told(**head)
        write(folder)
        processors = len(os.sched_getaffinity(0))
        setting = Setting(folder, scratch, simulated, options.rehearse, processors, variables)
        shares = boxes(left_to_do(folder, options.only), CEILING if options.rehearse else options.budget)
        end = begun + sum(shares.values())
        with (folder / LOG).open("ab", buffering=0) as log:
            for stage_name, share in shares.items():
                if (box := min(share, end - time.time())) < SHORTEST:
                    told(skipped=stage_name, ok=False, error="no time was left for it")
                else:
                    one(stage_name, setting, box, log)
                write(folder)
                print(f"{stage_name}: {time.time() - begun:.0f} s in all", flush=True)
