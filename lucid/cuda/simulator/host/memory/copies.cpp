// cudaMemcpy, cudaMemset and their like.
#include <cstring>

#include "execution/memory.h"
#include "host/capture.h"
#include "host/extent.h"
#include "host/handles.h"
#include "host/memory/allocation.h"
#include "host/memory/host_memory.h"
#include "host/memory/order.h"
#include "host/state.h"

using namespace lucid_simulator;

namespace {

enum Kind { host_to_host, host_to_device, device_to_host, device_to_device, by_address };

bool on_device(const void* address) {
    Block block;
    return block_at((uintptr_t)address, &block) && block.device != of_host;
}

bool is_page_locked(const void* address) {
    Block block;
    return block_at((uintptr_t)address, &block) && block.device == of_host;
}

// Gives the error that the wait has found.
int host_waits(void* stream) {
    host_waits_for_stream(stream, current_device());
    settle_host_memory();
    return host_fault();
}

int copy(void* to, const void* from, size_t size, int kind, void* stream) {
    if (!size) return make_context(), success;
    if (kind == by_address) kind = (on_device(from) ? device_to_host : 0) | (on_device(to) ? host_to_device : 0);
    const bool loads = kind & device_to_host, stores = kind & host_to_device;
    // CUDA refuses addresses of the other side
    if ((!loads && on_device(from)) || (!stores && on_device(to))) return fail(invalid_value);
    std::vector<Touched> touched;
    if (loads) touched.push_back({(uintptr_t)from, size, false});
    if (stores) touched.push_back({(uintptr_t)to, size, true});
    const void* of_the_host = loads ? to : from;
    const bool is_pageable = loads != stores && !is_page_locked(of_the_host);
    if (loads != stores && !is_pageable) touched.push_back({(uintptr_t)of_the_host, size, loads, true});
    // the host may have given it back when the graph is launched
    if (is_pageable)
        if (const int code = check_uncapturable(stream, "a copy of host memory that is not page-locked")) return code;
    const auto work = [=] {
        // what was not computed is zeros for the host
        if (executes() || !(loads || stores))
            memmove(to, from, size);
        else if (!stores)
            memset(to, 0, size);
        ++counts.copies;
        if (loads && !stores) counts.to_host += size;
        if (stores && !loads) counts.to_device += size;
    };
    const int code = queue_own(stream, "a copy", touched, work, true);
    // the driver tells of a bad address at the call
    if (code) return code == illegal_address ? fail_as(invalid_value) : code;
    // to pageable memory CUDA copies in the end before it returns; from there it reads before
    return is_pageable && loads ? host_waits(stream) : success;
}

// For copies that do not return before they are done, on the legacy default stream.
int finish(int code) {
    if (code) return code;
    ++counts.synchronisations;
    return host_waits(nullptr);
}

int fill(void* to, int value, size_t size, void* stream) {
    if (!size) return make_context(), success;
    const auto work = [=] {
        if (executes() && !value)
            clear((uintptr_t)to, size);
        else if (executes())
            memset(to, value, size);
        ++counts.copies;
    };
    const int code = queue_own(stream, "a fill", {{(uintptr_t)to, size, true}}, work, false);
    return code == illegal_address ? fail_as(invalid_value) : code;
}

int copy_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t rows, int kind,
              void* stream) {
    for (size_t row = 0; row < rows; ++row) {
        char* target = (char*)to + row * to_pitch;
        if (const int code = copy(target, (const char*)from + row * from_pitch, width, kind, stream)) return code;
    }
    return success;
}

}  // namespace

LUCID_CUDA int cudaMemcpy(void* to, const void* from, size_t size, int kind) {
    if (const int code = check_unsafe("cudaMemcpy")) return code;
    return finish(copy(to, from, size, kind, nullptr));
}
LUCID_CUDA int cudaMemcpyAsync(void* to, const void* from, size_t size, int kind, void* stream) {
    return copy(to, from, size, kind, stream);
}
// Comes after all that has been queued on the three devices, and before all that will be.
LUCID_CUDA int cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t size) {
    if (const int code = check_unsafe("cudaMemcpyPeer")) return code;
    for (const int device : {current_device(), to_device, from_device}) {
        if (device < 0 || device >= device_count()) return fail(invalid_device);
        host_waits_for_device(device);
    }
    return finish(copy(to, from, size, device_to_device, nullptr));
}
LUCID_CUDA int cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t size, void* stream) {
    return copy(to, from, size, device_to_device, stream);
}
LUCID_CUDA int cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t rows,
                            int kind) {
    if (const int code = check_unsafe("cudaMemcpy2D")) return code;
    return finish(copy_rows(to, to_pitch, from, from_pitch, width, rows, kind, nullptr));
}
LUCID_CUDA int cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                 size_t rows, int kind, void* stream) {
    return copy_rows(to, to_pitch, from, from_pitch, width, rows, kind, stream);
}
LUCID_CUDA int cudaMemset(void* to, int value, size_t size) {
    if (const int code = check_unsafe("cudaMemset")) return code;
    return fill(to, value, size, nullptr);
}
LUCID_CUDA int cudaMemsetAsync(void* to, int value, size_t size, void* stream) { return fill(to, value, size, stream); }
LUCID_CUDA int cudaMemPrefetchAsync(const void*, size_t, int device, void* stream) {
    if (device < of_host || device >= device_count()) return fail(invalid_device);
    if (const int code = check_stream(stream)) return code;
    return check_uncapturable(stream, "cudaMemPrefetchAsync");
}
// As cudaMemLocation: the kind 1 is a device, 2 the host.
struct Place {
    int kind, number;
};
// In CUDA 13 it has the name of the one above.
LUCID_CUDA int cudaMemPrefetchAsync_v2(const void* begin, size_t size, Place place, unsigned, void* stream) {
    if (place.kind != 1 && place.kind != 2) return fail(invalid_value);
    return cudaMemPrefetchAsync(begin, size, place.kind == 1 ? place.number : of_host, stream);
}
LUCID_CUDA int cudaMemAdvise(const void*, size_t, int advice, int) {
    return advice >= 1 && advice <= 6 ? success : fail(invalid_value);
}
