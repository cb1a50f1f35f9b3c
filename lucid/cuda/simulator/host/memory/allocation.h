// Memory of the devices, and page-locked memory of the host.
#pragma once

#include <cstddef>

namespace lucid_simulator {

struct Block;

// Bytes of each device.
size_t capacity();
// What a graph does where its capture was given memory that it has given back.
void give_out_again(const Block& block);

}  // namespace lucid_simulator
