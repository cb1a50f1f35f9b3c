"""The same steps eager, eager again and captured: losses and parameters, bit for bit."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from benchmarks.gpu import device
from benchmarks.gpu.rows import Row, Stage, working
from benchmarks.gpu.stages.training import SIMULATED, SMALL, training
from benchmarks.measure import Peer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.gpu.rows import Scope


def trained(dtype: str, *, captured: bool) -> tuple[list[float], list[bytes]]:
    """Return the losses of some steps and the parameters after them."""
    import lucid

    simulated = device.simulated()
    made = training(Peer("lucid", "cuda"), SIMULATED if simulated else SMALL, dtype, capturable=True)
    call = lucid.cuda.graphed_step(made.step, *made.given) if captured else made.step
    losses = [float(call(*made.given).item()) for _ in range(4 if simulated else 12)]
    return losses, [parameter.detach().float().cpu().numpy().tobytes() for parameter in made.model.parameters()]


def compared(dtype: str) -> dict[str, object]:
    """Return whether the replayed steps are the eager ones; ok if so, or if eager ones do not repeat either."""
    eager, again, captured = (trained(dtype, captured=each) for each in (False, False, True))
    repeats, same = eager == again, eager == captured
    near = max(abs(a - b) for a, b in zip(eager[0], captured[0], strict=True)) < 1e-2
    return {
        "ok": same or (near and not repeats),
        "eager_repeats": repeats,
        "same_bits": same,
        "losses": eager[0],
        "captured_losses": captured[0],
    }


def rows(_: Scope) -> Sequence[Row]:
    return [Row(dtype, partial(compared, dtype)) for dtype in ("float32", "bfloat16")]


STAGE = Stage(working(rows), rehearsed=1)
