#include "host/memory/host_memory.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <list>
#include <mutex>
#include <utility>
#include <vector>

#include "host/memory/order.h"
#include "host/state.h"

namespace lucid_simulator {

struct Copy {
    std::shared_ptr<const Work> work;
    Touched range;
    std::vector<unsigned char> data;  // what it brings to the host, or what it takes from there
    bool asked = false;               // a query has said that it is not done
    KnownOrder order{true};
};

namespace {

constexpr unsigned char garbage = 0xFF;

std::mutex lock;
// in their order; never destroyed, as what a copy does at its end needs what other files hold
std::list<std::shared_ptr<Copy>>& copies = *new std::list<std::shared_ptr<Copy>>;
std::atomic<size_t> awaited{0};
std::string fault;
std::atomic<bool> faulty{false};

// ---- under the lock ----

unsigned char* memory(const Copy& copy) { return (unsigned char*)copy.range.begin; }

bool overlap(const Touched& a, const Touched& b) { return a.begin < b.begin + b.size && b.begin < a.begin + a.size; }

bool holds(const Touched& a, const Touched& b) { return a.begin <= b.begin && b.begin + b.size <= a.begin + a.size; }

void check(const Copy& copy) {
    size_t changed = 0;
    for (size_t i = 0; i < copy.range.size; ++i)
        changed += memory(copy)[i] != (copy.range.stores ? garbage : copy.data[i]);
    if (!changed || !fault.empty()) return;
    fault = "the host has changed " + std::to_string(changed) + " bytes of its memory before it waited for what " +
            (copy.range.stores ? "writes" : "reads") + " them: " + words_of(*copy.work);
    faulty = true;
}

void hide(Copy& copy) {
    memcpy(copy.data.data(), memory(copy), copy.range.size);
    memset(memory(copy), garbage, copy.range.size);
}

void deliver(Copy& copy) {
    check(copy);
    memcpy(memory(copy), copy.data.data(), copy.range.size);
}

void end_copies(const std::function<bool(const Copy&)>& ends) {
    for (auto next = copies.begin(); next != copies.end();) {
        const std::shared_ptr<Copy> copy = *next;
        if (!ends(*copy)) {
            ++next;
            continue;
        }
        next = copies.erase(next), --awaited;
        if (!copy->range.stores) {
            check(*copy);
            continue;
        }
        deliver(*copy);
        for (auto later = next; later != copies.end(); ++later)
            if ((*later)->range.stores && overlap((*later)->range, copy->range))
                memset(memory(**later), garbage, (*later)->range.size);
    }
}

}  // namespace

void await_host_memory(const std::shared_ptr<const Work>& work, const Touched& range) {
    if (!work) return;
    const auto made = std::make_shared<Copy>();
    std::lock_guard<std::mutex> guard(lock);
    bool brought = false;  // what it reads, by a copy that is awaited itself
    for (auto next = copies.begin(); next != copies.end();) {
        const Touched& earlier = (*next)->range;
        brought = brought || (earlier.stores && overlap(earlier, range));
        next = range.stores && holds(range, earlier) ? (--awaited, copies.erase(next)) : std::next(next);
    }
    if (!range.stores && brought) return;
    made->work = work;
    made->range = range;
    made->data.assign((const unsigned char*)range.begin, (const unsigned char*)range.begin + range.size);
    if (range.stores) hide(*made);
    copies.push_back(made);
    ++awaited;
}

void forget_host_memory(uintptr_t begin, size_t size) {
    if (!awaited) return;
    std::lock_guard<std::mutex> guard(lock);
    end_copies([&](const Copy& copy) { return overlap(copy.range, {begin, size, true}); });
}

void settle_host_memory() {
    if (!awaited) return;
    std::lock_guard<std::mutex> guard(lock);
    end_copies([](const Copy& copy) { return is_past(*copy.work); });
}

int host_fault() {
    if (!faulty) return success;
    std::lock_guard<std::mutex> guard(lock);
    faulty = false;
    return fail(launch_failed, std::exchange(fault, ""));
}

bool host_memory_is_awaited() { return awaited > 0; }

bool finds_unfinished(const std::function<bool(const Work&)>& covers) {
    if (!awaited) return false;
    std::lock_guard<std::mutex> guard(lock);
    bool found = false;
    for (const auto& copy : copies)
        if (!copy->asked && !is_past(*copy->work) && covers(*copy->work)) found = copy->asked = true;
    return found;
}

HostMemoryFor::HostMemoryFor(const std::shared_ptr<const Work>& work, const std::vector<Touched>& touched) {
    if (!awaited || !work) return;
    std::lock_guard<std::mutex> guard(lock);
    for (const auto& copy : copies)
        if (copy->range.stores && comes_before(*copy->work, *work)) deliver(*copy), shown.push_back(copy);
    for (const Touched& range : touched)
        if (range.of_host && range.stores)
            end_copies([&](const Copy& copy) { return !copy.range.stores && overlap(copy.range, range); });
}

HostMemoryFor::~HostMemoryFor() {
    if (shown.empty()) return;
    std::lock_guard<std::mutex> guard(lock);
    // backwards, because where copies overlap the memory holds what the last has brought
    for (auto copy = shown.rbegin(); copy != shown.rend(); ++copy)
        if (std::find(copies.begin(), copies.end(), *copy) != copies.end()) hide(**copy);
}

}  // namespace lucid_simulator
