"""All checks of what processes train together, in one job."""

from __future__ import annotations

from lucid import distributed as dist
from tests.collectives.jobs import go_through
from tests.distributed.scripts import hooks, normalisation, zero

CHECKS = (*zero.CHECKS, *normalisation.CHECKS, *hooks.CHECKS)

if __name__ == "__main__":
    dist.init_process_group("mpi", timeout=60)
    go_through(CHECKS, dist.get_rank(), dist.get_rank(), dist.get_world_size())
    dist.destroy_process_group()
