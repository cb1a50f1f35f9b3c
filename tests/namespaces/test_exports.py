"""What modules export follows from their imports, and those of ops, methods and ufuncs from one table."""

from __future__ import annotations

from importlib import import_module

import pytest

from tests.namespaces.exports import FILES, LUCID, written
from tests.namespaces.sections import TABLE, import_lines, table, with_sections


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(LUCID).as_posix())
def test_a_file_is_as_written(path):
    """Its sections are those of `ops.txt`; `__all__`, and the table of what is imported later, those of its imports."""
    assert written(path) == path.read_text(encoding="utf-8"), (
        f"lucid/{path.relative_to(LUCID)} is not as tests/namespaces/ops.txt and its imports say: enter names of ops "
        "there, and run python -m tests.namespaces.exports"
    )


def test_what_is_said_by_the_imports(tmp_path, monkeypatch):
    """Names from lucid, also under another one and for type checkers alone, second names and what is defined."""
    monkeypatch.setattr("tests.namespaces.exports.LUCID", tmp_path)
    (tmp_path / "linalg").mkdir()
    path = tmp_path / "linalg" / "__init__.py"
    path.write_text(
        "import os\nfrom typing import TYPE_CHECKING\nfrom lucid.ops import exp, log as ln, log10, log2\n"
        "from lucid.public import later as _later\n"
        "if TYPE_CHECKING:\n    from lucid import fx as fx\n    from lucid.linalg import inner\n"
        "    from lucid.func import Map as map, vmap\n"
        "else:\n    _LATER = {}\n\ndef _hidden(): ...\n\nclass Shown: ...\n\nsecond, third = exp, ln\n__all__ = []\n",
        encoding="utf-8",
    )
    text = written(path)
    assert '__all__ = ["Shown", "exp", "inner", "ln", "log2", "log10", "map", "second", "third", "vmap"]\n' in text
    later = '{"fx": "lucid", "inner": "lucid.linalg.inner", "map": "lucid.func:Map", "vmap": "lucid.func"}'
    assert f"    _LATER = {later}\n" in text


MARKS = {
    kind: f"# {kind}, of tests/namespaces/ops.txt by `python -m tests.namespaces.exports`"
    for kind in ("imports", "later imports", "methods", "in-place methods", "second names", "ufuncs")
}
OPS = table(
    "# a comment\nelementwise.arithmetic\n    lucid method in_place numpy: neg/negative add\n"
    "index.select as picking\n    lucid functional method: select\n    special=pick: chosen\n"
    "fft.inverses later\n    lucid=inverse method=inverse: inv\n"
)


def test_what_a_line_of_the_table_says():
    """Second names, names that differ by place, ufuncs; sorted, and last the function of the file's own name."""
    rows = [
        (
            op.path.removeprefix("lucid.ops."),
            op.called,
            op.later,
            " ".join(f"{word}={'/'.join(names)}" for word, names in op.names.items()),
        )
        for op in OPS
    ]
    assert rows == [
        ("elementwise.arithmetic", "arithmetic.add", False, "lucid=add method=add in_place=add numpy=add"),
        (
            "elementwise.arithmetic", "arithmetic.neg", False,
            "lucid=neg/negative method=neg/negative in_place=neg/negative numpy=negative",
        ),
        ("fft.inverses", "inverses.inv", True, "lucid=inverse method=inverse"),
        ("index.select", "picking.chosen", False, "special=pick"),
        ("index.select", "picking.select", False, "lucid=select functional=select method=select"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a.b\n    lucid methods: exp", "exp: expected one of .*, got 'methods'"),
        ("a.b\n    lucid: exp\n    method: exp", "exp stands twice below a.b"),
        ("a.b\n    lucid numpy: relu", "relu: no ufunc has its name"),
        ("a.b later\n    lucid in_place: relu", "relu: a.b is imported later"),
    ],
)
def test_a_line_that_says_nothing(text, message):
    """Is refused with what it should have said."""
    with pytest.raises(ValueError, match=message):
        table(text)


def test_files_of_one_name():
    """Of two of which a file needs both, one has another name there."""
    ops = table("a.one\n    method: f\nb.one\n    method: g")
    text = f"{MARKS['imports']}\nimport x\n"
    with pytest.raises(ValueError, match="another file has its name"):
        with_sections(LUCID / "tensor" / "methods.py", text, ops)


def test_imports_beside_those_of_the_table():
    """What is written by hand stays, unless it is an op that the file does not use."""
    text = (
        f"{MARKS['imports']}\nfrom lucid.ops.base import keywords as _keywords\nfrom lucid.ops.gone import gone, used\n"
        f"from lucid.public import publish\n\nif TYPE_CHECKING:\n    {MARKS['later imports']}\n"
        "    from lucid.serialization import load\n\n_keywords(used)\n"
    )
    assert with_sections(LUCID / "__init__.py", text, OPS) == (
        f"{MARKS['imports']}\nfrom lucid.ops.base import keywords as _keywords\n"
        "from lucid.ops.elementwise.arithmetic import add, neg\n"
        "from lucid.ops.elementwise.arithmetic import neg as negative\nfrom lucid.ops.gone import used\n"
        "from lucid.ops.index.select import select\nfrom lucid.public import publish\n\nif TYPE_CHECKING:\n"
        f"    {MARKS['later imports']}\n    from lucid.ops.fft.inverses import inv as inverse\n"
        "    from lucid.serialization import load\n\n_keywords(used)\n"
    )


def test_second_names_are_set_where_there_is_room_for_them():
    """In a file with a section of them, but for those that a function has in the place of its own."""
    text = f"{MARKS['imports']}\nimport x\n\n{MARKS['second names']}\n"
    ops = table("a.one\n    lucid=two: one\n    lucid: three/third/drei four/vier")
    assert with_sections(LUCID / "__init__.py", text.replace("import x", "from lucid import x"), ops) == (
        f"{MARKS['imports']}\nfrom lucid import x\nfrom lucid.ops.a.one import four, three\n"
        "from lucid.ops.a.one import one as two\n\n"
        f"{MARKS['second names']}\nvier, third, drei = four, three, three\n"
    )


def test_lines_beside_those_of_the_table():
    """What stands before the section and after it stays; the modules that are used there, too, are imported."""
    text = (
        f"{MARKS['imports']}\nfrom lucid.ops.shape import axes, joining\n\nclass Methods:\n    flip = axes.flip\n\n"
        f"    {MARKS['methods']}\n    old = joining.old\n\n    other = 1\n"
    )
    assert with_sections(LUCID / "tensor" / "methods.py", text, OPS) == (
        f"{MARKS['imports']}\nfrom lucid.ops.elementwise import arithmetic\n"
        "from lucid.ops.index import select as picking\nfrom lucid.ops.shape import axes\n\nclass Methods:\n"
        f"    flip = axes.flip\n\n    {MARKS['methods']}\n    # elementwise\n    add = arithmetic.add\n"
        "    neg = negative = arithmetic.neg\n    # fft\n    inverse = inverses.inv\n    # index\n"
        "    select = picking.select\n\n    other = 1\n"
    )
    text = f"class InPlaceMethods:\n    {MARKS['in-place methods']}\n\nUFUNCS = {{\n    {MARKS['ufuncs']}\n}}\n"
    assert with_sections(LUCID / "tensor" / "inplace_methods.py", text, OPS) == (
        f"class InPlaceMethods:\n    {MARKS['in-place methods']}\n    # elementwise\n"
        "    add_ = in_place(arithmetic.add)\n    neg_ = negative_ = in_place(arithmetic.neg)\n\n"
        f'UFUNCS = {{\n    {MARKS["ufuncs"]}\n    "add": arithmetic.add,\n    "negative": arithmetic.neg,\n}}\n'
    )


def test_a_section_of_no_such_name():
    """Is refused: a mark that is mistyped would write nothing."""
    with pytest.raises(ValueError, match="no section is called 'method'"):
        with_sections(LUCID / "x.py", MARKS["methods"].replace("methods,", "method,"), OPS)


def test_imports_as_ruff_has_them():
    """Numbers in the order of their size, classes first, one statement for each other name, long ones by line."""
    names = [f"some_long_name_of_number_{k}" for k in (10, 9, 1, 2)]
    wanted = {
        ("m", "b", "b"),
        ("m", "Z", "Z"),
        ("m", "b", "c"),
        ("a", "x", "x"),
        *(("n", name, name) for name in names),
    }
    assert import_lines(wanted, "  ") == [
        "  from a import x", "  from m import Z, b", "  from m import b as c", "  from n import (",
        *(f"      some_long_name_of_number_{k}," for k in (1, 2, 9, 10)), "  )",
    ]  # fmt: skip


def test_the_table_names_what_there_is():
    """Each function that it has is one, or a class or a value, of that file of `lucid.ops`."""
    lost = [
        f"{op.path}.{op.own}"
        for op in table(TABLE.read_text(encoding="utf-8"))
        if not hasattr(import_module(op.path), op.own)
    ]
    assert not lost, f"tests/namespaces/ops.txt names {lost}, which are not there"
