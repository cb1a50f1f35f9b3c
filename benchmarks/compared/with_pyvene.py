"""The tasks with pyvene's interventions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyvene
import torch

from benchmarks.compared import model

LIB = torch


def net(**settings: Any) -> Any:
    made = model.gpt(torch, **settings)
    made.config = SimpleNamespace(hidden_size=model.WIDTH)  # it asks for one
    return made


def capture(net: Any, x: Any) -> Any:
    wanted = [{"component": f"blocks[{k}].attn.output", "intervention": pyvene.CollectIntervention()} for k in range(4)]
    (_, kept), _ = pyvene.IntervenableModel(wanted, net)({"tokens": x})
    return kept


def ablate(net: Any, x: Any) -> Any:
    zero = {"component": "blocks[1].attn.output", "intervention": lambda base, source: base * 0}
    _, result = pyvene.IntervenableModel(zero, net)({"tokens": x})
    return result
