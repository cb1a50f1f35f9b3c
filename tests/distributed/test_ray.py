"""Ray Train as launcher, without Ray: what it is asked for, and what its workers are told."""

from __future__ import annotations

import os
import sys
import types

import pytest

from lucid.distributed.ray import LucidTrainer
from lucid.errors import DistributedError
from tests.collectives.jobs import LAUNCHERS, NAMES


class Context:
    """The second of three workers, the first on its machine."""

    get_world_rank, get_world_size = (lambda self: 1), (lambda self: 3)
    get_local_rank, get_local_world_size = (lambda self: 0), (lambda self: 2)


class Workers:
    """A worker group of this process alone."""

    def execute(self, function, *arguments):
        return [function(*arguments)]

    def execute_single(self, index, function):
        assert index == 0
        return function()


class Trainer:
    def __init__(self, loop, **settings):
        self.loop, self.settings = loop, settings


@pytest.fixture
def ray(monkeypatch):
    """Put modules in the place of Ray's that have what lucid takes of them."""
    for name in [*NAMES, *(each for each in os.environ if each.startswith(LAUNCHERS))]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    made = {
        "ray": {},
        "ray.util": {"get_node_ip_address": lambda: "10.0.0.1"},
        "ray.train": {"get_context": Context},
        "ray.train.backend": {"Backend": object, "BackendConfig": object},
        "ray.train.v2": {},
        "ray.train.v2.api": {},
        "ray.train.v2.api.data_parallel_trainer": {"DataParallelTrainer": Trainer},
    }
    for name, content in made.items():
        module = types.ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)


@pytest.mark.usefixtures("ray")
def test_workers_are_told_who_they_are():
    """They find in their environment what other launchers say; settings go to Ray."""
    trainer = LucidTrainer(print, scaling_config="three")
    config = trainer.settings.pop("backend_config")
    assert (trainer.loop, trainer.settings) == (print, {"scaling_config": "three"})
    config.backend_cls().on_start(Workers(), config)
    told = {name: os.environ[name] for name in NAMES if name in os.environ}
    assert 0 < int(told.pop("MASTER_PORT")) < 2**16
    assert told == {
        "RANK": "1", "WORLD_SIZE": "3", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "10.0.0.1",
    }  # fmt: skip


def test_without_ray(monkeypatch):
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(DistributedError, match=r"pip install 'ray\[train\]'"):
        LucidTrainer(print)
