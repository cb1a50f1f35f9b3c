"""When hooks fire in a pass of two processes, recorded in a run of two, as a table and a picture.

    python examples/hooks/two_ranks.py                      # prints the table
    python examples/hooks/two_ranks.py --write docs/users   # brings distributed.md and its picture up to date

Each process multiplies by a number of its own, so that a gradient tells whose it is: the sum of its elements is 32 in
one process, 64 in the other, and 48 when it is the mean.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from matplotlib import rc_context
from matplotlib.figure import Figure

import lucid
from lucid import distributed as dist
from lucid import nn
from lucid.nn.parallel import DistributedDataParallel

if TYPE_CHECKING:
    from lucid.nn.parallel.buckets import GradBucket

# The record in the document, between its two marks.
RECORD = re.compile(
    r"(?<=<!-- recorded by examples/hooks/two_ranks.py -->\n\n).*?(?=\n<!-- end of the record -->)", re.DOTALL
)
SIZE = 4


class Event(NamedTuple):
    """One moment: what fires, on what, and the sum of the gradient's elements then, "" where there is none."""

    moment: str
    on: str
    gradient: str


def record() -> list[Event]:
    """Return what fires in one pass of this process."""
    events: list[Event] = []

    def note(moment: str, on: str, gradient: Any) -> None:
        events.append(Event(moment, on, "" if gradient is None else f"{gradient.sum().item():g}"))

    class Chain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.middle, self.last = (nn.Parameter(lucid.ones(SIZE)) for _ in range(3))

        def forward(self, x: lucid.Tensor) -> lucid.Tensor:
            return x * self.first * self.middle * self.last

    model = Chain()
    names = {parameter: name for name, parameter in model.named_parameters()}
    for name, parameter in model.named_parameters():
        parameter.register_hook(lambda grad, name=name: note("tensor hook", name, grad))
        parameter.register_post_accumulate_grad_hook(lambda p: note("post-accumulate hook", names[p], p.grad))
    wrapped = DistributedDataParallel(model, bucket_cap_mb=1e-6)

    def communicate(_: object, bucket: GradBucket) -> dist.Work | None:
        note(f"bucket {bucket.index()} is sent", names[bucket.parameters()[0]], bucket.buffer())
        return dist.all_reduce(bucket.buffer(), dist.ReduceOp.AVG, async_op=True)

    wrapped.register_comm_hook(None, communicate)
    wrapped.register_reduced_grad_hook(lambda p: note("reduced grad hook", names[p], p.grad))
    for _ in range(2):  # buckets are in the order of the first pass from the second on
        events.clear()
        wrapped.zero_grad()
        wrapped(lucid.full((SIZE,), 8.0 * (dist.get_rank() + 1))).sum().backward()
        note("backward returns", "", None)
    return events


def both() -> list[list[Event]]:
    """Return the events of two processes, which this starts."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "lucid.distributed.run", "--nproc-per-node", "2", __file__, "--into", folder]
        subprocess.run(command, check=True)  # noqa: S603 - this script
        texts = [(Path(folder) / f"{rank}.json").read_text(encoding="utf-8") for rank in range(2)]
    return [[Event(*each) for each in json.loads(text)] for text in texts]


def table(ranks: list[list[Event]]) -> str:
    """Return the events as a table: where both processes are at the same moment, one row for both."""
    lines = ["| | moment | of | gradient in rank 0 | in rank 1 |", "|---|---|---|---|---|"]
    for number, (a, b) in enumerate(zip(*ranks, strict=True)):
        if a[:2] != b[:2]:
            message = f"the processes are not at the same moment: {a}, {b}"
            raise RuntimeError(message)
        lines.append(f"| {number + 1} | {a.moment} | {a.on and f'`{a.on}`'} | {a.gradient} | {b.gradient} |")
    return "\n".join(lines) + "\n"


def picture(ranks: list[list[Event]], path: Path) -> None:
    """Draw the events from top to bottom, a column for each process, with what goes between them."""
    colors = {"tensor": "#b8431c", "post-accumulate": "#7a3fa0", "bucket": "#6b6b6b", "reduced": "#2c7a4b"}
    rows = len(ranks[0])
    with rc_context({"svg.hashsalt": "lucid", "font.size": 9}):
        figure = Figure(figsize=(9, 0.32 * rows + 0.8), layout="constrained")
        axes = figure.add_subplot(xlim=(-0.9, 1.9), ylim=(rows - 0.4, -1.1))
        axes.set_axis_off()
        for rank, events in enumerate(ranks):
            aside = {"va": "center", "ha": "left" if rank else "right"}  # what goes between them is between the columns
            place = rank + (0.06 if rank else -0.06)
            axes.text(place, -0.8, f"rank {rank}", weight="bold", **aside)
            axes.plot([rank, rank], [0, rows - 1], color="#cfcfcf", linewidth=0.8, zorder=1)
            for number, event in enumerate(events):
                color = colors.get(event.moment.split()[0], "#222222")
                axes.plot(rank, number, "o", color=color, markersize=5, zorder=3)
                words = " ".join(filter(None, (event.moment, event.on and f"({event.on})", event.gradient)))
                axes.text(place, number, words, color=color, **aside)
                if event.moment.startswith("bucket"):
                    back = next(
                        n for n, each in enumerate(ranks[1 - rank]) if each == ("reduced grad hook", event.on, "48")
                    )
                    axes.annotate(
                        "", (1 - rank, back), (rank, number),
                        arrowprops={"arrowstyle": "->", "color": "#b0b0b0", "linewidth": 0.8}, zorder=0,
                    )  # fmt: skip
        figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Print the table, or write it and the picture into a folder of documents."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="where distributed.md is, and the picture goes")
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)  # in each of the two processes
    arguments = parser.parse_args()
    if arguments.into is not None:
        dist.init_process_group()
        (arguments.into / f"{dist.get_rank()}.json").write_text(json.dumps(record()), encoding="utf-8")
        return
    if arguments.write is not None and not (arguments.write / "distributed.md").is_file():
        parser.error(f"--write: expected a folder with a distributed.md, got {arguments.write}")
    ranks = both()
    if arguments.write is not None:
        page = arguments.write / "distributed.md"
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace(RECORD.search(text)[0], table(ranks)), encoding="utf-8")
        picture(ranks, arguments.write / "hooks_two_ranks.svg")
    else:
        print(table(ranks), end="")


if __name__ == "__main__":
    main()
