"""Numbers at the ends of their ranges, and operands of other shapes, are taken and refused as `refusals.txt` says."""

import pytest

import lucid
from tests.ops.refusals import FILE, found, written


@pytest.mark.cpu("what an op refuses it refuses before it looks at the device")
def test_what_is_taken_and_refused_is_written_down():
    """Each number and each operand of the tables ends with each probe as the file says; refusals are lucid's errors."""
    expected = {name: ours for name, (ours, _) in written().items()}
    now = found(lucid)
    told = [
        f"{name}: {signs}, {expected.get(name, 'all taken')} in the file"
        for name, signs in now.items()
        if signs != expected.get(name, "+" * len(signs))
    ]
    assert not told, f"mend it, or write {FILE.name} anew as tests/ops/refusals.py says:\n" + "\n".join(told)
    assert not expected.keys() - now.keys()
    assert not [name for name, signs in now.items() if "!" in signs]
