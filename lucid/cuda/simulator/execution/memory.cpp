// Memory of the simulated device, and the check of each load and store of a kernel.
//
// g++ puts a call of __tsan_read4 and the like before each access that other threads could see. An address must lie in a
// block of memory in use, in shared memory, on the stacks of the threads, or in the tables of the kernel's library.
#include "execution/memory.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "execution/fiber.h"
#include "execution/images.h"
#include "execution/launch.h"
#include "execution/races.h"
#include "host/memory/order.h"
#include "host/state.h"

using namespace lucid_simulator;

namespace {

constexpr size_t unit_size = 512;

std::mutex table_lock;
std::map<uintptr_t, Block> table;
// The last blocks that there were, the newest first.
constexpr size_t most_given_back = 4096;
std::deque<Block> given_back;
uint64_t newest = 0;                            // number of the last block
thread_local uint64_t newest_of_graph = ~0ull;  // of those that the running graph knows
thread_local MemoryOfGraph* of_graph = nullptr;

uint64_t moved[2];  // bytes that the launch has loaded from and stored to allocations
// Of the launch. Blocks of devices begin at multiples of 512, so that no two share an entry of `recent`.
Range recent[1024], parameters, latest;  // the last is the shared variable touched before
int launching_device;

std::string counted(uint64_t bytes) {
    std::string digits = std::to_string(bytes);
    for (int i = (int)digits.size() - 3; i > 0; i -= 3) digits.insert(i, ",");
    return digits + (bytes == 1 ? " byte" : " bytes");
}

// Where `address` lies relative to `range`, and how far from it.
std::string relation(uintptr_t address, const Range& range, uint64_t* distance) {
    *distance = address < range.begin ? range.begin - address : address - range.end;
    if (address < range.begin) return counted(*distance) + " before ";
    if (address < range.end) return *distance = 0, "over the end of ";
    return *distance == 0 ? "just behind " : counted(*distance) + " behind ";
}

// `all` counts the shared memory of the launch in.
std::string nearest(uintptr_t address, bool all) {
    uint64_t least = ~0ull;
    std::string words;
    auto consider = [&](const Range& range, const std::string& what) {
        uint64_t distance;
        const std::string where = relation(address, range, &distance);
        if (distance < least) least = distance, words = where + what + " of " + counted(range.end - range.begin);
    };
    for (const auto& [begin, block] : table)
        consider({begin, begin + block.size}, block.variable            ? std::string("the variable ") + block.variable
                                              : block.device == of_host ? "memory of the host"
                                                                        : "an allocation");
    if (all) {
        for (const SharedVariable& variable : library->shared)
            consider(variable.range, "the shared variable " + variable.name);
        consider(dynamic, "the dynamic shared memory");
    }
    if (address < 4096) return "a null pointer";
    if (least < (1 << 20)) return words;
    for (const Block& block : given_back)
        if (address - block.begin < block.size) return "in memory that was given back, of " + counted(block.size);
    return "far from all memory of the device";
}

bool remember(const Range& range, uintptr_t address, size_t size) {
    if (!range.holds(address, size)) return false;
    recent[address / unit_size % 1024] = range;
    return true;
}

bool in_statics(uintptr_t address, size_t size) {
    if (latest.holds(address, size)) return true;
    auto begins_behind = [](uintptr_t place, const SharedVariable& variable) { return place < variable.range.begin; };
    const auto next = std::upper_bound(library->shared.begin(), library->shared.end(), address, begins_behind);
    if (next == library->shared.begin() || !std::prev(next)->range.holds(address, size)) return false;
    latest = std::prev(next)->range;
    return true;
}

// Under the lock.
const Block* containing(uintptr_t address, size_t size) {
    const auto next = table.upper_bound(address);
    if (next == table.begin()) return nullptr;
    const Block& block = std::prev(next)->second;
    return Range{block.begin, block.begin + block.size}.holds(address, size) ? &block : nullptr;
}

bool is_late(const Block& block) { return block.number > newest_of_graph; }

bool reaches(const Block& block, int device) {
    return !is_late(block) && (block.device == of_host || device == any_device || may_reach(device, block.device));
}

enum class Access { read, write };

bool of_others(uintptr_t address, size_t size, Access access) {
    if (parameters.holds(address, size)) return true;
    std::lock_guard<std::mutex> guard(table_lock);
    const Block* block = containing(address, size);
    if (!block || !reaches(*block, launching_device)) return false;
    // what is remembered may be written to
    if (block->constant) return access == Access::read;
    return remember({block->begin, block->begin + block->size}, address, size);
}

// Under the lock.
std::string refusal(uintptr_t address, size_t size, Access access, bool in_kernel) {
    char number[32];
    snprintf(number, sizeof number, "0x%llx", (unsigned long long)address);
    const std::string what = access == Access::read ? "read" : "write";
    const Block* block = containing(address, size);
    const bool constant = block && block->constant && in_kernel && reaches(*block, launching_device);
    return "out-of-range " + what + " of " + counted(size) + " at " + number + ", " +
           (constant ? "in the __constant__ variable " + std::string(block->variable)
            : !block ? nearest(address, in_kernel)
            : is_late(*block)
                ? "in memory that was given back and out again after the graph was captured"
                : "in memory of device " + std::to_string(block->device) + ", to which there is no peer access");
}

[[noreturn]] void refuse(uintptr_t address, size_t size, Access access, uintptr_t code) {
    std::string words;
    {
        std::lock_guard<std::mutex> guard(table_lock);
        words = refusal(address, size, access, true);
    }
    stop(words + code_mark(code));
}

// What the launch has read and written, where it is asked in which order.
struct Marks {
    Bits bits[2];
};
bool marking;
std::unordered_map<uintptr_t, Marks> marked;
Marks* marks_of[1024];
uintptr_t marked_unit[1024];

void mark(uintptr_t address, size_t size, Access access) {
    for (const uintptr_t end = address + size; address < end;) {
        const uintptr_t unit = address / unit_size, slot = unit % 1024;
        if (marked_unit[slot] != unit) marked_unit[slot] = unit, marks_of[slot] = &marked[unit];
        const size_t count = std::min(end, (unit + 1) * unit_size) - address;
        marks_of[slot]->bits[(int)access].set(address % unit_size, count);
        address += count;
    }
}

// Accesses until Python is asked whether a Ctrl-C has come: a kernel that waits for another block does so for ever.
constexpr uint64_t most_patience = 1 << 24;
uint64_t patience;

bool interrupted;

__attribute__((noinline)) void pause() {
    patience = most_patience;
    if (signalled()) interrupted = true, stop("interrupted");
}

inline void check(uintptr_t address, size_t size, Access access, void* return_address) {
    if (!--patience) pause();
    if (recent[address / unit_size % 1024].holds(address, size)) {
        moved[(int)access] += size;
        if (marking) mark(address, size, access);
        return;
    }
    if (in_stacks(address)) return;
    const uintptr_t code = (uintptr_t)return_address - 1 - library->base;
    size_t offset;
    if (dynamic.holds(address, size)) {
        offset = address - dynamic.begin;
    } else if (library->statics.holds(address, size) && in_statics(address, size)) {
        offset = statics_offset() + (address - library->statics.begin);
    } else if (of_others(address, size, access) || (access == Access::read && library->tables_hold(address, size))) {
        if (recent[address / unit_size % 1024].holds(address, size)) {
            moved[(int)access] += size;
            if (marking) mark(address, size, access);
        }
        return;
    } else {
        refuse(address, size, access, code);
    }
    access == Access::read ? load_shared(offset, size, code) : store_shared(offset, size, code);
}

}  // namespace

namespace lucid_simulator {

void begin_launch(const Instance* instance, const unsigned char* packed, size_t shared) {
    place_shared(instance->unit, shared);
    launching_device = current_device();
    marking = launched_work != nullptr;
    marked.clear();
    memset(marked_unit, 0, sizeof marked_unit);
    memset(recent, 0, sizeof recent);
    moved[0] = moved[1] = 0;
    patience = most_patience;
    interrupted = false;
    latest = {};
    parameters = {(uintptr_t)packed, (uintptr_t)packed + instance->size};
    watch_shared(statics_offset() + (library->statics.end - library->statics.begin));
}

bool was_interrupted() { return interrupted; }

uint64_t use_memory(Block block) {
    std::lock_guard<std::mutex> guard(table_lock);
    if (!block.number) block.number = ++newest;
    table[block.begin] = block;
    return block.number;
}

bool leave_memory(uintptr_t begin, size_t size) {
    std::lock_guard<std::mutex> guard(table_lock);
    const auto first = table.lower_bound(begin), end = table.lower_bound(begin + size);
    const bool found = first != end;
    for (auto entry = first; entry != end; ++entry) given_back.push_front(entry->second);
    if (given_back.size() > most_given_back) given_back.resize(most_given_back);
    table.erase(first, end);
    return found;
}

bool block_at(uintptr_t address, Block* found) {
    std::lock_guard<std::mutex> guard(table_lock);
    const Block* block = containing(address, 1);
    return block ? (*found = *block, true) : false;
}

uint64_t newest_memory() {
    std::lock_guard<std::mutex> guard(table_lock);
    return newest;
}

MemoryOfGraph::MemoryOfGraph(uint64_t newest) : outside(of_graph), outside_newest(newest_of_graph) {
    of_graph = this;
    newest_of_graph = newest;
}

MemoryOfGraph::~MemoryOfGraph() {
    of_graph = outside;
    newest_of_graph = outside_newest;
    while (!blocks.empty()) leave(blocks.begin()->first);
}

void MemoryOfGraph::leave(uintptr_t begin) {
    leave_memory(begin, 1);
    for (const Block& block : blocks.at(begin)) use_memory(block);
    blocks.erase(begin);
}

bool MemoryOfGraph::use_again(const Block& block) {
    if (!of_graph) return false;
    std::lock_guard<std::mutex> guard(table_lock);
    std::vector<Block> others;
    auto first = table.lower_bound(block.begin);
    const auto end = table.lower_bound(block.begin + block.size);
    if (first != table.begin() && std::prev(first)->second.begin + std::prev(first)->second.size > block.begin) --first;
    for (auto entry = first; entry != end; ++entry) others.push_back(entry->second);
    for (const Block& other : others)
        if (other.number < block.number || (is_late(other) && !other.captured) || of_graph->blocks.count(other.begin))
            return false;
    table.erase(first, end);
    table[block.begin] = block;
    of_graph->blocks[block.begin] = others;
    return true;
}

void MemoryOfGraph::leave_again(uintptr_t begin) {
    if (of_graph && of_graph->blocks.count(begin)) of_graph->leave(begin);
}

std::string fault_of(uintptr_t address, size_t size, bool stores, int device) {
    std::lock_guard<std::mutex> guard(table_lock);
    const Block* block = containing(address, size);
    if (block && reaches(*block, device)) return "";
    return refusal(address, size, stores ? Access::write : Access::read, false);
}

thread_local std::shared_ptr<const Work> launched_work;

std::string race_of_launch() {
    if (!launched_work) return "";
    for (const auto& [unit, marks] : marked)
        for (const bool stores : {true, false}) {
            const Bits& bits = marks.bits[stores];
            if (std::all_of(std::begin(bits.words), std::end(bits.words), [](uint64_t word) { return !word; }))
                continue;
            std::string race = race_with(launched_work, unit, bits, stores);
            if (!race.empty()) return race;
        }
    return "";
}

uint64_t moved_bytes(bool stored) { return moved[stored]; }

}  // namespace lucid_simulator

#define LUCID_EXPORT __attribute__((visibility("default")))

extern "C" {

// ---- what the sanitizer calls ----

#define LUCID_ACCESS(name, size)                                    \
    LUCID_EXPORT void __tsan_##name##read##size(uintptr_t a) {      \
        check(a, size, Access::read, __builtin_return_address(0));  \
    }                                                               \
    LUCID_EXPORT void __tsan_##name##write##size(uintptr_t a) {     \
        check(a, size, Access::write, __builtin_return_address(0)); \
    }
LUCID_ACCESS(, 1)
LUCID_ACCESS(, 2)
LUCID_ACCESS(, 4)
LUCID_ACCESS(, 8)
LUCID_ACCESS(, 16)
LUCID_ACCESS(unaligned_, 2)
LUCID_ACCESS(unaligned_, 4)
LUCID_ACCESS(unaligned_, 8)
LUCID_ACCESS(unaligned_, 16)
LUCID_EXPORT void __tsan_read_range(uintptr_t a, size_t size) {
    if (size) check(a, size, Access::read, __builtin_return_address(0));
}
LUCID_EXPORT void __tsan_write_range(uintptr_t a, size_t size) {
    if (size) check(a, size, Access::write, __builtin_return_address(0));
}
LUCID_EXPORT void __tsan_init() {}
}
