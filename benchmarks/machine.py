"""What a number was measured on, to be stored beside the number."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from datetime import UTC, datetime
from pathlib import Path


def cpu_model() -> str:
    """Return the processor's name as Linux gives it, or what Python knows elsewhere."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def version(distribution: str) -> str | None:
    """Return the installed version of a distribution, or None where it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def machine() -> dict[str, object]:
    """Return processor, cores, system, versions and date."""
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "torch": version("torch"),
        "date": datetime.now(tz=UTC).isoformat(timespec="seconds"),
    }
