"""`python -m benchmarks.growth`: by which power of n the time of n times the work grows, beside PyTorch."""

from __future__ import annotations

import json
import math
import os
import sys
from typing import TYPE_CHECKING, Any

THREADS = 1
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = str(
        THREADS
    )  # NumPy's libraries read it once, when they are loaded: hence before the imports

from benchmarks import command  # noqa: E402
from benchmarks.growth.acts import FAMILIES  # noqa: E402
from benchmarks.measure import Peer, looped  # noqa: E402

if TYPE_CHECKING:
    from benchmarks.growth.acts import Family
    from benchmarks.measure import Sampler

SIZES = 1, 4, 16  # times the least size of an act
HEADINGS = ("act", "n", "lucid", "PyTorch", "ratio", "exponent", "PyTorch's")


def sampler(peer: Peer, family: Family, n: int) -> Sampler:
    act = family.make(peer, n)
    return looped(peer, act.call, prepare=act.prepare)


def measure(family: Family, peers: tuple[Peer, ...], rounds: int) -> list[list[float]]:
    """Return for each peer the least microseconds of the act at each size; rounds alternate between the peers."""
    times: list[list[float]] = [[] for _ in peers]
    for size in SIZES:
        samplers = [sampler(peer, family, size * family.least) for peer in peers]
        taken = [[sample() for sample in samplers] for _ in range(rounds)]
        for own, least in zip(times, map(min, zip(*taken, strict=True)), strict=True):
            own.append(least)
    return times


def exponent(times: list[float]) -> float:
    """Return the power of n by which times grow, between the larger two of the sizes."""
    return math.log(times[-1] / times[-2]) / math.log(SIZES[-1] / SIZES[-2])


def main() -> int:
    parser = command.parser("python -m benchmarks.growth", __doc__)
    parser.set_defaults(rounds=command.QUICK_ROUNDS)
    options = parser.parse_args()
    chosen = {name: family for name, family in FAMILIES.items() if options.rows.lower() in name.lower()}
    if not chosen:
        print(f"no act's name contains {options.rows!r}; they are:", *FAMILIES, sep="\n  ")
        return 2
    peers = Peer("lucid"), Peer("torch")
    peers[1].lib.set_num_threads(THREADS)
    print("{:60}{:>8}{:>12}{:>12}{:>8}{:>10}{:>11}".format(*HEADINGS))
    rows: list[dict[str, Any]] = []
    for name, family in chosen.items():
        ours, theirs = measure(family, peers, options.rounds)
        powers = exponent(ours), exponent(theirs)
        n = SIZES[-1] * family.least
        print(
            f"{name:60}{n:8}{ours[-1]:9.0f} us{theirs[-1]:9.0f} us{ours[-1] / theirs[-1]:8.2f}"
            f"{powers[0]:10.2f}{powers[1]:11.2f}",
            flush=True,
        )
        rows.append({
            "act": name, "sizes": [size * family.least for size in SIZES],
            "lucid": ours, "torch": theirs, "exponents": powers,
        })  # fmt: skip
    if options.json:
        content = {"threads": THREADS, "machine": command.machine(), "rows": rows}
        options.json.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
