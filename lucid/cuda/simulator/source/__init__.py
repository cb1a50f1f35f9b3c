"""What the simulator reads of a source of CUDA C++, beside what g++ compiles."""
