"""Engines that move arrays between processes: MPI, NCCL, and a trivial one for a process that is alone."""
