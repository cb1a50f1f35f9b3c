"""Facts outlive whoever wrote them."""

from __future__ import annotations

import json
import math

from benchmarks.gpu.facts import FILE, RUN, Facts, failures, read, rows


def test_a_fact_is_a_line_on_disk_at_once(setting, facts):
    """What is told can be read before the process ends, as JSON that any reader takes."""
    facts(row="a", ok=True, error=math.nan, figures=(1.5, math.inf))
    (line,) = (setting.folder / FILE).read_text(encoding="utf-8").splitlines()
    told = json.loads(line, parse_constant=lambda word: 1 / 0)
    assert (told["stage"], told["row"], told["error"], told["figures"]) == ("stage", "a", "nan", [1.5, "inf"])


def test_a_line_that_was_cut_off_is_left_out(setting, facts):
    """A process that was killed while it wrote costs its own line."""
    facts(row="a")
    with (setting.folder / FILE).open("a", encoding="utf-8") as file:
        file.write('{"stage": "stage", "ro')
    assert [fact["row"] for fact in read(setting.folder)] == ["a"]


def test_there_are_no_facts_without_a_file(tmp_path):
    """A folder that nobody has written into holds none."""
    assert read(tmp_path) == []


def test_what_has_failed_once_has_failed(setting, facts):
    """A later success, as of a test whose teardown came last, does not hide it; a row that was only stopped is open."""
    facts(row="a", ok=False, error="why")
    facts(row="a", ok=True)
    facts(row="b", ok=False, stopped=True)
    facts(row="b", ok=True)
    facts(row="c", ok=True)
    facts(row="c", ok=False)
    made = rows(read(setting.folder), "stage")
    assert {name: fact["ok"] for name, fact in made.items()} == {"a": False, "b": True, "c": False}
    assert rows(read(setting.folder), "another") == {}


def test_what_a_later_run_answers_is_no_failure(setting, facts):
    """A stage that was skipped, stopped or could not be run, once it ends in a later run; in the same run it stands."""
    told = Facts(setting.folder, RUN)
    told(device={})
    told(skipped="large", ok=False, error="no time")
    facts(ok=False, stopped=True, left=3)
    told(ended="stage", left=3)

    def standing():
        return [fact.get("skipped", fact["stage"]) for fact in failures(read(setting.folder))]

    assert sorted(standing()) == ["large", "stage"]
    told(device={})
    told(skipped="large", ok=False, error="no time")
    told(skipped="stage", ok=False, error="no time")
    assert sorted(standing()) == ["large", "stage", "stage"]
    told(device={})
    facts(row="a", ok=False, error="why")
    told(ended="stage", left=0)
    told(ended="large", left=0)
    assert [fact["row"] for fact in failures(read(setting.folder))] == ["a"]
