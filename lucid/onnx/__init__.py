"""PyTorch's address of the export to ONNX, which lucid does not have: scripts that import it run until they export."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.errors import LucidError

if TYPE_CHECKING:
    from typing import NoReturn

__all__ = ["export"]


def export(*_args: object, **_kwargs: object) -> NoReturn:
    """Refuse to write a model as ONNX by a LucidError that says what to do instead."""
    raise LucidError(
        "onnx.export: lucid writes no ONNX files: save the state_dict() by lucid.save, whose files safetensors reads, "
        "and export from a PyTorch model that has loaded it"
    )
