// Which work comes before which. Two pieces of work that touch one place, one of them to write, and that no stream, event
// or wait orders, are a race: on a GPU they may run at once, or the other way round.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lucid_simulator {

constexpr size_t unit_bytes = 512;

// The bytes of a unit of memory that are meant, one bit for each.
struct Bits {
    uint64_t words[unit_bytes / 64] = {};
    void set(size_t first, size_t count);
};

struct Work;

// Whether work is ordered: while there are streams beside the default ones, without which all is in one order.
bool orders();
void stream_made(const void* stream, int device, bool blocking);
void stream_gone(const void* stream);
// While one with `known` lives it is known what the host has waited for, whether or not there are streams.
class KnownOrder {
    const bool known;

 public:
    explicit KnownOrder(bool known);
    ~KnownOrder();
    KnownOrder(const KnownOrder&) = delete;
};
// Work is queued; null if nothing is ordered, and the work is not one to be `known` for all that.
std::shared_ptr<const Work> begin_work(const void* stream, int device, const std::string& name, bool known = false);
const std::string& words_of(const Work& work);
bool comes_before(const Work& first, const Work& second);
// Whether the host has waited for it, or would if it waited for a stream or an event.
bool is_past(const Work& work);
bool stream_comes_after(const void* stream, int device, const Work& work);
bool event_comes_after(const void* event, const Work& work);
// Lines of Python that queued what a graph runs now.
extern thread_local std::vector<const std::string*> captured_at;
// What is wrong if the work touches that; "" if nothing is.
std::string race_with(const std::shared_ptr<const Work>& work, uintptr_t unit, const Bits& bits, bool stores);
std::string race_with(const std::shared_ptr<const Work>& work, uintptr_t begin, size_t size, bool stores);
// The memory goes back to the system: what touched it is done.
void forget_accesses(uintptr_t begin, size_t size);

void event_recorded(const void* event, const void* stream, int device);
void stream_waits(const void* stream, int device, const void* event);
void host_waits_for_stream(const void* stream, int device);
void host_waits_for_event(const void* event);
void host_waits_for_device(int device);

}  // namespace lucid_simulator
