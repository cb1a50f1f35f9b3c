"""Plugin of pytest that runs each test which draws with many seeds, in one process, and the others once."""

from __future__ import annotations

import os

import hypothesis
import pytest
from _pytest.runner import CallInfo, call_and_report, runtestprotocol

from tests.seeds.drawing import VARIABLE, numbers_of, seed_examples, seed_generators, states

# fixtures that tests share, and whose setup draws
DRAWN = set()


def pytest_addoption(parser):
    """Take the seeds from the command line, from which workers of pytest-xdist have them too."""
    group = parser.getgroup("seeds")
    group.addoption("--first-seed", type=int, default=1)
    group.addoption("--number-of-seeds", type=int, default=50)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_fixture_setup(fixturedef, request):
    """Note of what several tests share whether it was drawn."""
    before = states() if fixturedef.scope != "function" else None
    result = yield
    if before is not None and states() != before:
        DRAWN.add(fixturedef)
    return result


def has_own_numbers(item):
    """Tell, after a run, whether a test has numbers of `rng` or a fixture of its file, or examples of hypothesis."""
    fixtures = {found[-1] for found in item._fixtureinfo.name2fixturedefs.values()}
    return "rng" in item.fixturenames or fixtures & DRAWN or hypothesis.is_hypothesis_test(getattr(item, "obj", None))


def draws(item, ends):
    """Tell, after a run, whether a test takes numbers of the generators that all share, other ones with each seed."""
    end = states()
    seed_generators(item.nodeid)
    begin = states()
    ends.append({name: state for name, state in end.items() if state != begin.get(name)})
    return ends[-1] and ends[1:] != ends[:1]


def is_called_alone(item):
    """Tell whether one setup does for all runs: a test is given constants, and what `tests/conftest.py` has."""
    constants = item.callspec.params if hasattr(item, "callspec") else {}
    fixtures = item._fixtureinfo.name2fixturedefs.items()
    return all(found[-1].baseid == "tests" or name in constants for name, found in fixtures)


def kept_until(item):
    """Return what of a test is not torn down before its next run: nothing that has random numbers."""
    fixtures = [found[-1] for found in item._fixtureinfo.name2fixturedefs.values()]
    wide = any(fixture.scope != "function" and fixture.baseid for fixture in fixtures)
    return item.session if wide else item.parent


def run_alone(item, reports):
    """Return the reports of the next run of a test that is set up once, of which these are those of the run before."""
    if not reports:
        reports = [call_and_report(item, "setup", log=False)]
        return [*reports, call_and_report(item, "call", log=False)] if reports[0].passed else reports
    seed_generators(item.nodeid)
    seed_examples(item.obj, item.nodeid)
    if "rng" in item.funcargs:
        item.funcargs["rng"] = numbers_of(item.nodeid)
    return [call_and_report(item, "call", log=False)]


def torn_down(item, nextitem):
    """Return the report of what several runs left standing."""
    call = CallInfo.from_call(lambda: item.session._setupstate.teardown_exact(nextitem), when="teardown")
    return item.ihook.pytest_runtest_makereport(item=item, call=call)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    """Run a test with each seed, as far as its numbers differ; reports carry the seed, the last one how many runs."""
    option, before = item.config.option, os.environ[VARIABLE]
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    alone, ends, reports, runs = is_called_alone(item), [], [], 0
    for seed in range(option.first_seed, option.first_seed + option.number_of_seeds):
        os.environ[VARIABLE] = str(seed)
        item._report_sections.clear()
        reports = run_alone(item, reports) if alone else runtestprotocol(item, log=False, nextitem=kept_until(item))
        for report in filter(lambda report: report.failed, reports):
            report.user_properties.append(("seed", seed))
            item.ihook.pytest_runtest_logreport(report=report)
        runs += 1
        if reports[0].skipped or (len(ends) < 2 and not has_own_numbers(item) and not draws(item, ends)):
            runs = 0
            break
    os.environ[VARIABLE] = before
    if alone:
        report = call_and_report(item, "teardown", log=False, nextitem=nextitem)
        item._request, item.funcargs = False, None
    else:
        report = torn_down(item, nextitem)
    report.user_properties.append(("runs", runs))
    item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
