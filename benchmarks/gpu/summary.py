"""What the facts of a folder say in short: for the end of the run's output, and for the report."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from benchmarks.gpu import facts as known
from benchmarks.gpu.facts import RUN, is_head, read, rows

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.gpu.facts import Fact

FILE = "summary.txt"
MOST_FAILURES = 60
# What belongs to how a fact came about, and not to what it says.
COMMON = ("stage", "row", "at", "seconds", "where", "group", "part")


def said(fact: Fact) -> Fact:
    """Return what a row says."""
    return {name: value for name, value in fact.items() if name not in COMMON}


def failures(facts: list[Fact]) -> list[dict[str, str]]:
    """Return what failed and stands so, each by its stage, what it is and why."""
    made: list[dict[str, str]] = []
    for fact in known.failures(facts):
        what = fact.get("row") or fact.get("skipped") or "process"
        why = fact.get("error") or words(said(fact))
        made.append({"stage": fact["stage"], "what": what, "why": str(why).strip()})
    return made


def stages(facts: list[Fact]) -> list[dict[str, Any]]:
    """Return of each stage its time, its box if it had one, its rows, those that failed and those that were left."""
    made: dict[str, dict[str, Any]] = {}
    for fact in facts:
        if fact["stage"] == RUN and "ended" in fact:
            mine = rows(facts, name := fact["ended"]).values()
            before = made.get(name, {})
            times = {each: round(before.get(each, 0.0) + fact[each], 1) for each in ("seconds", "box") if each in fact}
            made[name] = {
                "name": name,
                **times,
                "rows": len(mine),
                "failed": sum(each.get("ok") is False for each in mine),
                "left": fact["left"],
            }
    return list(made.values())


def digest(folder: Path) -> dict[str, Any]:
    """Return what the facts in a folder say, as one object."""
    facts = read(folder)
    heads = [fact for fact in facts if is_head(fact)]
    head = heads[0] if heads else {"device": {}, "machine": {}, "simulated": None, "rehearsed": None}
    battery, tests = rows(facts, "battery"), rows(facts, "tests").values()
    tables = ("hello", "large", "capture", "host", "steps", "kernels", "sanitizer", "profile")
    return {
        **{name: head[name] for name in ("simulated", "rehearsed", "device", "machine")},
        "stages": stages(facts),
        "failures": failures(facts),
        "battery": {
            "right": sum(fact.get("ok") is True for fact in battery.values()),
            "failed": sum(fact.get("ok") is False for fact in battery.values()),
            "moving": [name for name, fact in battery.items() if fact.get("moving")],
        },
        "tests": {
            "passed": sum(fact.get("ok") is True for fact in tests),
            "failed": sum(fact.get("ok") is False for fact in tests),
            "skipped": dict(Counter(fact["skipped"] for fact in tests if "skipped" in fact)),
        },
        "contexts_lost": sum("lost" in fact for fact in facts),
        "processes_restarted": sum("restarted" in fact for fact in facts),
        **{stage: {name: said(fact) for name, fact in rows(facts, stage).items()} for stage in tables},
    }


def failed(made: dict[str, Any]) -> bool:
    """Return whether something failed, or a stage has not done a single row."""
    return bool(made["failures"]) or not made["stages"] or any(not stage["rows"] for stage in made["stages"])


def brief(value: Any) -> str:
    """Return a value as a word."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return " ".join(f"{name} {brief(each)}" for name, each in value.items())
    return str(value).replace("\n", " ")


def words(fact: Fact) -> str:
    """Return what a row says in one line; that all is right needs no words beside figures."""
    told = {name: value for name, value in fact.items() if (name, value) != ("ok", True)}
    return "; ".join(f"{name} {brief(value)}"[:200] for name, value in told.items()) or "ok"


def text(made: dict[str, Any]) -> list[str]:
    """Return the lines of the summary."""
    device = made["device"].get("name", "no device")
    kind = "simulated device, no figure is one of a GPU: " if made["simulated"] else ""
    lines = [f"{kind}{device}"]
    for stage in made["stages"]:
        box = f" of {stage['box']:4.0f}" if "box" in stage else ""
        left = f", {stage['left']} left" if stage["left"] else ""
        lines.append(
            f"{stage['name']:10s} {stage['seconds']:6.1f} s{box}: {stage['rows']} rows, {stage['failed']} failed{left}"
        )
    lines.append(f"contexts lost {made['contexts_lost']}, processes restarted {made['processes_restarted']}")
    lines.append(f"FAILED: {len(made['failures'])}" if made["failures"] else "nothing failed")
    lines += [f"  {each['stage']}: {each['what']}: {each['why'][:160]}" for each in made["failures"][:MOST_FAILURES]]
    battery, tests = made["battery"], made["tests"]
    lines.append(f"battery: {battery['right']} right, {battery['failed']} failed, moving: {battery['moving']}")
    lines.append(f"tests: {tests['passed']} passed, {tests['failed']} failed, {sum(tests['skipped'].values())} skipped")
    lines += [f"  skipped {count}: {reason[:120]}" for reason, count in tests["skipped"].items()]
    for stage in ("hello", "capture", "steps", "kernels", "host", "large", "sanitizer", "profile"):
        lines += [f"{stage}: {name}: {words(fact)}" for name, fact in made[stage].items()]
    return [line.replace("\n", " ") for line in lines]


def write(folder: Path) -> None:
    """Write the summary anew."""
    (folder / FILE).write_text("\n".join(text(digest(folder))) + "\n", encoding="utf-8")
