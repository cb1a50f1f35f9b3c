// Libraries of kernels, and where their variables lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "execution/runtime.h"

namespace lucid_simulator {

constexpr int garbage = 0xFF;  // NaN in every floating type, -1 in the signed ones

struct Range {
    uintptr_t begin, end;
    bool holds(uintptr_t address, size_t size) const { return address >= begin && address + size <= end; }
};

struct SharedVariable {
    Range range;
    std::string name;
};

struct Library {
    std::string path;
    uintptr_t base;
    std::vector<SharedVariable> shared;
    Range statics;  // from the first of these to the last
    Range image, writable, read_only_after_loading;
    bool tables_hold(uintptr_t address, size_t size) const {
        if (writable.holds(address, 1)) return read_only_after_loading.holds(address, size);
        return image.holds(address, size);
    }
};

// Of the launch: the library of its kernel, and its dynamic shared memory.
extern const Library* library;
extern Range dynamic;

// A launch of a kernel of the unit begins, with that many bytes of dynamic shared memory.
void place_shared(const Unit* unit, size_t bytes);
// The dynamic shared memory comes first among what is watched for races, and the variables behind it.
size_t statics_offset();
void fill_shared();
// Bytes of static shared memory that a kernel of the unit has at least: all if it is the only one, else the largest
// variable, since nobody knows which kernel uses which.
size_t least_shared(const Unit* unit);

// The variable that the byte of shared memory belongs to, and the byte of it.
std::string shared_place(size_t offset);
// Text for a report, which Python replaces with the line of the source that made the code of the running library there.
std::string code_mark(uintptr_t code);
void forget_fault();

}  // namespace lucid_simulator
