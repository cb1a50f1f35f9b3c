// cudaMalloc and its like. What CuPy's pool hands out of an allocation is a block of its own: the pool tells of it by
// lucid_hand_out and lucid_take_back, and from then on nothing may touch what lies between blocks.
#include "host/memory/allocation.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "execution/memory.h"
#include "host/capture.h"
#include "host/extent.h"
#include "host/handles.h"
#include "host/memory/host_memory.h"
#include "host/memory/order.h"
#include "host/state.h"

namespace lucid_simulator {

namespace {

constexpr int garbage = 0xFF;  // NaN in every floating type, -1 in the signed ones
constexpr size_t unit = 512;
// What is at least so large begins as zeros, and takes the host's memory only where it is written to.
constexpr size_t sparse = 1 << 27;

// The driver's own.
struct Pool {
    int device;
    uint64_t threshold, used, most_used, reserved, most_reserved;
};
// By which one grows.
constexpr size_t reserve = 1 << 25;

struct Chunk {
    size_t size;
    void* storage;
    size_t mapped;  // bytes of it, 0 if it is the heap's
    int device;
    Pool* pool;  // null if it is of none
    bool managed;
};

std::mutex lock;
std::map<uintptr_t, Chunk> chunks;
std::map<int, size_t> held;
std::map<int, Pool> pools;

void fill(uintptr_t begin, size_t size) {
    if (!executes()) return;
    if (size >= sparse)
        clear(begin, size);
    else
        memset((void*)begin, in_part() ? 0 : garbage, size);
}

int allocate(void** out, size_t size, int device, Pool* pool = nullptr, bool managed = false) {
    make_context();
    *out = nullptr;
    if (!size) return success;
    std::lock_guard<std::mutex> guard(lock);
    if (device != of_host && held[device] + size > capacity()) return fail(no_memory);
    const size_t whole = (size + unit - 1) / unit * unit + 2 * unit;
    const bool maps = size >= sparse;
    void* storage =
        maps ? mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
             : aligned_alloc(unit, whole);
    if (!storage || storage == MAP_FAILED) return fail(no_memory);
    if (maps)
        madvise(storage, whole, MADV_NOHUGEPAGE);
    else if (executes())
        memset(storage, in_part() ? 0 : garbage, whole);
    const uintptr_t begin = (uintptr_t)storage + unit;
    chunks[begin] = {size, storage, maps ? whole : 0, device, pool, managed};
    held[device] += size;
    use_memory({begin, size, device});
    counts.allocations += device != of_host;
    return *out = (void*)begin, success;
}

int release(void* address, bool of_the_host) {
    make_context();
    if (!address) return success;
    std::lock_guard<std::mutex> guard(lock);
    const auto found = chunks.find((uintptr_t)address);
    if (found == chunks.end() || (found->second.device == of_host) != of_the_host) return fail(invalid_value);
    const Chunk& chunk = found->second;
    leave_memory(found->first, chunk.size);
    forget_accesses(found->first, chunk.size);
    forget_host_memory(found->first, chunk.size);
    held[chunk.device] -= chunk.size;
    if (chunk.mapped)
        munmap(chunk.storage, chunk.mapped);
    else
        free(chunk.storage);
    chunks.erase(found);
    return success;
}

// What a graph does where its capture was given memory that it has given back.
void give_out_again(const Block& block) {
    std::lock_guard<std::mutex> guard(lock);
    const auto next = chunks.upper_bound(block.begin);
    const bool held =
        next != chunks.begin() && block.begin + block.size <= std::prev(next)->first + std::prev(next)->second.size;
    if (held && MemoryOfGraph::use_again(block)) fill(block.begin, block.size);
}

}  // namespace

void clear(uintptr_t begin, size_t size) {
    if (size < sparse) return (void)memset((void*)begin, 0, size);
    const uintptr_t first = (begin + 4095) / 4096 * 4096, last = (begin + size) / 4096 * 4096;
    memset((void*)begin, 0, first - begin);
    madvise((void*)first, last - first, MADV_DONTNEED);
    memset((void*)last, 0, begin + size - last);
}

}  // namespace lucid_simulator

using namespace lucid_simulator;

LUCID_CUDA int cudaMalloc(void** out, size_t size) {
    if (const int code = check_unsafe("cudaMalloc")) return code;
    return allocate(out, size, current_device());
}
LUCID_CUDA int cudaMallocManaged(void** out, size_t size, unsigned) {
    if (const int code = check_unsafe("cudaMallocManaged")) return code;
    return allocate(out, size, current_device(), nullptr, true);
}
LUCID_CUDA int cudaHostAlloc(void** out, size_t size, unsigned) {
    if (const int code = check_unsafe("cudaHostAlloc")) return code;
    return allocate(out, size, of_host);
}
// The free of nothing is how threads get a context.
LUCID_CUDA int cudaFree(void* address) {
    if (const int code = address ? check_unsafe("cudaFree") : success) return code;
    return release(address, false);
}
LUCID_CUDA int cudaFreeHost(void* address) {
    if (const int code = check_unsafe("cudaFreeHost")) return code;
    return release(address, true);
}

LUCID_CUDA int cudaHostRegister(void* address, size_t size, unsigned) {
    make_context();
    if (const int code = check_unsafe("cudaHostRegister")) return code;
    return use_memory({(uintptr_t)address, size, of_host}), success;
}
LUCID_CUDA int cudaHostUnregister(void* address) {
    if (const int code = check_unsafe("cudaHostUnregister")) return code;
    Block block;
    if (!block_at((uintptr_t)address, &block)) return fail(invalid_value);
    forget_host_memory(block.begin, block.size);
    return leave_memory((uintptr_t)address, 1) ? success : fail(invalid_value);
}

LUCID_CUDA int cudaMemGetInfo(size_t* free, size_t* total) {
    make_context();
    std::lock_guard<std::mutex> guard(lock);
    *total = capacity();
    return *free = capacity() - held[current_device()], success;
}

LUCID_CUDA int cudaPointerGetAttributes(void* out, const void* address) {
    struct Attributes {
        int type, device;
        const void *on_device, *on_host;
    };
    Block block;
    if (!block_at((uintptr_t)address, &block)) return *(Attributes*)out = {0, -2, nullptr, address}, success;
    if (block.device == of_host) return *(Attributes*)out = {1, current_device(), address, address}, success;
    std::lock_guard<std::mutex> guard(lock);
    const auto next = chunks.upper_bound((uintptr_t)address);
    const auto* chunk = next == chunks.begin() ? nullptr : &*std::prev(next);
    const bool managed = chunk && (uintptr_t)address - chunk->first < chunk->second.size && chunk->second.managed;
    return *(Attributes*)out = {managed ? 3 : 2, block.device, address, managed ? address : nullptr}, success;
}

// ---- the driver's own pools: each allocation is an ordinary one ----

namespace {
Pool* default_pool(int device) {
    std::lock_guard<std::mutex> guard(lock);
    return &pools.insert({device, Pool{device, 0, 0, 0, 0, 0}}).first->second;
}
}  // namespace

LUCID_CUDA int cudaMallocFromPoolAsync(void** out, size_t size, Pool* pool, void* stream) {
    if (const int code = check_stream(stream)) return code;
    if (const int code = check_uncapturable(stream, "cudaMallocAsync (the simulator's graphs have none)")) return code;
    if (const int code = allocate(out, size, pool->device, pool)) return code;
    std::lock_guard<std::mutex> guard(lock);
    pool->used += size;
    if (pool->reserved < pool->used) pool->reserved = (pool->used + reserve - 1) / reserve * reserve;
    pool->most_used = std::max(pool->most_used, pool->used);
    pool->most_reserved = std::max(pool->most_reserved, pool->reserved);
    return success;
}
LUCID_CUDA int cudaMallocAsync(void** out, size_t size, void* stream) {
    return cudaMallocFromPoolAsync(out, size, default_pool(current_device()), stream);
}
LUCID_CUDA int cudaFreeAsync(void* address, void* stream) {
    if (const int code = check_stream(stream)) return code;
    if (const int code = check_uncapturable(stream, "cudaFreeAsync (the simulator's graphs have none)")) return code;
    {
        std::lock_guard<std::mutex> guard(lock);
        const auto found = chunks.find((uintptr_t)address);
        if (found != chunks.end() && found->second.pool) found->second.pool->used -= found->second.size;
    }
    return release(address, false);
}
LUCID_CUDA int cudaDeviceGetDefaultMemPool(void** out, int index) { return *out = default_pool(index), success; }
LUCID_CUDA int cudaDeviceGetMemPool(void** out, int index) { return *out = default_pool(index), success; }
LUCID_CUDA int cudaDeviceSetMemPool(int, void*) { return success; }
LUCID_CUDA int cudaMemPoolCreate(Pool** out, const int* properties) {
    // kind of allocation, kind of handle, and of the place: kind, device
    return *out = new Pool{properties[3], 0, 0, 0, 0, 0}, success;
}
LUCID_CUDA int cudaMemPoolDestroy(Pool*) { return success; }  // memory of it may still be in use
LUCID_CUDA int cudaMemPoolTrimTo(Pool* pool, size_t kept) {
    std::lock_guard<std::mutex> guard(lock);
    pool->reserved = std::min(pool->reserved, std::max((pool->used + reserve - 1) / reserve * reserve, (uint64_t)kept));
    return success;
}
LUCID_CUDA int cudaMemPoolGetAttribute(const Pool* pool, int which, uint64_t* out) {
    std::lock_guard<std::mutex> guard(lock);
    switch (which) {
        case 4:
            return *out = pool->threshold, success;
        case 5:
            return *out = pool->reserved, success;
        case 6:
            return *out = pool->most_reserved, success;
        case 7:
            return *out = pool->used, success;
        case 8:
            return *out = pool->most_used, success;
        default:
            return *(int*)out = 0, success;  // whether memory is used again, which tells nothing here
    }
}
LUCID_CUDA int cudaMemPoolSetAttribute(Pool* pool, int which, const uint64_t* value) {
    std::lock_guard<std::mutex> guard(lock);
    if (which == 4) pool->threshold = *value;
    if (which == 6) pool->most_reserved = pool->reserved;
    if (which == 8) pool->most_used = pool->used;
    return success;
}

// ---- what CuPy's pool tells ----

// The pool has an allocation, and hands out parts of it.
LUCID_CUDA void lucid_divide(uintptr_t begin) {
    std::lock_guard<std::mutex> guard(lock);
    const auto found = chunks.find(begin);
    if (found != chunks.end()) leave_memory(begin, found->second.size), --counts.allocations;
}

LUCID_CUDA void lucid_hand_out(uintptr_t begin, size_t size) {
    Block block{begin, size, 0};
    {
        std::lock_guard<std::mutex> guard(lock);
        const auto next = chunks.upper_bound(begin);
        if (next == chunks.begin()) return;
        block.device = std::prev(next)->second.device;
        // what was taken back by a thread whose pool told nothing
        leave_memory(begin, size);
        fill(begin, size);
        block.captured = is_captured_by_thread();
        block.number = use_memory(block);
        ++counts.allocations;
    }
    record_given_out(block, give_out_again);
}

LUCID_CUDA void lucid_take_back(uintptr_t begin) {
    Block block;
    if (!block_at(begin, &block)) return;
    leave_memory(begin, 1);
    record_given_back(block);
}
