#include "host/handles.h"

#include <cstdint>
#include <mutex>
#include <set>

#include "host/state.h"

namespace lucid_simulator {

namespace {

std::mutex lock;
std::set<const void*> streams;

}  // namespace

bool is_default(const void* stream) { return (uintptr_t)stream <= 2; }

int check_stream(const void* stream) {
    if (is_default(stream)) return success;
    std::lock_guard<std::mutex> guard(lock);
    return streams.count(stream) ? success : fail(invalid_handle);
}

int device_of(const void* stream) { return is_default(stream) ? current_device() : ((const Stream*)stream)->device; }

bool is_blocking(const void* stream) { return is_default(stream) || !(((const Stream*)stream)->flags & non_blocking); }

void add_stream(const Stream* stream) {
    std::lock_guard<std::mutex> guard(lock);
    streams.insert(stream);
}

bool remove_stream(const void* stream) {
    std::lock_guard<std::mutex> guard(lock);
    return streams.erase(stream) > 0;
}

}  // namespace lucid_simulator
