"""What PyTorch takes and refuses is what stands beside lucid's signs."""

import torch

from tests.ops.refusals import found, written


def test_the_signs_of_pytorch():
    """The file holds PyTorch's signs for each number and each operand, where they are others than lucid's."""
    known = {name: theirs for name, (_, theirs) in written().items()}
    now = {name: signs.replace("!", "-") for name, signs in found(torch).items()}
    assert {name: signs for name, signs in now.items() if signs != known.get(name, "+" * len(signs))} == {}
