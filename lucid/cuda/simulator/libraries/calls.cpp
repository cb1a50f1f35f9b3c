// Handles and calls of the simulated cuBLAS, and of cuSOLVER, each of which has its own.
#include <mutex>
#include <set>

#include "libraries/calls.h"

// libcudart
extern "C" int cudaStreamSynchronize(void* stream);

namespace lucid_simulator {

namespace {
std::mutex lock;
// Never destroyed: handles are used until the process ends.
auto& handles = *new std::set<const Handle*>;
}  // namespace

bool find_handle(const Handle* handle, Handle& settings) {
    std::lock_guard<std::mutex> guard(lock);
    if (!handles.count(handle)) return false;
    settings = *handle;
    return true;
}

bool Ranges::merge(std::vector<Touched>& found) {
    auto before = [](const Touched& a, const Touched& b) { return a.begin < b.begin; };
    if (!std::is_sorted(found.begin(), found.end(), before)) std::sort(found.begin(), found.end(), before);
    bool once = true;
    const size_t own = touched.size();  // those of other operands may lie in other blocks of memory
    for (const Touched& range : found) {
        if (touched.size() == own || range.begin > touched.back().begin + touched.back().size) {
            touched.push_back(range);
            continue;
        }
        Touched& last = touched.back();
        once &= range.begin == last.begin + last.size;
        last.size = std::max(last.begin + last.size, range.begin + range.size) - last.begin;
    }
    return once;
}

Call::Call(std::string name, const Handle* handle) : name(std::move(name)) {
    if (!find_handle(handle, settings)) status = not_initialized;
}

Call& Call::expect(bool valid) {
    if (!status && !valid) status = invalid_value;
    return *this;
}

void Call::works() {
    const ptrdiff_t used = std::min<size_t>(settings.workspace_bytes, garbage_bytes);
    if (!status && used) writes(Vector<char>{settings.workspace, used, 1});
}

int Call::run(const std::function<void()>& work) const {
    if (status) return status;
    return queue_work(settings.stream, name, list(), work) ? execution_failed : success;
}

int Call::wait() const { return cudaStreamSynchronize(settings.stream) ? execution_failed : success; }

int make_handle(Handle** handle) {
    if (!handle) return invalid_value;
    std::lock_guard<std::mutex> guard(lock);
    *handle = new Handle{};
    handles.insert(*handle);
    return success;
}

int drop_handle(Handle* handle) {
    return with_handle(handle, [&] {
        handles.erase(handle);
        delete handle;
        return (int)success;
    });
}

int with_handle(Handle* handle, const std::function<int()>& change) {
    std::lock_guard<std::mutex> guard(lock);
    return handles.count(handle) ? change() : not_initialized;
}

}  // namespace lucid_simulator
