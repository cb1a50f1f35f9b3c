"""`lucid.profiler`: which steps are seen, and when a cycle is ready."""

from __future__ import annotations

import pytest

import lucid
from lucid import profiler
from lucid.base import gpu
from lucid.errors import ArgumentError, SettingError
from lucid.profiler import ProfilerAction, ProfilerActivity, profile, schedule


def letters(plan, count):
    """Return the first letters of what happens to the first steps, S for the last of a cycle."""
    return "".join("S" if plan(k) is ProfilerAction.RECORD_AND_SAVE else plan(k).name[0] for k in range(count))


def test_schedules():
    """Cycles of steps that wait, warm up and are recorded, after some, and so many of them."""
    assert letters(schedule(wait=2, warmup=1, active=2), 10) == "NNWRSNNWRS"
    assert letters(schedule(wait=0, warmup=0, active=1), 3) == "SSS"
    assert letters(schedule(wait=1, warmup=0, active=2, repeat=1, skip_first=2), 9) == "NNNRSNNNN"
    for wrong in ({"wait": -1}, {"active": 0}, {"warmup": -1}, {"repeat": -1}, {"skip_first": -1}):
        with pytest.raises(SettingError, match=f"schedule: {next(iter(wrong))}: expected at least"):
            schedule(**{"wait": 0, "warmup": 0, "active": 1, **wrong})
    with pytest.raises(ArgumentError, match="wait: expected an int"):
        schedule(wait="1", warmup=0, active=1)


class Log:
    """What NVTX and the driver are told."""

    def __init__(self, monkeypatch):
        self.told = []
        log = self

        class Named:
            def __init__(self, name):
                self.name = name

            def __enter__(self):
                log.told.append(self.name.removeprefix("ProfilerStep#"))

            def __exit__(self, *_):
                log.told.append("end")

        class Runtime:
            profilerStart = staticmethod(lambda: log.told.append("start"))
            profilerStop = staticmethod(lambda: log.told.append("stop"))

        monkeypatch.setattr(profiler, "record_function", Named)
        runtime = type("Cupy", (), {"cuda": type("Cuda", (), {"runtime": Runtime})})
        monkeypatch.setattr(gpu, "is_available", lambda: True)
        monkeypatch.setattr(gpu, "cupy", lambda: runtime)


def test_steps_are_ranges_while_they_are_recorded(monkeypatch):
    """A cycle starts the profiler with its first recorded step, and stops it behind its last, when it is ready."""
    log, ready = Log(monkeypatch), []
    plan = schedule(wait=1, warmup=0, active=2, repeat=1)
    with profile(schedule=plan, on_trace_ready=lambda p: ready.append(p.step_num)) as found:
        for _ in range(5):
            found.step()
    assert log.told == ["start", "1", "end", "start", "2", "end", "stop"]
    assert ready == [3]
    assert found.step_num == 5


def test_without_a_schedule_all_is_recorded(monkeypatch):
    """It is ready at the end, also of an exception."""
    log, ready = Log(monkeypatch), []
    with pytest.raises(KeyError), profile(on_trace_ready=ready.append) as found:
        found.step()
        raise KeyError
    assert log.told == ["start", "0", "end", "start", "1", "end", "stop"]
    assert ready == [found]


def test_a_cycle_that_is_cut_off(monkeypatch):
    """What has been recorded of it is ready at the end."""
    log, ready = Log(monkeypatch), []
    with profile(schedule=schedule(wait=0, warmup=1, active=3), on_trace_ready=lambda p: ready.append(p.step_num)) as p:
        p.step()
        p.step()
    assert log.told == ["start", "1", "end", "start", "2", "end", "stop"]
    assert ready == [2]
    with profile(schedule=schedule(wait=5, warmup=0, active=1), on_trace_ready=ready.append):
        pass
    assert ready == [2]


def test_times_are_refused():
    """Who asks for times is told where they are; activities are looked at."""
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as found:
        lucid.ones(2).sum()
    for ask in (found.key_averages, lambda: found.export_chrome_trace("trace.json")):
        with pytest.raises(NotImplementedError, match=r"lucid measures no times itself: run .* cProfile, or .* 'nsys"):
            ask()
    with pytest.raises(SettingError, match="activities: expected members of ProfilerActivity, got 'cpu'"):
        profile(activities=["cpu"])
    assert (ProfilerActivity.CUDA in profiler.supported_activities()) == lucid.cuda.is_available()
    with profiler.record_function("part"):
        pass
