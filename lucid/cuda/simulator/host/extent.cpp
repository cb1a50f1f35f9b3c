#include "host/extent.h"

namespace lucid_simulator {

namespace {

bool executing = true;
uint64_t first_blocks = ~0ull, last_blocks = 0;  // how many of the first and last along each dimension are run

}  // namespace

bool executes() { return executing; }
bool in_part() { return first_blocks != ~0ull; }

Chosen::Chosen(uint64_t size) : size(size), count(size) {
    if (size > first_blocks && size - first_blocks > last_blocks) count = first_blocks + last_blocks;
}

unsigned Chosen::operator[](uint64_t turn) const {
    return (unsigned)(turn < first_blocks || count == size ? turn : size - (count - turn));
}

}  // namespace lucid_simulator

#define LUCID_EXPORT extern "C" __attribute__((visibility("default")))

LUCID_EXPORT void lucid_set_executes(int value) { lucid_simulator::executing = value; }
LUCID_EXPORT int lucid_executes() { return lucid_simulator::executing; }
LUCID_EXPORT void lucid_set_blocks(unsigned long long first, unsigned long long last) {
    lucid_simulator::first_blocks = first;
    lucid_simulator::last_blocks = last;
}
