// How much of the work of the devices is done.
#pragma once

#include <cstdint>

namespace lucid_simulator {

// Whether work is done. Else it is only counted, and memory of the devices is neither read nor written.
bool executes();
// Whether only some blocks of launches are run: what the others would write stays as it is.
bool in_part();

// The blocks along one dimension that are run.
struct Chosen {
    uint64_t size, count;

    explicit Chosen(uint64_t size);
    unsigned operator[](uint64_t turn) const;
};

}  // namespace lucid_simulator
