"""The table of all kernels, what was run and compiled of each: `python -m tests.kernels.table LAUNCHED REPORT`.

LAUNCHED is the folder into which test runs under `LUCID_KERNEL_LOG=LAUNCHED` have written the names of what they
launched, REPORT the JUnit report of tests/kernels/test_nvrtc.py. The exit status is 1 if a kernel was never launched
or not compiled for every architecture, or if one was launched that is not in the table.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree as ET

from rich.console import Console
from rich.table import Table

from lucid.cuda.launch.kernels import C_TYPES
from tests.kernels.declared import KERNELS
from tests.kernels.test_nvrtc import ARCHITECTURES

SHORT = {c_name: str(dtype) for dtype, c_name in C_TYPES.items()}


def launched_names():
    """Return the C++ names of the kernels that this process has launched."""
    return sorted(
        launcher.name
        for kernel in KERNELS
        for launcher in kernel._launchers.values()
        if launcher._handles  # filled by the first launch
    )


def compiled_names(report):
    """Return, by architecture, the usage of each kernel: registers, bytes spilled, stack, shared memory."""
    usages = defaultdict(dict)
    for case in ET.parse(report).iter("testcase"):
        architecture = re.search(r"(sm_\d+)", case.get("name"))
        if architecture and case.find("failure") is None and case.find("skipped") is None:
            for prop in case.iter("property"):
                usages[architecture[1]][prop.get("name")] = ast.literal_eval(prop.get("value"))
    return usages


def label(kernel):
    """Return the name of a kernel, with the operation if it is what several share, such as `binary Add`."""
    name = kernel.name.removeprefix("lucid::")
    second = {instance[1].removeprefix("lucid::").partition("<")[0] for instance in kernel.instances if instance[1:]}
    # types and numbers do not begin with a capital
    return f"{name} {second.pop()}" if len(second) == 1 and min(second)[0].isupper() else name


def main(folder, report):
    """Print the table; return the exit status."""
    launched = {name for path in Path(folder).iterdir() for name in path.read_text().splitlines()}
    usages = compiled_names(report)
    table = Table(
        "kernel", "file", "dtypes", "instances", "run", *ARCHITECTURES, "registers", "spilled", "stack", title="Kernels"
    )
    holes = []
    for kernel in sorted(KERNELS, key=lambda kernel: (kernel.stem, kernel.name)):
        names = [kernel.expression(instance) for instance in kernel.instances]
        run = sum(name in launched for name in names)
        compiled = [sum(name in usages[architecture] for name in names) for architecture in ARCHITECTURES]
        if not run or any(count < len(names) for count in compiled):
            holes.append(label(kernel))
        taken = [usage[name] for usage in usages.values() for name in names if name in usage]
        dtypes = dict.fromkeys(SHORT.get(instance[0], instance[0]) for instance in kernel.instances if instance)
        table.add_row(
            label(kernel),
            f"{kernel.stem}.cu",
            ", ".join(dtypes),
            str(len(names)),
            str(run),
            *map(str, compiled),
            str(max((usage[0] for usage in taken), default="")),
            str(max((usage[1] for usage in taken), default="")),
            str(max((usage[2] for usage in taken), default="")),
        )
    console = Console(width=180)
    console.print(table)
    if holes:
        console.print(f"never run, or not compiled for every architecture: {', '.join(holes)}")
    late = launched - {kernel.expression(instance) for kernel in KERNELS for instance in kernel.instances}
    if late:
        console.print(f"run, and declared too late for the table: {', '.join(sorted(late))}")
    return 1 if holes or late else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
