"""Import lucid as a whole before pytest imports its files one by one.

`lucid.tensor` is the package of `Tensor` for the import system and a function for users; pytest would put the package
in the function's place.
"""

from __future__ import annotations

import lucid  # noqa: F401
