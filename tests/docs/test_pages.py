"""The code of every page runs as it is printed, and prints what the comments beside its prints say."""

from __future__ import annotations

import pytest

from tests.docs.pages import MARKS, ROOT, blocks, check, pages, printed_by_script, said
from tests.pieces.elsewhere import default_device

PAGES = {path: blocks(text) for path, text in pages().items()}
ON_A_DEVICE = "needs a CUDA device"


def of_kind(mark):
    """Return the blocks with a mark that begins so, with their place as the name of the test."""
    return [
        pytest.param(path, block, id=f"{path}:{block.line}")
        for path, found in PAGES.items()
        for block in found
        if block.mark.startswith(mark)
    ]


def program(path, *marks):
    """Run the blocks of a page that have no mark, or one of these, one after the other; return their names."""
    names = {}
    for block in PAGES[path]:
        if not block.mark or block.mark in marks:
            check(block.code, names)
    return names


@pytest.mark.parametrize("path", PAGES)
def test_every_block_is_run_or_says_why_not(path):
    """The comment above a block is one of those that are known."""
    unknown = [f"{path}:{block.line}: {block.mark}" for block in PAGES[path] if not MARKS.fullmatch(block.mark)]
    assert not unknown, f"tests/docs/pages.py has the comments that may stand above a block: {unknown}"
    named = {mark[7:].partition(":")[0] for _, mark, _ in PAGES[path] if mark.startswith("run by ")}
    missing = [name for name in named if not (ROOT / name).exists()]
    assert not missing, f"{path} names tests that are not there: {missing}"


@pytest.mark.cpu("tensors on another device print it")
@pytest.mark.parametrize("path", [path for path, found in PAGES.items() if any(not block.mark for block in found)])
def test_page(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program(path)


@pytest.mark.gpu
@pytest.mark.parametrize("path", [path for path, found in PAGES.items() if ON_A_DEVICE in {b.mark for b in found}])
def test_page_on_a_device(path, tmp_path, monkeypatch):
    """All blocks of a page run where there is a device, which those name that use it."""
    monkeypatch.chdir(tmp_path)
    with default_device("cpu"):
        program(path, ON_A_DEVICE)


@pytest.mark.cpu("tensors on another device print it")
@pytest.mark.parametrize(("path", "block"), of_kind("recipe: "))
def test_recipe(path, block):
    check(block.code, program(path))


@pytest.mark.parametrize(("path", "block"), of_kind("program"))
def test_program(path, block, tmp_path, monkeypatch):
    """A script does what it says, and prints something."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    assert said(block.code), "a script prints something, with what it prints in a comment beside it"
    assert " ".join(" ".join(printed_by_script(block.code, tmp_path)).split()) == said(block.code)
