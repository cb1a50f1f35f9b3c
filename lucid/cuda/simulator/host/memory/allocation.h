// Memory of the devices, and page-locked memory of the host.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lucid_simulator {

struct Block;

// Bytes of each device.
size_t capacity();
// Makes bytes of a device zeros; where they are many, the host gets their memory back.
void clear(uintptr_t begin, size_t size);
// What a graph does where its capture was given memory that it has given back.
void give_out_again(const Block& block);

}  // namespace lucid_simulator
