"""Opcodes of a pickle: each byte is one that is read, one that is refused by its name, or none."""

from __future__ import annotations

import pickletools
import re

import pytest

import lucid
from lucid.errors import CheckpointError
from lucid.serialization import pickles
from tests.serialization.test_pytorch import archive

READ = {"(", "."}.union(*(getattr(pickles, name) for name in ("NUMBERS", "MEMOS", "TEXTS", "VALUES", "OPCODES")))


def test_what_each_byte_means_as_an_opcode():
    """Of those that are not read a message names pickle's, and says of the others that they are none."""
    known = {code.code: code.name for code in pickletools.opcodes}
    assert known.keys() >= READ
    for byte in range(256):
        if (code := chr(byte)) not in READ:
            words = f"takes the opcode {known[code]}," if code in known else f"{code!r} is no opcode"
            with pytest.raises(CheckpointError, match=re.escape(words)):
                lucid.load(archive(bytes([byte])))
