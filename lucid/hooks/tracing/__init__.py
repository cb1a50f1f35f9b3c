"""When everything ran, forward and backward: `trace`, what it consists of, and its page."""

from lucid.hooks.tracing.spans import Region, Span
from lucid.hooks.tracing.trace import trace

__all__ = ["Region", "Span", "trace"]
