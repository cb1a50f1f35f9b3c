"""What the benchmark commands share: the table and the file have beside each result what belongs to it."""

from __future__ import annotations

import json

from benchmarks import command
from benchmarks.measure import Peer, Row, measure

PEERS = Peer("lucid"), Peer("torch")


def test_further_columns_stand_beside_their_rows(tmp_path, capsys):
    """Of several rows each has its own text in the table, and its own values in the file."""
    names = "first", "second"
    results = [measure(Row(name, None, lambda _: lambda: 1.0), PEERS, 1) for name in names]
    command.show(results, "title", {"launches": ["seven", "eight"]})
    lines = capsys.readouterr().out.splitlines()
    for name, text in zip(names, ("seven", "eight"), strict=True):
        assert [text in line for line in lines if name in line] == [True], lines
    target = tmp_path / "results.json"
    command.write(target, results, [{"launches": 7}, {"launches": 8}])
    rows = json.loads(target.read_text(encoding="utf-8"))["rows"]
    assert [(row["name"], row["launches"]) for row in rows] == [("first", 7), ("second", 8)]
