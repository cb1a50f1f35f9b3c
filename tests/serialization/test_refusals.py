"""How errors show what stands in files."""

from __future__ import annotations

import ast
import sys

from lucid.serialization.refusals import plain


def test_what_a_terminal_would_not_print_is_written_as_python_writes_it():
    """Every letter there is: printable ones stay, others are escapes that stand for them, and what is long is cut."""
    for first in range(0, sys.maxunicode + 1, 4096):
        text = "".join(map(chr, range(first, first + 4096)))
        assert plain(text, 4096).isprintable()
        for letter in (*text[:128], *text[128::509]):
            shown = plain(letter, 1)
            assert shown == letter if letter.isprintable() else ast.literal_eval(f"'{shown}'") == letter
    assert plain("abc", 3) == "abc"
    assert plain("abcd", 3) == "abc..."
