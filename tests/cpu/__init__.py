"""Tests of loops in C++ for the CPU."""
