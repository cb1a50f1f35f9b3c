"""`tuple`, `list`, `dict`, `isinstance` and `type`: Python's own, as functions get containers as they are."""

from builtins import dict, isinstance, list, tuple, type  # noqa: UP029 - scripts import them from here

__all__ = ["dict", "isinstance", "list", "tuple", "type"]
