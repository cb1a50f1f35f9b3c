// Which memory a kernel may touch.
#pragma once

#include <cstddef>
#include <string>

#include "runtime.h"

void lucid_simulator_note(const std::string& what);
[[noreturn]] void lucid_simulator_fail(const std::string& what);

namespace lucid_simulator {

void begin_launch(const Instance* instance, const unsigned char* packed, size_t shared);
void forget_fault();
void fill_shared();
unsigned char* dynamic_shared();

}  // namespace lucid_simulator
