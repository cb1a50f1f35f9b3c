"""Tests of how jobs begin, and of how they end where a process fails."""
