// Memory of the devices, and page-locked memory of the host.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lucid_simulator {

// Makes bytes of a device zeros; where they are many, the host gets their memory back.
void clear(uintptr_t begin, size_t size);

}  // namespace lucid_simulator
