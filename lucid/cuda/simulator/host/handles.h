// Streams by their handles.
#pragma once

namespace lucid_simulator {

// Flags of cudaStreamCreateWithFlags.
constexpr unsigned non_blocking = 1;

struct Stream {
    unsigned flags;
    int priority, device;
};

// The null stream, and CUDA's names for the legacy and the threads' own default stream.
bool is_default(const void* stream);
// 0, or the error of a stream that is none of a device.
int check_stream(const void* stream);
int device_of(const void* stream);
// Whether it and the legacy default stream wait for each other.
bool is_blocking(const void* stream);

void add_stream(const Stream* stream);
// Its memory is kept, so that no other stream gets its handle and a use of it is told. Whether there was such a stream.
bool remove_stream(const void* stream);

}  // namespace lucid_simulator
