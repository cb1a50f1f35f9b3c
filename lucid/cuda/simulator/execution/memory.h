// Which memory a kernel may touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "execution/runtime.h"

namespace lucid_simulator {

struct Work;

// Whether the last launch was stopped because Python has to go on: its report is the error there.
bool was_interrupted();

constexpr int of_host = -1, any_device = -2;

// Memory in use: of a device, or of the host where the devices can reach it.
struct Block {
    uintptr_t begin;
    size_t size;
    int device;
    uint64_t number = 0;             // in the order in which blocks were given out
    const char* variable = nullptr;  // its name, if it is one
    bool constant = false;           // kernels may only read it
    bool captured = false;           // given out in a capture: for graphs that share a pool of memory
};
// Gives its number; one that has a number, as a graph uses it again, keeps that.
uint64_t use_memory(Block block);
// Ends the use of all blocks that begin there; false if none does.
bool leave_memory(uintptr_t begin, size_t size);
bool block_at(uintptr_t address, Block* found);
uint64_t newest_memory();

// While a graph runs on this host thread: what was given out after it was captured is not its memory. Blocks that came
// and went during the capture come and go again, where nobody else has their memory; those that the capture, or a later
// one, put in their place make room meanwhile.
class MemoryOfGraph {
    MemoryOfGraph* outside;
    uint64_t outside_newest;
    std::map<uintptr_t, std::vector<Block>> blocks;  // with those that make room

    void leave(uintptr_t begin);

 public:
    explicit MemoryOfGraph(uint64_t newest);
    ~MemoryOfGraph();
    MemoryOfGraph(const MemoryOfGraph&) = delete;
    // Whether the block is in use again.
    static bool use_again(const Block& block);
    static void leave_again(uintptr_t begin);
};
// What is wrong with an access from a device; "" if it lies in a block that the device may reach.
std::string fault_of(uintptr_t address, size_t size, bool stores, int device);
void begin_launch(const Instance* instance, const unsigned char* packed, size_t shared);
// What this host thread launches, if it is in an order with other work.
extern thread_local std::shared_ptr<const Work> launched_work;
// What is wrong with what the launch has touched; "" if nothing is.
std::string race_of_launch();
// What the launch has stored to allocations, or else loaded from them.
uint64_t moved_bytes(bool stored);
}  // namespace lucid_simulator
