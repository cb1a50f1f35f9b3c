// Vector clocks: each queue of work knows how much of the work of every queue is done before what it gets next.
#include "host/memory/order.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "host/extent.h"
#include "host/state.h"

namespace lucid_simulator {

using Clock = std::vector<uint64_t>;

struct Work {
    size_t queue;
    uint64_t time;  // how much work the queue had then
    Clock before;   // how much of each queue's is done before
    std::string words;
    uint64_t era;  // of the numbers of queues
};

namespace {

struct Queue {
    int device;
    bool is_default, blocking;
    Clock known;
};

struct Access {
    std::shared_ptr<const Work> work;
    Bits bits;
    bool stores;
};

// Ranges larger than this are not looked at.
constexpr size_t most_bytes = 64 << 20;

std::mutex lock;
std::atomic<size_t> streams_made{0}, held{0};
std::vector<Queue> queues;
std::map<std::pair<const void*, int>, size_t> numbers;  // of queues, by stream and device
std::map<const void*, Clock> marks;                     // of events
Clock host;
uint64_t era = 0;                                             // begins anew when numbers of queues are forgotten
std::unordered_map<uintptr_t, std::vector<Access>> accesses;  // by unit of memory

uint64_t at(const Clock& clock, size_t queue) { return queue < clock.size() ? clock[queue] : 0; }

void join(Clock& clock, const Clock& other) {
    if (clock.size() < other.size()) clock.resize(other.size());
    for (size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

// The legacy default stream is one of each device; another stream is of its own alone, as handles are not reused.
size_t queue_of(const void* stream, int device) {
    const bool is_default = (uintptr_t)stream <= 2;
    const auto key = std::make_pair(is_default ? nullptr : stream, is_default ? device : 0);
    const auto found = numbers.find(key);
    if (found != numbers.end()) return found->second;
    queues.push_back({device, is_default, true, {}});
    return numbers[key] = queues.size() - 1;
}

// The default stream of a device waits for all its streams but those that are non-blocking, and they wait for it.
Clock before(size_t number) {
    Clock clock = queues[number].known;
    join(clock, host);
    for (const Queue& other : queues)
        if (other.device == queues[number].device && other.blocking && queues[number].blocking &&
            other.is_default != queues[number].is_default)
            join(clock, other.known);
    return clock;
}

// Whether it is known what comes before what.
bool knows() { return streams_made > 0 || held > 0; }

// Under the lock.
void forget_what_is_past() {
    if (!orders()) accesses.clear();
    if (!knows()) marks.clear(), numbers.clear(), queues.clear(), host.clear(), ++era;
}

}  // namespace

thread_local std::vector<const std::string*> captured_at;

void Bits::set(size_t first, size_t count) {
    for (size_t end = first + count; first < end;) {
        const size_t offset = first % 64, length = std::min(end - first, 64 - offset);
        words[first / 64] |= (length == 64 ? ~0ull : (1ull << length) - 1) << offset;
        first += length;
    }
}

bool orders() { return streams_made > 0 && executes(); }

void stream_made(const void* stream, int device, bool blocking) {
    std::lock_guard<std::mutex> guard(lock);
    ++streams_made;
    queues[queue_of(stream, device)].blocking = blocking;
    queues[queue_of(stream, device)].device = device;
}

// With the last of them all is in one order again.
void stream_gone(const void*) {
    std::lock_guard<std::mutex> guard(lock);
    --streams_made;
    forget_what_is_past();
}

KnownOrder::KnownOrder(bool known) : known(known) { held += known; }

KnownOrder::~KnownOrder() {
    if (!known) return;
    std::lock_guard<std::mutex> guard(lock);
    --held;
    forget_what_is_past();
}

std::shared_ptr<const Work> begin_work(const void* stream, int device, const std::string& name, bool known) {
    if (!orders() && !known) return nullptr;
    std::string lines = python.where ? ask(python.where).text : "";
    if (!captured_at.empty()) lines = " in a graph launched" + lines;
    for (auto where = captured_at.rbegin(); where != captured_at.rend(); ++where) lines = **where + lines;
    std::lock_guard<std::mutex> guard(lock);
    // Python may have collected the last stream meanwhile
    if (!orders() && !known) return nullptr;
    const size_t number = queue_of(stream, device);
    const Clock clock = before(number);
    Queue& queue = queues[number];
    queue.known = clock;
    if (queue.known.size() <= number) queue.known.resize(number + 1);
    const uint64_t time = ++queue.known[number];
    const std::string where = queue.is_default ? "the default stream of device " + std::to_string(queue.device)
                                               : "stream " + std::to_string((uintptr_t)stream);
    return std::make_shared<Work>(Work{number, time, clock, name + " on " + where + lines, era});
}

const std::string& words_of(const Work& work) { return work.words; }

bool comes_before(const Work& first, const Work& second) { return at(second.before, first.queue) >= first.time; }

bool is_past(const Work& work) {
    std::lock_guard<std::mutex> guard(lock);
    return at(host, work.queue) >= work.time;
}

bool stream_comes_after(const void* stream, int device, const Work& work) {
    std::lock_guard<std::mutex> guard(lock);
    return at(before(queue_of(stream, device)), work.queue) >= work.time;
}

bool event_comes_after(const void* event, const Work& work) {
    std::lock_guard<std::mutex> guard(lock);
    return at(marks[event], work.queue) >= work.time;
}

std::string race_with(const std::shared_ptr<const Work>& work, uintptr_t unit, const Bits& bits, bool stores) {
    std::lock_guard<std::mutex> guard(lock);
    // of work that began before the last stream went, meanwhile, what follows is another order
    if (!orders() || work->era != era) return "";
    std::vector<Access>& known = accesses[unit];
    for (Access& access : known) {
        size_t common = 0;
        for (size_t i = 0; i < unit_bytes / 64; ++i)
            common += (size_t)__builtin_popcountll(access.bits.words[i] & bits.words[i]);
        const bool in_order = access.work == work || comes_before(*access.work, *work);
        if (common && (access.stores || stores) && !in_order)
            return "race on " + std::to_string(common) + " bytes: " + (stores ? "written" : "read") + " by " +
                   work->words + ", " + (access.stores ? "written" : "read") + " by " + access.work->words +
                   ", and no event or wait orders the two";
        // What a later one replaces need not be kept: all that follows comes after both or after neither.
        if (in_order && (stores || (!access.stores && access.work->queue == work->queue)))
            for (size_t i = 0; i < unit_bytes / 64; ++i) access.bits.words[i] &= ~bits.words[i];
    }
    const auto empty = [](const Access& access) {
        return std::all_of(std::begin(access.bits.words), std::end(access.bits.words),
                           [](uint64_t word) { return !word; });
    };
    known.erase(std::remove_if(known.begin(), known.end(), empty), known.end());
    known.push_back({work, bits, stores});
    return "";
}

std::string race_with(const std::shared_ptr<const Work>& work, uintptr_t begin, size_t size, bool stores) {
    if (size > most_bytes) return "";
    for (const uintptr_t end = begin + size; begin < end;) {
        const uintptr_t unit = begin / unit_bytes;
        const size_t count = std::min(end, (unit + 1) * unit_bytes) - begin;
        Bits bits;
        bits.set(begin % unit_bytes, count);
        std::string race = race_with(work, unit, bits, stores);
        if (!race.empty()) return race;
        begin += count;
    }
    return "";
}

void forget_accesses(uintptr_t begin, size_t size) {
    std::lock_guard<std::mutex> guard(lock);
    if (accesses.empty()) return;
    if (size / unit_bytes > accesses.size()) {
        for (auto entry = accesses.begin(); entry != accesses.end();)
            entry = entry->first - begin / unit_bytes <= size / unit_bytes ? accesses.erase(entry) : std::next(entry);
        return;
    }
    for (uintptr_t unit = begin / unit_bytes; unit * unit_bytes < begin + size; ++unit) accesses.erase(unit);
}

void event_recorded(const void* event, const void* stream, int device) {
    if (!knows()) return;
    std::lock_guard<std::mutex> guard(lock);
    marks[event] = before(queue_of(stream, device));
}

void stream_waits(const void* stream, int device, const void* event) {
    if (!knows()) return;
    std::lock_guard<std::mutex> guard(lock);
    join(queues[queue_of(stream, device)].known, marks[event]);
}

void host_waits_for_stream(const void* stream, int device) {
    if (!knows()) return;
    std::lock_guard<std::mutex> guard(lock);
    join(host, before(queue_of(stream, device)));
}

void host_waits_for_event(const void* event) {
    if (!knows()) return;
    std::lock_guard<std::mutex> guard(lock);
    join(host, marks[event]);
}

void host_waits_for_device(int device) {
    if (!knows()) return;
    std::lock_guard<std::mutex> guard(lock);
    for (const Queue& queue : queues)
        if (queue.device == device) join(host, queue.known);
}

}  // namespace lucid_simulator
