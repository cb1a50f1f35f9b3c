"""Times of everything that ran, forward and backward: `trace`, its records, and its page."""

from lucid.hooks.tracing.trace import Region, Span, trace
from lucid.public import publish as _publish

__all__ = ["Region", "Span", "trace"]

_publish(globals())
