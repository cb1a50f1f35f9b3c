// Stream capture: what CUDA records and what it refuses, with its codes and words. A stream that waits for an event of
// a capturing one joins its capture; each stream of a capture is a branch.
#include "host/capture.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "execution/memory.h"
#include "host/handles.h"
#include "host/memory/host_memory.h"
#include "host/memory/order.h"
#include "host/state.h"

namespace lucid_simulator {

namespace {

enum Mode { global, thread_local_mode, relaxed };

// How many items of each branch come before.
using Known = std::vector<size_t>;

struct Branch {
    const void* stream;
    int device;
    bool blocking;
    size_t items;
    Known known;
};

struct Capture {
    const void* origin;
    int mode;
    std::thread::id thread;
    std::vector<Branch> branches;
    Graph graph;
    std::string cause;  // what has made it invalid
    // Memory that was given out meanwhile, by number: whether it was given back.
    std::map<uint64_t, std::shared_ptr<bool>> blocks;
};

}  // namespace

struct Mark {
    std::weak_ptr<Capture> capture;
    Known known;
};

namespace {

std::mutex lock;
std::atomic<size_t> active{0};
std::map<const void*, std::shared_ptr<Capture>> captures;  // by stream

// Threads have default streams of their own under one name.
const void* own(const void* stream) {
    thread_local char name;
    return (uintptr_t)stream == 2 ? &name : stream;
}

bool is_legacy(const void* stream) { return (uintptr_t)stream < 2; }

// Which lines of Python call; not for under the lock, as Python may do anything.
std::string lines() { return python.where ? ask(python.where).text : ""; }

// ---- under the lock ----

std::shared_ptr<Capture> capture_of(const void* stream) {
    const auto found = captures.find(own(stream));
    return found == captures.end() ? nullptr : found->second;
}

Branch& branch_of(Capture& capture, const void* stream) {
    return *std::find_if(capture.branches.begin(), capture.branches.end(),
                         [&](const Branch& branch) { return branch.stream == own(stream); });
}

std::vector<std::shared_ptr<Capture>> captures_where(const std::function<bool(const Capture&)>& holds) {
    std::vector<std::shared_ptr<Capture>> found;
    for (const auto& [stream, capture] : captures)
        if (stream == capture->origin && holds(*capture)) found.push_back(capture);
    return found;
}

int refuse(const std::vector<std::shared_ptr<Capture>>& concerned, int code, const std::string& call) {
    for (const auto& capture : concerned)
        if (capture->cause.empty()) capture->cause = call;
    return concerned.empty() ? success : fail_with(code, call);
}

bool waits_for_legacy(const Branch& branch) { return branch.blocking && branch.device == current_device(); }

int refuse_legacy(const void* stream, const std::string& call) {
    if (!is_legacy(stream)) return success;
    return refuse(captures_where([](const Capture& capture) {
                      return std::any_of(capture.branches.begin(), capture.branches.end(), waits_for_legacy);
                  }),
                  stream_capture_implicit, call);
}

void add_branch(const std::shared_ptr<Capture>& capture, void* stream) {
    captures[own(stream)] = capture;
    capture->branches.push_back({own(stream), device_of(stream), is_blocking(stream), 0, {}});
    capture->graph.devices.push_back(device_of(stream));
}

void join(Known& known, const Known& other) {
    if (known.size() < other.size()) known.resize(other.size());
    for (size_t i = 0; i < other.size(); ++i) known[i] = std::max(known[i], other[i]);
}

size_t number_of(const Capture& capture, const Branch& branch) { return (size_t)(&branch - capture.branches.data()); }

// Without a name it is no work.
void record(Capture& capture, const Branch& branch, const Run& run, const std::string& name = "",
            const std::string& where = "") {
    capture.graph.items.push_back({name, where, current_device(), number_of(capture, branch), run});
}

bool is_of_thread(const Capture& capture) { return capture.thread == std::this_thread::get_id(); }

void drop(const std::shared_ptr<Capture>& capture) {
    for (const Branch& branch : capture->branches) captures.erase(branch.stream);
    --active;
}

bool is_joined(const Capture& capture) {
    const Known& known = capture.branches.front().known;
    for (size_t i = 1; i < capture.branches.size(); ++i)
        if (capture.branches[i].items > (i < known.size() ? known[i] : 0)) return false;
    return true;
}

}  // namespace

int submit(void* stream, const std::string& name, const Run& run) {
    if (const int code = host_fault()) return code;
    if (!active) return run(stream);
    const std::string where = lines();
    {
        std::lock_guard<std::mutex> guard(lock);
        if (const int code = refuse_legacy(stream, name + where)) return code;
        if (const auto capture = capture_of(stream)) {
            if (!capture->cause.empty()) return fail_with(stream_capture_invalidated, capture->cause);
            Branch& branch = branch_of(*capture, stream);
            const size_t number = number_of(*capture, branch);
            if (branch.known.size() <= number) branch.known.resize(number + 1);
            branch.known[number] = ++branch.items;
            record(*capture, branch, run, name, where);
            return success;
        }
    }
    return run(stream);
}

bool is_captured_by_thread() {
    if (!active) return false;
    std::lock_guard<std::mutex> guard(lock);
    return !captures_where(is_of_thread).empty();
}

void record_given_out(const Block& block, void (*give_out_again)(const Block& block)) {
    if (!active) return;
    std::lock_guard<std::mutex> guard(lock);
    for (const auto& capture : captures_where(is_of_thread)) {
        const auto comes_back = capture->blocks[block.number] = std::make_shared<bool>(false);
        record(*capture, capture->branches.front(), [block, comes_back, give_out_again](void*) {
            if (*comes_back) give_out_again(block);
            return success;
        });
    }
}

void record_given_back(const Block& block) {
    if (!active) return;
    std::lock_guard<std::mutex> guard(lock);
    // whichever thread held it last
    for (const auto& capture : captures_where([](const Capture&) { return true; })) {
        const auto found = capture->blocks.find(block.number);
        if (found == capture->blocks.end()) continue;
        *found->second = true;
        record(*capture, capture->branches.front(),
               [begin = block.begin](void*) { return MemoryOfGraph::leave_again(begin), success; });
    }
}

int mark_place(void* stream, std::shared_ptr<Mark>* out) {
    *out = nullptr;
    if (!active) return success;
    const std::string call = "cudaEventRecord" + lines();
    std::lock_guard<std::mutex> guard(lock);
    if (const int code = refuse_legacy(stream, call)) return code;
    const auto capture = capture_of(stream);
    if (!capture) return success;
    if (!capture->cause.empty()) return fail_with(stream_capture_invalidated, capture->cause);
    const Branch& branch = branch_of(*capture, stream);
    *out = std::make_shared<Mark>(Mark{capture, branch.known});
    record(*capture, branch,
           [mark = *out](void* on) { return event_recorded(mark.get(), on, current_device()), success; });
    return success;
}

int wait_for(void* stream, const void* event, const std::shared_ptr<Mark>& mark, bool recorded) {
    const auto waits = [stream, event] { return stream_waits(stream, current_device(), event), success; };
    if (!active && !mark) return waits();
    const std::string call = "cudaStreamWaitEvent" + lines();
    std::lock_guard<std::mutex> guard(lock);
    auto capture = capture_of(stream);
    if (!mark) {
        if (const int code = refuse_legacy(stream, call)) return code;
        if (!capture) return waits();
        if (!capture->cause.empty()) return fail_with(stream_capture_invalidated, capture->cause);
        return recorded ? refuse({capture}, stream_capture_isolation, call) : success;
    }
    const auto others = mark->capture.lock();
    if (!others) return fail_with(captured_event, call);
    if (!others->cause.empty()) return fail_with(stream_capture_invalidated, others->cause);
    if (capture && capture != others) return refuse({capture, others}, stream_capture_merge, call);
    if (is_legacy(stream)) return refuse({others}, stream_capture_implicit, call);
    if (!capture) add_branch(capture = others, stream);
    Branch& branch = branch_of(*capture, stream);
    join(branch.known, mark->known);
    record(*capture, branch, [mark](void* on) { return stream_waits(on, current_device(), mark.get()), success; });
    return success;
}

int check_asked(void* stream, const std::string& call) {
    if (!active) return success;
    const std::string what = call + lines();
    std::lock_guard<std::mutex> guard(lock);
    if (const int code = refuse_legacy(stream, what)) return code;
    const auto capture = capture_of(stream);
    return capture ? refuse({capture}, stream_capture_unsupported, what) : success;
}

int check_asked(const std::shared_ptr<Mark>& mark, const std::string& call) {
    if (!mark) return success;
    const std::string what = call + lines();
    std::lock_guard<std::mutex> guard(lock);
    if (const auto capture = mark->capture.lock()) return refuse({capture}, captured_event, what);
    return fail_with(captured_event, what);
}

int check_device_asked(int device, const std::string& call) {
    if (!active) return success;
    const std::string what = call + lines();
    std::lock_guard<std::mutex> guard(lock);
    return refuse(captures_where([device](const Capture& capture) {
                      return std::any_of(capture.branches.begin(), capture.branches.end(),
                                         [device](const Branch& branch) { return branch.device == device; });
                  }),
                  stream_capture_unsupported, what);
}

int check_unsafe(const std::string& call) {
    if (!active) return success;
    const std::string what = call + lines();
    std::lock_guard<std::mutex> guard(lock);
    return refuse(captures_where([](const Capture& capture) {
                      return capture.mode == global || (capture.mode == thread_local_mode && is_of_thread(capture));
                  }),
                  stream_capture_unsupported, what);
}

int check_uncapturable(void* stream, const std::string& call) {
    return is_legacy(stream) ? success : check_asked(stream, call);
}

void leave_capture(void* stream) {
    if (!active) return;
    std::shared_ptr<Capture> capture;  // ends after the lock, as do graphs in it, whose streams come here
    std::lock_guard<std::mutex> guard(lock);
    capture = capture_of(stream);
    if (!capture) return;
    refuse({capture}, stream_capture_unsupported, "cudaStreamDestroy");
    if (own(stream) == capture->origin)
        drop(capture);
    else
        captures.erase(own(stream));
}

int end_capture(void* stream, Graph* out) {
    const std::string call = "cudaStreamEndCapture" + lines();
    std::shared_ptr<Capture> capture;  // ends after the lock
    std::lock_guard<std::mutex> guard(lock);
    capture = capture_of(stream);
    if (!capture) return fail(illegal_state);
    if (capture->origin != own(stream)) return refuse({capture}, stream_capture_unmatched, call);
    if (capture->mode != relaxed && !is_of_thread(*capture)) return fail(stream_capture_wrong_thread);
    drop(capture);
    if (!capture->cause.empty()) return fail_with(stream_capture_invalidated, capture->cause);
    if (!is_joined(*capture)) return fail(stream_capture_unjoined);
    capture->graph.newest = newest_memory();
    return *out = std::move(capture->graph), success;
}

}  // namespace lucid_simulator

using namespace lucid_simulator;

LUCID_CUDA int cudaStreamBeginCapture(void* stream, int mode) {
    if (const int code = check_stream(stream)) return code;
    if (mode < global || mode > relaxed) return fail(invalid_value);
    if (is_legacy(stream)) return fail_with(stream_capture_unsupported, "cudaStreamBeginCapture of the legacy stream");
    std::lock_guard<std::mutex> guard(lock);
    if (capture_of(stream)) return fail(illegal_state);
    const auto made = std::make_shared<Capture>();
    made->origin = own(stream);
    made->mode = mode;
    made->thread = std::this_thread::get_id();
    add_branch(made, stream);
    return ++active, success;
}

LUCID_CUDA int cudaStreamIsCapturing(void* stream, int* out) {
    if (const int code = check_stream(stream)) return code;
    *out = 0;
    if (!active) return success;
    std::lock_guard<std::mutex> guard(lock);
    if (const auto capture = capture_of(stream)) return *out = capture->cause.empty() ? 1 : 2, success;
    if (!is_legacy(stream)) return success;
    for (const auto& [at, capture] : captures)
        if (waits_for_legacy(branch_of(*capture, at))) return fail(stream_capture_implicit);
    return success;
}
