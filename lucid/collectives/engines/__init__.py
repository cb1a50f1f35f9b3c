"""What takes arrays from process to process: MPI, NCCL, and nothing for a process that is alone."""
