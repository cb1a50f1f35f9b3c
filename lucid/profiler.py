"""Steps for a profiler, under PyTorch's names: lucid marks and limits, Nsight Systems measures.

Run ``nsys profile --capture-range=cudaProfilerApi --capture-range-end=repeat python script.py``: it records what runs
inside of `profile` while its schedule says so, each step as a range, and the ranges of `record_function`. Python's own
`cProfile` shows where the host's time goes.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, NoReturn, Self

from lucid.arguments import checked, shown
from lucid.autograd.profiler import record_function
from lucid.base import gpu
from lucid.errors import ArgumentError, SettingError
from lucid.public import publish as _publish

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["ProfilerAction", "ProfilerActivity", "profile", "record_function", "schedule", "supported_activities"]


class ProfilerActivity(enum.Enum):
    """Kind of activity to profile: the host, or CUDA devices."""

    CPU = 0
    CUDA = 2


class ProfilerAction(enum.Enum):
    """Action at a step: it passes unseen, warms up, is recorded, or is recorded as the last of its cycle."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


RECORDING = ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE


def supported_activities() -> set[ProfilerActivity]:
    """Return the activities that can be profiled here.

    Examples
    --------
    >>> from lucid.profiler import ProfilerActivity, supported_activities
    >>> ProfilerActivity.CPU in supported_activities()
    True
    """
    return {ProfilerActivity.CPU, ProfilerActivity.CUDA} if gpu.is_available() else {ProfilerActivity.CPU}


@checked
def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0
) -> Callable[[int], ProfilerAction]:
    """Return the schedule of actions by step number: cycles of steps that wait, warm up and are recorded.

    Parameters
    ----------
    wait, warmup, active : int
        How many steps of a cycle pass unseen, warm up and are recorded; `active` is at least 1.
    repeat : int
        How many cycles there are; 0 for no end.
    skip_first : int
        How many steps pass before the first cycle.

    Raises
    ------
    SettingError
        If one of them is below 0, or `active` below 1.

    Examples
    --------
    >>> from lucid.profiler import schedule
    >>> [schedule(wait=1, warmup=1, active=2)(step).name for step in range(4)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE']
    """
    for name, count in (("wait", wait), ("warmup", warmup), ("repeat", repeat), ("skip_first", skip_first)):
        if count < 0:
            raise SettingError(f"schedule: {name}: expected at least 0, got {count}")
    if active < 1:
        raise SettingError(f"schedule: active: expected at least 1, got {active}")

    def action(step: int) -> ProfilerAction:
        cycle, place = divmod(step - skip_first, wait + warmup + active)
        if step < skip_first or (repeat and cycle >= repeat) or place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < wait + warmup + active - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


class profile:
    """Tells a profiler outside of the process to record some steps, as a context manager.

    Parameters
    ----------
    activities : iterable of ProfilerActivity, optional
        Looked at and left to the profiler.
    schedule : callable, optional
        What happens to step number k, as `schedule` makes it; all are recorded if it is None.
    on_trace_ready : callable, optional
        Called with this object when a cycle has been recorded.
    record_shapes, profile_memory, with_stack, with_flops, with_modules : bool
        PyTorch's, left to the profiler.

    Attributes
    ----------
    step_num : int
        The number of the step that runs.

    Examples
    --------
    >>> from lucid.profiler import profile, schedule
    >>> plan = schedule(wait=0, warmup=1, active=1, repeat=1)
    >>> with profile(schedule=plan, on_trace_ready=lambda p: print("recorded step", p.step_num - 1)) as profiler:
    ...     for _ in range(4):
    ...         profiler.step()
    recorded step 1
    """

    @checked
    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], object] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
    ) -> None:
        for name, function in (("schedule", schedule), ("on_trace_ready", on_trace_ready)):
            if not (function is None or callable(function)):
                raise ArgumentError(f"profile: {name}: expected a function or None, got {shown(function)}")
        for activity in activities or ():
            if not isinstance(activity, ProfilerActivity):
                raise SettingError(f"profile: activities: expected members of ProfilerActivity, got {activity!r}")
        self._schedule = schedule
        self._on_trace_ready = on_trace_ready
        self._range: record_function | None = None
        self.step_num = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin with step number 0."""
        self._begin()

    def step(self) -> None:
        """End the step that runs, and begin the next."""
        self._end(saved=self._action() is ProfilerAction.RECORD_AND_SAVE, number=1)
        self._begin()

    def stop(self) -> None:
        """End the last step; the record of its cycle is ready."""
        self._end(saved=self._action() in RECORDING, number=0)

    def _action(self) -> ProfilerAction:
        return ProfilerAction.RECORD if self._schedule is None else self._schedule(self.step_num)

    def _begin(self) -> None:
        if self._action() in RECORDING:
            if gpu.is_available():
                gpu.cupy().cuda.runtime.profilerStart()
            self._range = record_function(f"ProfilerStep#{self.step_num}")
            self._range.__enter__()

    def _end(self, *, saved: bool, number: int) -> None:
        if self._range is not None:
            self._range.__exit__()
            self._range = None
            if saved and gpu.is_available():
                gpu.cupy().cuda.runtime.profilerStop()
        self.step_num += number
        if saved and self._on_trace_ready is not None:
            self._on_trace_ready(self)

    def key_averages(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Raise a NotImplementedError that names the tools for times."""
        _refuse("key_averages")

    def export_chrome_trace(self, path: str) -> NoReturn:
        """Raise a NotImplementedError that names the tools for times."""
        _refuse("export_chrome_trace")


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(
        f"profile.{name}: lucid measures no times itself: run the script under Python's cProfile, or under "
        "'nsys profile --capture-range=cudaProfilerApi', which records what the schedule says"
    )


_publish(globals())
