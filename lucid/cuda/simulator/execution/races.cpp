// Races on shared memory: two threads touch the same place, at least one of them stores, and nothing orders them.
//
// Time goes on at each barrier and __syncwarp. Of each place the latest store is remembered, and of what may happen in
// any order among itself, loads and atomic operations, two each: if possible of different warps, because then whatever
// conflicts comes too early for one of them until the next barrier of the block.
#include "execution/races.h"

#include <algorithm>
#include <string>
#include <vector>

#include "execution/images.h"
#include "execution/launch.h"

using namespace lucid_simulator;

namespace {

// Time, place in the code (0 if it does not fit) and thread.
using Access = uint64_t;
constexpr int thread_bits = 10, code_bits = 22;
constexpr unsigned most_threads = 1 << thread_bits;

struct Cell {
    Access store, loads[2], atomics[2];
};

std::vector<Cell> cells;  // what is left of earlier blocks is earlier than the block, so that nothing needs clearing
size_t grain;             // bytes of a cell: 4 until an access divides a word
uint32_t now = 0, block_began;
// Until when a lane is ordered behind all of its warp, and behind single lanes.
uint32_t warp_met[most_threads / 32], lane_met[most_threads][32];

inline uint32_t time_of(Access access) { return (uint32_t)(access >> 32); }
inline unsigned thread_of(Access access) { return (unsigned)access % most_threads; }

inline bool ordered(Access earlier, unsigned self) {
    const uint32_t time = time_of(earlier);
    if (time < block_began) return true;
    const unsigned thread = thread_of(earlier);
    if (thread == self) return true;
    return thread / 32 == self / 32 && (time < warp_met[self / 32] || time < lane_met[self][thread % 32]);
}

[[noreturn]] void refuse(size_t offset, Access earlier, const char* what_earlier, Access later, const char* what) {
    auto told = [](const char* kind, Access access) {
        const uint64_t code = (uint32_t)access >> thread_bits;
        return kind + (" by thread " + thread_text(thread_of(access))) + (code ? code_mark(code) : "");
    };
    const bool one_warp = thread_of(earlier) / 32 == thread_of(later) / 32;
    stop("race on " + shared_place(offset) + ": " + told(what_earlier, earlier) + ", then " + told(what, later) +
         ", and no " + (one_warp ? "__syncwarp() or " : "") + "__syncthreads() between them");
}

inline void remember(Access (&two)[2], Access mine) {
    const unsigned self = thread_of(mine);
    if (thread_of(two[0]) == self || (thread_of(two[1]) != self && ordered(two[0], self)))
        two[0] = mine;
    else if (ordered(two[1], self) || thread_of(two[0]) / 32 == thread_of(two[1]) / 32)
        two[1] = mine;
}

// Whether it is by the same thread since the last barrier: then nothing has happened in between that conflicts.
inline bool repeats(Access earlier, Access mine) {
    return ((earlier ^ mine) & ~((((Access)1 << code_bits) - 1) << thread_bits)) == 0;
}

const char *const stored = "store", *const loaded = "load", *const updated = "atomic operation";

template <class Take> void each_cell(size_t offset, size_t size, const Take& take) {
    if (size % grain || offset % grain) {
        std::vector<Cell> finer(cells.size() * grain);
        for (size_t i = 0; i < finer.size(); ++i) finer[i] = cells[i / grain];
        cells.swap(finer);
        grain = 1;
    }
    Cell* cell = &cells[offset / grain];
    for (size_t at = 0; at < size; at += grain) take(*cell++, offset + at);
}

inline Access access_of(uintptr_t code) {
    return (Access)now << 32 | (code >> code_bits ? 0 : code << thread_bits) | lucid_running.number;
}

}  // namespace

namespace lucid_simulator {

bool atomically;

void watch_shared(size_t bytes) {
    grain = 4;
    atomically = false;
    cells.resize(bytes / grain + 1);  // fewer again, where an earlier launch divided them
    if (now >> 31 == 0) return;
    std::fill(cells.begin(), cells.end(), Cell());
    std::fill_n(warp_met, most_threads / 32, 0);
    std::fill_n(&lane_met[0][0], most_threads * 32, 0);
    now = 0;
}

void order_block() { block_began = ++now; }

void order_lanes(unsigned warp, unsigned lanes, bool whole) {
    ++now;
    if (whole) {
        warp_met[warp] = now;
        return;
    }
    uint32_t met[32] = {};
    auto(*const of_warp)[32] = lane_met + warp * 32;
    for (unsigned rest = lanes; rest; rest &= rest - 1)
        for (int other = 0; other < 32; ++other)
            met[other] = std::max(met[other], lanes >> other & 1 ? now : of_warp[__builtin_ctz(rest)][other]);
    for (unsigned rest = lanes; rest; rest &= rest - 1) std::copy_n(met, 32, of_warp[__builtin_ctz(rest)]);
}

void load_shared(size_t offset, size_t size, uintptr_t code) {
    if (atomically) return;  // the store of the same operation follows
    const Access mine = access_of(code);
    const unsigned self = lucid_running.number;
    each_cell(offset, size, [=](Cell& cell, size_t at) {
        if (repeats(cell.loads[0], mine)) return;
        if (!ordered(cell.store, self)) refuse(at, cell.store, stored, mine, loaded);
        for (Access other : cell.atomics)
            if (!ordered(other, self)) refuse(at, other, updated, mine, loaded);
        remember(cell.loads, mine);
    });
}

void store_shared(size_t offset, size_t size, uintptr_t code) {
    const Access mine = access_of(code);
    const unsigned self = lucid_running.number;
    const char* const what = atomically ? updated : stored;
    each_cell(offset, size, [=](Cell& cell, size_t at) {
        if (what == stored && repeats(cell.store, mine)) return;
        if (!ordered(cell.store, self)) refuse(at, cell.store, stored, mine, what);
        for (Access other : cell.loads)
            if (!ordered(other, self)) refuse(at, other, loaded, mine, what);
        if (what == updated) return remember(cell.atomics, mine);
        for (Access other : cell.atomics)
            if (!ordered(other, self)) refuse(at, other, updated, mine, what);
        cell.store = mine;
    });
}

}  // namespace lucid_simulator
