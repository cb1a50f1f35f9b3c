// Which accesses of shared memory are ordered: by barriers of the block and, within a warp, by __syncwarp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lucid_simulator {

// A launch begins whose blocks have that many bytes of shared memory, addressed by offset.
void watch_shared(size_t bytes);
// All accesses before are ordered before all that follow: a block begins, or its barrier lets the threads go.
void order_block();
// Those of the lanes of the mask before those of the same lanes that follow; whole: no other lane of the warp is left.
void order_lanes(unsigned warp, unsigned lanes, bool whole);
// Whether the running thread is inside of an atomic operation.
extern bool atomically;
// The running thread loads or stores there, by an instruction at that offset of its library; it may be a race.
void load_shared(size_t offset, size_t size, uintptr_t code);
void store_shared(size_t offset, size_t size, uintptr_t code);

}  // namespace lucid_simulator
