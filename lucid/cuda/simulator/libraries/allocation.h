// Memory of the devices, and page-locked memory of the host.
#pragma once

#include <cstddef>

namespace lucid_simulator {

// Bytes of each device.
size_t capacity();

}  // namespace lucid_simulator
