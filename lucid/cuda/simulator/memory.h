// Which memory a kernel may touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime.h"

std::string lucid_simulator_thread(unsigned number);
void lucid_simulator_note(const std::string& what);
[[noreturn]] void lucid_simulator_fail(const std::string& what);

namespace lucid_simulator {

void begin_launch(const Instance* instance, const unsigned char* packed, size_t shared);
void forget_fault();
void fill_shared();
unsigned char* dynamic_shared();
// What the launch has stored to allocations, or else loaded from them.
uint64_t moved_bytes(bool stored);
// The variable that the byte of shared memory belongs to, and the byte of it.
std::string shared_place(size_t offset);
// Text for a report, which Python replaces with the line of the source that made the code of the running library there.
std::string code_mark(uintptr_t code);

}  // namespace lucid_simulator
