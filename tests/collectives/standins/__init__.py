"""Stand-ins of packages that need a GPU; a job has them by PYTHONPATH."""
