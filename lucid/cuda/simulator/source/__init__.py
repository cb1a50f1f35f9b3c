"""The analysis of CUDA C++ source by the simulator, beside its compilation by g++."""
