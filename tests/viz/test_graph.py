"""`lucid.viz.graph`: every node and edge of a backward pass once, hooks marked, and files of any format."""

from __future__ import annotations

import re
import stat

import pytest

import lucid
from lucid import nn, viz
from lucid.errors import SettingError
from tests.device import DEVICE


def test_nodes_and_edges():
    """A value that is used twice is one node with two arrows, of which each leads the way that values took."""
    x = lucid.ones(2, requires_grad=True, device=DEVICE)
    y = x.exp()
    z = (y * y).sum()
    x.register_hook(lambda grad: None)
    x.register_post_accumulate_grad_hook(lambda tensor: None)
    y.register_hook(lambda grad: None)
    y.register_hook(lambda grad: None)
    text = str(viz.graph(z))
    nodes = dict(re.findall(r'^  (n\d+) \[label="(\w+)', text, re.MULTILINE))
    assert sorted(nodes.values()) == ["ExpBackward0", "MulBackward0", "SumBackward0", "leaf"]
    edges = sorted((nodes[a], nodes[b]) for a, b in re.findall(r"^  (n\d+) -> (n\d+)$", text, re.MULTILINE))
    assert edges == [
        ("ExpBackward0", "MulBackward0"), ("ExpBackward0", "MulBackward0"), ("MulBackward0", "SumBackward0"),
        ("leaf", "ExpBackward0"),
    ]  # fmt: skip
    assert 'label="ExpBackward0\\n2 tensor hooks" style=bold' in text
    assert 'label="leaf (2,)\\n1 tensor hook\\n1 post-accumulate hook" shape=box style=bold' in text
    assert text.count("style=bold") == 2


def test_several_roots_and_names():
    model = nn.Sequential(nn.Linear(2, 2, device=DEVICE), nn.Linear(2, 2, device=DEVICE))
    x = lucid.ones(1, 2, device=DEVICE)
    text = str(viz.graph(model(x), model[0](x), model=model))
    for name in ("0.weight (2, 2)", "0.bias (2,)", "1.weight (2, 2)", "1.bias (2,)"):
        assert text.count(f'"{name}"') == 1
    quoted = nn.ModuleDict({'a"b': nn.Linear(2, 2, bias=False, device=DEVICE)})
    text = str(viz.graph(quoted['a"b'](x), model=quoted))
    assert r'[label="a\"b.weight (2, 2)" shape=box]' in text


def test_files(tmp_path, monkeypatch):
    """The text needs no program; a picture is what ``dot`` makes of it, and an error that says so where it is not."""
    picture = viz.graph(lucid.ones(1, requires_grad=True) * 2)
    for name in ("graph.dot", "graph.gv"):
        picture.save(tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8") == picture.dot
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(viz.DotMissingError, match="graphviz's dot is not installed"):
        picture.save(tmp_path / "graph.svg")
    assert picture._repr_svg_() is None
    program = tmp_path / "dot"
    program.write_text('#!/bin/sh\n[ "$1" = -Tsvg ] || { echo no such format >&2; exit 1; }\n/bin/cat\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    picture.save(tmp_path / "graph.svg")
    assert (tmp_path / "graph.svg").read_text(encoding="utf-8") == picture._repr_svg_() == picture.dot
    with pytest.raises(viz.DotMissingError, match="cannot draw 'gif': no such format"):
        picture.save(tmp_path / "graph.gif")
    with pytest.raises(SettingError, match="with an ending"):
        picture.save(tmp_path / "graph")


def test_what_has_no_graph():
    with pytest.raises(SettingError, match="does not require grad"):
        viz.graph(lucid.ones(1))
    with pytest.raises(SettingError, match="at least one tensor"):
        viz.graph()
    with pytest.raises(TypeError, match="expected a Tensor"):
        viz.graph(3)
    with pytest.raises(TypeError, match="model: expected a Module, got"):
        viz.graph(lucid.ones(1, requires_grad=True), model=3)
    x = lucid.ones(1, requires_grad=True)
    for _ in range(2001):
        x = x * 2
    with pytest.raises(SettingError, match="at most 2,000 nodes"):
        viz.graph(x)
