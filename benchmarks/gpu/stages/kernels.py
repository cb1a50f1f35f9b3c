"""Each family of kernels between events, as a share of a copy's bandwidth, at sizes that no cache holds."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.families import FAMILIES, WIDTH
from benchmarks.gpu import device
from benchmarks.gpu.facts import text_of
from benchmarks.gpu.rows import Row, Stage, working

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.families import Family
    from benchmarks.gpu.rows import Scope

SIZES = (1024, 64)  # MiB
DTYPES = {"float32": 4, "bfloat16": 2}
LEAST_ROWS = 16  # optimizers have as many parameters


def share(family: Family, dtype: str, mib: float) -> dict[str, object]:
    """Return the bandwidth of both libraries as a share of a copy's."""
    copy, itemsize = device.copy_bandwidth(mib), DTYPES[dtype]
    rows = max(LEAST_ROWS, int(mib * 2**20) // itemsize // WIDTH)
    told: dict[str, object] = {"copy_gb_per_s": round(copy, 1)}
    for peer in device.peers():
        try:
            call = family.build(peer, dtype, rows)
            rate = family.bytes(rows * WIDTH, itemsize) / device.seconds(call, 8, 2) / 1e9
            told[peer.name] = round(rate / copy, 3)
        except Exception as error:
            if peer.name == "lucid":
                raise
            told["torch_error"] = text_of(error)
        finally:
            call = None
            device.free()
    return told


def rows(_: Scope) -> Sequence[Row]:
    sizes = (0.25,) if device.simulated() else SIZES
    return [
        Row(f"{family.name}, {dtype}, {mib:g} MiB", partial(share, family, dtype, mib))
        for mib, family, dtype in itertools.product(sizes, FAMILIES, DTYPES)
    ]


STAGE = Stage(working(rows), rehearsed=4)
