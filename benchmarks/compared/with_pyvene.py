"""The tasks with pyvene's interventions."""

from __future__ import annotations

from typing import Any

import pyvene
import torch

from benchmarks.compared import model

LIB = torch


def net(**settings: Any) -> Any:
    return model.gpt(torch, **settings)


def capture(net: Any, x: Any) -> Any:
    wanted = [{"component": f"blocks[{k}].attn.output", "intervention": pyvene.CollectIntervention()} for k in range(4)]
    (_, kept), _ = pyvene.IntervenableModel(wanted, net)({"tokens": x})
    return kept


def ablate(net: Any, x: Any) -> Any:
    zero = {"component": "blocks[1].attn.output", "intervention": lambda base, source: base * 0}
    _, result = pyvene.IntervenableModel(zero, net)({"tokens": x})
    return result
