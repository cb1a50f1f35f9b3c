// Streams and events. Work is done when it is queued, so that a stream is always empty and an event always reached; what
// the host may not see of that yet is in host_memory.cpp.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <set>

#include "execution/memory.h"
#include "host/capture.h"
#include "host/extent.h"
#include "host/handles.h"
#include "host/memory/host_memory.h"
#include "host/memory/order.h"
#include "host/state.h"

LUCID_CUDA const char* cudaGetErrorString(int code);

namespace lucid_simulator {

namespace {

constexpr unsigned no_timing = 2;

struct Event {
    unsigned flags;
    int device;
    double at;                   // milliseconds; negative before it is recorded
    std::shared_ptr<Mark> mark;  // null unless it was recorded in a capture
};

std::mutex lock;
std::set<const void*> events;

int check_event(const void* event) {
    std::lock_guard<std::mutex> guard(lock);
    return events.count(event) ? success : fail(invalid_handle);
}

// Before it is asked for, or waited for.
int check_event_asked(const void* event, const std::string& call) {
    if (const int code = check_event(event)) return code;
    if (const int code = check_asked(((const Event*)event)->mark, call)) return code;
    return check_unsafe(call);
}

double now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

int waited() {
    make_context();
    ++counts.synchronisations;
    settle_host_memory();
    return host_fault();
}

// Refuses what lies outside of the blocks in use.
int check_ranges(const std::string& name, const std::vector<Touched>& touched, int device) {
    for (const Touched& range : touched) {
        const std::string fault = range.size ? fault_of(range.begin, range.size, range.stores, device) : "";
        if (!fault.empty()) return fail(illegal_address, name + ": " + fault);
    }
    for (const Touched& range : touched)
        if (!range.of_host) (range.stores ? counts.bytes_stored : counts.bytes_loaded) += range.size;
    return success;
}

int check_order(const std::shared_ptr<const Work>& work, const std::vector<Touched>& touched) {
    if (!work) return success;
    for (const Touched& range : touched) {
        const std::string race = race_with(work, range.begin, range.size, range.stores);
        if (!race.empty()) return fail(launch_failed, race);
    }
    return success;
}

int call_host(void* stream, const std::function<void()>& call) {
    const HostMemoryFor shown(begin_work(stream, device_of(stream), "a call of the host", host_memory_is_awaited()));
    return call(), success;
}

// Of the work that runs.
thread_local std::string running;
thread_local std::shared_ptr<const Work> running_work;
thread_local int found = success;

}  // namespace

int queue_own(void* stream, const std::string& name, const std::vector<Touched>& touched,
              const std::function<void()>& work, bool everywhere) {
    make_context();
    if (const int code = check_stream(stream)) return code;
    return submit(stream, name, [=](void* on) -> int {
        if (!executes()) return work(), success;
        if (const int code = check_ranges(name, touched, everywhere ? any_device : current_device())) return code;
        const bool awaited =
            std::any_of(touched.begin(), touched.end(), [](const Touched& range) { return range.of_host; });
        const KnownOrder order(awaited);
        running = name;
        running_work = begin_work(on, device_of(on), name, awaited);
        found = check_order(running_work, touched);
        if (found) return found;
        const HostMemoryFor shown(running_work, touched);
        work();
        for (const Touched& range : touched)
            if (range.of_host) await_host_memory(running_work, range);
        return found;
    });
}

int queue_work(void* stream, const std::string& name, const std::vector<Touched>& touched,
               const std::function<void()>& work) {
    const auto counted = [work] {
        ++counts.library;
        if (executes()) work();
    };
    const int code = queue_own(stream, name, touched, counted, false);
    if (code) fprintf(stderr, "lucid's simulated CUDA: %s: %s\n", name.c_str(), cudaGetErrorString(code));
    return code;
}

bool touch(const std::vector<Touched>& touched) {
    if (!found) found = check_ranges(running, touched, current_device());
    if (!found) found = check_order(running_work, touched);
    return !found;
}

}  // namespace lucid_simulator

using namespace lucid_simulator;

LUCID_CUDA int cudaStreamCreateWithPriority(void** out, unsigned flags, int priority) {
    make_context();
    Stream* made = new Stream{flags, priority < -5 ? -5 : priority > 0 ? 0 : priority, current_device()};
    stream_made(made, made->device, !(flags & non_blocking));
    add_stream(made);
    return *out = made, success;
}
LUCID_CUDA int cudaStreamCreate(void** out) { return cudaStreamCreateWithPriority(out, 0, 0); }
LUCID_CUDA int cudaStreamCreateWithFlags(void** out, unsigned flags) {
    return cudaStreamCreateWithPriority(out, flags, 0);
}
LUCID_CUDA int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    return *least = 0, *greatest = -5, success;
}
LUCID_CUDA int cudaStreamGetFlags(void* stream, unsigned* out) {
    if (const int code = check_stream(stream)) return code;
    return *out = is_default(stream) ? 0 : ((const Stream*)stream)->flags, success;
}
LUCID_CUDA int cudaStreamGetPriority(void* stream, int* out) {
    if (const int code = check_stream(stream)) return code;
    return *out = is_default(stream) ? 0 : ((const Stream*)stream)->priority, success;
}
LUCID_CUDA int cudaStreamDestroy(void* stream) {
    if (const int code = check_stream(stream)) return code;
    leave_capture(stream);
    if (!remove_stream(stream)) return fail(invalid_handle);
    return stream_gone(stream), success;
}
LUCID_CUDA int cudaStreamSynchronize(void* stream) {
    if (const int code = check_stream(stream)) return code;
    if (const int code = check_asked(stream, "cudaStreamSynchronize")) return code;
    host_waits_for_stream(stream, device_of(stream));
    return waited();
}
LUCID_CUDA int cudaStreamQuery(void* stream) {
    if (const int code = check_stream(stream)) return code;
    if (const int code = check_asked(stream, "cudaStreamQuery")) return code;
    const int device = device_of(stream);
    if (finds_unfinished([=](const Work& work) { return stream_comes_after(stream, device, work); })) return not_ready;
    host_waits_for_stream(stream, device);
    return settle_host_memory(), success;
}
LUCID_CUDA int cudaDeviceSynchronize() {
    if (const int code = check_device_asked(current_device(), "cudaDeviceSynchronize")) return code;
    host_waits_for_device(current_device());
    return waited();
}
LUCID_CUDA int cuCtxSynchronize() { return cudaDeviceSynchronize(); }

// A call of the host is made when it is queued, and sees what the copies before it have brought.
LUCID_CUDA int cudaStreamAddCallback(void* stream, void (*call)(void*, int, void*), void* data, unsigned) {
    if (const int code = check_stream(stream)) return code;
    if (const int code = check_uncapturable(stream, "cudaStreamAddCallback")) return code;
    return call_host(stream, [=] { call(stream, success, data); });
}
LUCID_CUDA int cudaLaunchHostFunc(void* stream, void (*call)(void*), void* data) {
    if (const int code = check_stream(stream)) return code;
    return submit(stream, "a call of the host", [=](void* on) { return call_host(on, [=] { call(data); }); });
}

LUCID_CUDA int cudaEventCreateWithFlags(void** out, unsigned flags) {
    make_context();
    Event* made = new Event{flags, current_device(), -1, nullptr};
    std::lock_guard<std::mutex> guard(lock);
    events.insert(made);
    return *out = made, success;
}
LUCID_CUDA int cudaEventCreate(void** out) { return cudaEventCreateWithFlags(out, 0); }
LUCID_CUDA int cudaEventDestroy(void* event) {
    std::lock_guard<std::mutex> guard(lock);
    return events.erase(event) ? success : fail(invalid_handle);
}
LUCID_CUDA int cudaEventRecord(void* event, void* stream) {
    if (const int code = check_event(event)) return code;
    if (const int code = check_stream(stream)) return code;
    Event& told = *(Event*)event;
    if (device_of(stream) != told.device) return fail(invalid_handle);
    if (const int code = mark_place(stream, &told.mark)) return code;
    if (!told.mark) event_recorded(event, stream, device_of(stream));
    return told.at = now(), success;
}
LUCID_CUDA int cudaStreamWaitEvent(void* stream, void* event, unsigned) {
    if (const int code = check_stream(stream)) return code;
    if (const int code = check_event(event)) return code;
    const Event& told = *(const Event*)event;
    return wait_for(stream, event, told.mark, told.at >= 0);
}
LUCID_CUDA int cudaEventQuery(void* event) {
    if (const int code = check_event_asked(event, "cudaEventQuery")) return code;
    if (finds_unfinished([=](const Work& work) { return event_comes_after(event, work); })) return not_ready;
    host_waits_for_event(event);
    return settle_host_memory(), success;
}
LUCID_CUDA int cudaEventSynchronize(void* event) {
    if (const int code = check_event_asked(event, "cudaEventSynchronize")) return code;
    host_waits_for_event(event);
    return waited();
}
LUCID_CUDA int cudaEventElapsedTime(float* out, void* first, void* second) {
    for (void* event : {first, second}) {
        if (const int code = check_event(event)) return code;
        const Event& told = *(const Event*)event;
        if (told.mark) return fail(captured_event);
        if (told.at < 0 || told.flags & no_timing) return fail(invalid_handle);
    }
    if (((const Event*)first)->device != ((const Event*)second)->device) return fail(invalid_handle);
    return *out = (float)(((const Event*)second)->at - ((const Event*)first)->at), success;
}
