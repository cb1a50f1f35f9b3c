"""The table of cold starts has a row for each model and way, and its rows mean what they say."""

from __future__ import annotations

import json

from benchmarks import cold, command

WRITTEN = json.loads((command.RESULTS / "cold.json").read_text(encoding="utf-8"))
ROWS = {(row["model"], row["way"]): row for row in WRITTEN["rows"]}


def test_each_model_is_measured_in_each_way():
    """None is left out, and each row has the fields and the goal of its kind."""
    assert ROWS.keys() == {(model, way) for model in cold.MODELS for way in cold.WAYS}
    for (_, way), row in ROWS.items():
        assert row.keys() == cold.First.__annotations__.keys()
        assert row["goal"] == cold.GOALS.get(way)


def test_all_ways_launch_the_same():
    """Of one model the same kernels are launched; fewer are compiled where they were before."""
    for model in cold.MODELS:
        rows = [ROWS[model, way] for way in cold.WAYS]
        assert len({row["kernels"] for row in rows}) == 1
        whole, launched, cached, built = (row["compilations"] for row in rows)
        # each kernel apart, and those of CuPy
        assert whole < launched
        assert launched - cached == rows[1]["kernels"]
        assert built == cached
        # one after another, but a warm-up compiles on both cores of the machine
        cores = 2 if "warmed up" in model else 1
        assert all(row["compiling"] <= row["seconds"] * cores for row in rows)
