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

Ranges& Ranges::merge(std::vector<Touched>& found) {
    auto before = [](const Touched& a, const Touched& b) { return a.begin < b.begin; };
    if (!std::is_sorted(found.begin(), found.end(), before)) std::sort(found.begin(), found.end(), before);
    const size_t own = touched.size();  // those of other operands may lie in other blocks of memory
    for (const Touched& range : found) {
        if (touched.size() == own || range.begin > touched.back().begin + touched.back().size) {
            touched.push_back(range);
            continue;
        }
        Touched& last = touched.back();
        once &= !range.stores || range.begin == last.begin + last.size;
        last.size = std::max(last.begin + last.size, range.begin + range.size) - last.begin;
    }
    return *this;
}

Call::Call(std::string name, Handle* handle) : name(std::move(name)) {
    status = with_handle(handle, [&] { return settings = *handle, success; });
}

Call& Call::expect(bool valid) {
    if (!status && !valid) status = invalid_value;
    return *this;
}

void Call::works() {
    constexpr size_t most = 256;
    if (const size_t used = std::min(settings.workspace_bytes, most)) scratch(settings.workspace, used, used);
}

int Call::run(const std::function<void()>& work) const {
    if (status) return status;
    const auto queue = [&](const std::function<void()>& all) {
        return queue_work(settings.stream, name, list(), all) ? execution_failed : success;
    };
    if (!garbage.size) return queue(work);
    return queue([work, garbage = garbage] {
        std::fill_n(garbage.data, garbage.size, (char)0xFF);
        work();
    });
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
        return success;
    });
}

int with_handle(Handle* handle, const std::function<int()>& change) {
    std::lock_guard<std::mutex> guard(lock);
    return handles.count(handle) ? change() : not_initialized;
}

}  // namespace lucid_simulator
