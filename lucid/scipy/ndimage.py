"""`scipy.ndimage`, differentiated: see `lucid.scipy`."""

from __future__ import annotations

from lucid.numpy.border import names_of, wrapped
from lucid.scipy.rules.images import filters, ranks, splines, transforms
from lucid.scipy.rules.rule import constants

__all__: list[str] = []

constants(
    "ndimage.binary_closing ndimage.binary_dilation ndimage.binary_erosion ndimage.binary_fill_holes "
    "ndimage.binary_hit_or_miss ndimage.binary_opening ndimage.binary_propagation ndimage.find_objects "
    "ndimage.label ndimage.maximum_position ndimage.minimum_position"
)

__getattr__, __dir__ = names_of("scipy.ndimage", globals(), wrapped)
del filters, ranks, splines, transforms
