"""PyTorch's names in lucid: `python -m lucid.compat`; those of `torch.nn`: `python -m lucid.compat torch.nn`.

PyTorch's names, of 2.13, stand in `names.json` with how often public code uses each: in how many of 10,000 files
that import PyTorch, the mean of 14 repositories. Deprecated names and those of sparse, quantised and compiled
tensors or of other hardware are not counted. Why other names are absent says `lucid.compat.present`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.public import later as _later

if TYPE_CHECKING:
    from lucid.compat.present import Name, coverage, is_present
else:
    # `import lucid` needs the addresses alone
    _LATER = {"Name": "lucid.compat.present", "coverage": "lucid.compat.present", "is_present": "lucid.compat.present"}
    __getattr__, __dir__ = _later(globals(), _LATER)


__all__ = ["Name", "coverage", "is_present"]
