// cudaMemcpy, cudaMemset and their like.
#include <cstring>

#include "../memory.h"
#include "order.h"
#include "state.h"

using namespace lucid_simulator;

namespace {

enum Kind { host_to_host, host_to_device, device_to_host, device_to_device, by_address };

bool on_device(const void* address) {
    Block block;
    return block_at((uintptr_t)address, &block) && block.device != of_host;
}

void host_waits(void* stream) {
    host_waits_for_stream(stream, current_device());
    ++counts.synchronisations;
}

int copy(void* to, const void* from, size_t size, int kind, void* stream, bool waits) {
    if (!size) return make_context(), success;
    if (kind == by_address) kind = (on_device(from) ? device_to_host : 0) | (on_device(to) ? host_to_device : 0);
    const bool loads = kind & device_to_host, stores = kind & host_to_device;
    // CUDA refuses addresses of the other side
    if ((!loads && on_device(from)) || (!stores && on_device(to))) return fail(invalid_value);
    std::vector<Touched> touched;
    if (loads) touched.push_back({(uintptr_t)from, size, false});
    if (stores) touched.push_back({(uintptr_t)to, size, true});
    const int code = queue_own(stream, "a copy", touched, [=] { memmove(to, from, size); }, true);
    // the driver tells of a bad address at the call
    if (code) return code == illegal_address ? fail_as(invalid_value) : code;
    // What was not computed is zeros for the host.
    if (!executes() && !stores) loads ? memset(to, 0, size) : memmove(to, from, size);
    ++counts.copies;
    if (loads && !stores) counts.to_host += size;
    if (stores && !loads) counts.to_device += size;
    if (waits) host_waits(stream);
    return success;
}

int fill(void* to, int value, size_t size, void* stream) {
    if (!size) return make_context(), success;
    const int code =
        queue_own(stream, "a fill", {{(uintptr_t)to, size, true}}, [=] { memset(to, value, size); }, false);
    if (code) return code == illegal_address ? fail_as(invalid_value) : code;
    return ++counts.copies, success;
}

int copy_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t rows, int kind,
              void* stream, bool waits) {
    for (size_t row = 0; row < rows; ++row) {
        char* target = (char*)to + row * to_pitch;
        if (const int code = copy(target, (const char*)from + row * from_pitch, width, kind, stream, false)) return code;
    }
    if (waits) host_waits(stream);
    return success;
}

}  // namespace

// A copy from the host that does not wait may still be seen as done: pageable memory is read before the call returns.
LUCID_CUDA int cudaMemcpy(void* to, const void* from, size_t size, int kind) {
    return copy(to, from, size, kind, nullptr, true);
}
LUCID_CUDA int cudaMemcpyAsync(void* to, const void* from, size_t size, int kind, void* stream) {
    return copy(to, from, size, kind, stream, false);
}
LUCID_CUDA int cudaMemcpyPeer(void* to, int, const void* from, int, size_t size) {
    return copy(to, from, size, device_to_device, nullptr, true);
}
LUCID_CUDA int cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t size, void* stream) {
    return copy(to, from, size, device_to_device, stream, false);
}
LUCID_CUDA int cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t rows,
                            int kind) {
    return copy_rows(to, to_pitch, from, from_pitch, width, rows, kind, nullptr, true);
}
LUCID_CUDA int cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                 size_t rows, int kind, void* stream) {
    return copy_rows(to, to_pitch, from, from_pitch, width, rows, kind, stream, false);
}
LUCID_CUDA int cudaMemset(void* to, int value, size_t size) { return fill(to, value, size, nullptr); }
LUCID_CUDA int cudaMemsetAsync(void* to, int value, size_t size, void* stream) { return fill(to, value, size, stream); }
LUCID_CUDA int cudaMemPrefetchAsync(const void*, size_t, int device, void* stream) {
    if (device < of_host || device >= device_count()) return fail(invalid_device);
    return check_stream(stream);
}
LUCID_CUDA int cudaMemAdvise(const void*, size_t, int advice, int) {
    return advice >= 1 && advice <= 6 ? success : fail(invalid_value);
}
