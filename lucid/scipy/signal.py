"""`scipy.signal`, differentiated: see `lucid.scipy`."""

from __future__ import annotations

from lucid.numpy.border import names_of, wrapped
from lucid.scipy.rules import convolutions, recursions, signals
from lucid.scipy.rules.rule import constants

__all__: list[str] = []

constants(
    "signal.argrelextrema signal.argrelmax signal.argrelmin signal.choose_conv_method signal.find_peaks "
    "signal.find_peaks_cwt signal.peak_prominences signal.peak_widths"
)

__getattr__, __dir__ = names_of("scipy.signal", globals(), wrapped)
del convolutions, recursions, signals
