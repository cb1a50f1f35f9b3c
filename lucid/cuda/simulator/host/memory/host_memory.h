// Page-locked memory of the host in copies that the host has not waited for yet: on a GPU they go on meanwhile. Until a
// wait covers such a copy, what it writes holds garbage here, and what it reads must stay as it is.
#pragma once

#include <memory>

#include "host/queue.h"

namespace lucid_simulator {

struct Work;
struct Copy;

// A copy has read or written that.
void await_host_memory(const std::shared_ptr<const Work>& work, const Touched& range);
bool host_memory_is_awaited();
// The memory goes back to the system, which waits for its copies.
void forget_host_memory(uintptr_t begin, size_t size);
// Ends the copies that the host has waited for.
void settle_host_memory();
// The error of a copy that has ended, if the host changed the memory of it too early.
int host_fault();
// Whether a query finds a copy not done, as it does once where it covers one: CUDA may say so for as long as it likes.
bool finds_unfinished(const std::function<bool(const Work&)>& covers);

// While it lives, memory holds what the copies before a piece of work have written; `touched` is what the work writes.
class HostMemoryFor {
    std::vector<std::shared_ptr<Copy>> shown;

 public:
    HostMemoryFor(const std::shared_ptr<const Work>& work, const std::vector<Touched>& touched = {});
    ~HostMemoryFor();
    HostMemoryFor(const HostMemoryFor&) = delete;
};

}  // namespace lucid_simulator
