// Graphs: a launch runs what a capture has recorded, in its order, each branch of it on a stream of its own.
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>

#include "execution/memory.h"
#include "host/capture.h"
#include "host/handles.h"
#include "host/memory/order.h"
#include "host/state.h"

extern "C" {
int cudaStreamCreateWithFlags(void** out, unsigned flags);
int cudaStreamDestroy(void* stream);
}

namespace lucid_simulator {

namespace {

// As cudaGraphDebugDotPrint knows it.
constexpr unsigned verbose = 1;

struct Executable {
    std::shared_ptr<const Graph> graph;
    std::vector<void*> streams;  // of the branches but the first, which is that of the launch
    KnownOrder order{true};

    explicit Executable(std::shared_ptr<const Graph> of) : graph(std::move(of)) {
        const int before = current_device();
        for (size_t i = 1; i < graph->devices.size(); ++i) {
            set_current_device(graph->devices[i]);
            cudaStreamCreateWithFlags(&streams.emplace_back(), non_blocking);
        }
        set_current_device(before);
    }
    ~Executable() {
        for (void* stream : streams) cudaStreamDestroy(stream);
    }
    Executable(const Executable&) = delete;
};

// By handle; none is given twice, so that a use after the end is told.
template <class T> class Handles {
    std::mutex lock;
    std::map<const void*, std::shared_ptr<T>> known;
    uintptr_t last = 0;

 public:
    void* add(std::shared_ptr<T> made) {
        std::lock_guard<std::mutex> guard(lock);
        void* handle = (void*)(last += 16);
        known[handle] = std::move(made);
        return handle;
    }
    std::shared_ptr<T> find(const void* handle) {
        std::lock_guard<std::mutex> guard(lock);
        const auto found = known.find(handle);
        return found == known.end() ? nullptr : found->second;
    }
    int remove(const void* handle) {
        std::shared_ptr<T> gone = find(handle);  // ends after the lock
        std::lock_guard<std::mutex> guard(lock);
        return known.erase(handle) ? success : fail(invalid_value);
    }
};

Handles<const Graph> graphs;
Handles<Executable> executables;

int launch(const Executable& executable, void* stream) {
    const int before = current_device();
    // launches of one graph come one after another
    stream_waits(stream, before, &executable);
    const MemoryOfGraph memory(executable.graph->newest);
    int code = success;
    captured_at.push_back(nullptr);
    for (const Item& item : executable.graph->items) {
        set_current_device(item.device);
        captured_at.back() = &item.where;
        code = item.run(item.branch ? executable.streams[item.branch - 1] : stream);
        if (!code) continue;
        fail_more(", captured", item.where);
        break;
    }
    captured_at.pop_back();
    set_current_device(before);
    event_recorded(&executable, stream, before);
    return code;
}

}  // namespace

}  // namespace lucid_simulator

using namespace lucid_simulator;

LUCID_CUDA int cudaStreamEndCapture(void* stream, void** out) {
    *out = nullptr;
    if (const int code = check_stream(stream)) return code;
    Graph graph;
    if (const int code = end_capture(stream, &graph)) return code;
    return *out = graphs.add(std::make_shared<const Graph>(std::move(graph))), success;
}

LUCID_CUDA int cudaGraphInstantiate(void** out, void* handle, unsigned long long) {
    const auto graph = graphs.find(handle);
    if (!graph) return fail(invalid_value);
    return *out = executables.add(std::make_shared<Executable>(graph)), success;
}
LUCID_CUDA int cudaGraphDestroy(void* graph) { return graphs.remove(graph); }
LUCID_CUDA int cudaGraphExecDestroy(void* executable) { return executables.remove(executable); }

LUCID_CUDA int cudaGraphLaunch(void* handle, void* stream) {
    make_context();
    const auto executable = executables.find(handle);
    if (!executable) return fail(invalid_value);
    if (const int code = check_stream(stream)) return code;
    return submit(stream, "a graph", [executable](void* on) { return launch(*executable, on); });
}
LUCID_CUDA int cudaGraphUpload(void* handle, void* stream) {
    if (!executables.find(handle)) return fail(invalid_value);
    if (const int code = check_stream(stream)) return code;
    return check_uncapturable(stream, "cudaGraphUpload");
}

// Work as the nodes of a graph in DOT, each branch in its order.
LUCID_CUDA int cudaGraphDebugDotPrint(void* handle, const char* path, unsigned flags) {
    const auto graph = graphs.find(handle);
    if (!graph) return fail(invalid_value);
    std::ofstream file(path);
    file << "digraph graph_" << (uintptr_t)handle << " {\n";
    std::vector<size_t> last(graph->devices.size(), graph->items.size());
    for (size_t i = 0; i < graph->items.size(); ++i) {
        const Item& item = graph->items[i];
        if (item.name.empty()) continue;
        file << "  node_" << i << " [label=\"" << item.name << (flags & verbose ? item.where : "") << "\"];\n";
        size_t& before = last[item.branch];
        if (before < graph->items.size()) file << "  node_" << before << " -> node_" << i << ";\n";
        before = i;
    }
    file << "}\n";
    return file.flush() ? success : fail(invalid_value);
}
