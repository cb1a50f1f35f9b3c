// Stands for the simulated device where a library is tested by itself: its work runs at once, or when it is told to, and
// what it touches is written down.
#include "host/queue.h"

using namespace lucid_simulator;

namespace {
std::vector<Touched> touched;
std::vector<std::function<void()>> waiting;
std::string name;
void* stream;
int calls, waits, failure;
bool late, refuses;
}  // namespace

namespace lucid_simulator {
int queue_work(void* onto, const std::string& called, const std::vector<Touched>& ranges,
               const std::function<void()>& work) {
    stream = onto, name = called, ++calls;
    touched.insert(touched.end(), ranges.begin(), ranges.end());
    if (failure) return failure;
    if (late)
        waiting.push_back(work);
    else
        work();
    return 0;
}
bool touch(const std::vector<Touched>& ranges) {
    touched.insert(touched.end(), ranges.begin(), ranges.end());
    return !refuses;
}
}  // namespace lucid_simulator

LUCID_CUDA void queued_run() {
    for (auto& work : waiting) work();
    waiting.clear();
}
LUCID_CUDA int cudaStreamSynchronize(void*) {
    ++waits;
    queued_run();
    return 0;
}
// Forgets what was written down. Work is put off if late, fails with a code other than 0, finds nothing if it refuses.
LUCID_CUDA void queued_begin(bool put_off, int code, bool refuse) {
    touched.clear();
    waiting.clear();
    name.clear();
    stream = nullptr;
    calls = waits = 0;
    late = put_off, failure = code, refuses = refuse;
}
LUCID_CUDA const char* queued_name() { return name.c_str(); }
LUCID_CUDA void* queued_stream() { return stream; }
LUCID_CUDA int queued_calls() { return calls; }
LUCID_CUDA int queued_waits() { return waits; }
LUCID_CUDA int queued_ranges() { return (int)touched.size(); }
LUCID_CUDA void queued_range(int i, size_t* out) {
    out[0] = touched[i].begin, out[1] = touched[i].size, out[2] = touched[i].stores;
}
