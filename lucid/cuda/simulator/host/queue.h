// The one way by which libraries put work onto a simulated device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#pragma GCC visibility push(default)

// What a function of CUDA's that the simulator has answers to C.
#define LUCID_CUDA extern "C" __attribute__((visibility("default")))

namespace lucid_simulator {

// Bytes of memory that work reads or writes.
struct Touched {
    uintptr_t begin;
    size_t size;
    bool stores;
    bool of_host = false;  // page-locked, in a copy that the host may have to wait for
};

// Runs work of a library in the order of its stream. First all that it touches is held against the blocks of memory
// that are in use: where something lies outside of them nothing is run. The report of a fault is kept for
// cudaGetErrorString, and told on the standard error, as a library answers with a number alone. Returns a cudaError_t;
// 0 is success.
int queue_work(void* stream, const std::string& name, const std::vector<Touched>& touched,
               const std::function<void()>& work);

// For work to call about what it finds out only while it runs, such as matrices whose addresses lie in memory of the
// device: touched as if it had been known before. False if the work must leave that alone, because something lies
// outside of the blocks that are in use.
bool touch(const std::vector<Touched>& touched);

}  // namespace lucid_simulator

#pragma GCC visibility pop
