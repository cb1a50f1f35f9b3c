// The launch that runs: its threads, what they wait at, and how one of them stops it.
#pragma once

#include <string>
#include <vector>

#include "execution/fiber.h"
#include "execution/runtime.h"

namespace lucid_simulator {

enum class State { unstarted, running, at_barrier, at_warp, ended };

struct CudaThread {
    uint3 index;
    State state;
    Fiber* fiber;
    const char* operation;  // that it waits at
    const char* file;
    int line;
    unsigned mask;
    // What it brings to the lanes of the mask and takes from them: the value of one, or which have what it seeks.
    unsigned long long offered, sought, received;
    int source;  // -1: it seeks
};

struct Warp {
    unsigned live, waiting;
};

struct Launch {
    const Instance* instance;
    const unsigned char* packed;
    std::vector<CudaThread> threads;
    std::vector<Warp> warps;
    std::vector<unsigned> order, ready;
    size_t next_ready, next_start;
    unsigned current, live, arrived, arrived_first;
    BlockOperation barrier_operation;
    int barrier_sum, barrier_result;
    bool inside;  // a thread of the device is running
    bool of_cupy;
    Fiber host;
    std::string report;  // what has stopped it
};

extern Launch launch;

std::string text(uint3 p);
// The index of a thread of the block, as text.
std::string thread_text(unsigned number);
// Reports what is wrong where the device is now.
void note(const std::string& what);
// As `note`, and stops the launch.
[[noreturn]] void stop(const std::string& what);

}  // namespace lucid_simulator
