// The simulated device: CUDA threads as fibers of one host thread, one block after another.
//
// A thread runs until it ends or waits. Threads that never wait share one fiber, so that a kernel without barriers costs
// one call each; a thread that waits keeps its fiber, and the rest go on in the next.
#include "execution/launch.h"

#include <immintrin.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "execution/fiber.h"
#include "execution/images.h"
#include "execution/memory.h"
#include "execution/races.h"
#include "execution/signals.h"
#include "host/extent.h"

using namespace lucid_simulator;

namespace {

Fiber* starting;
std::vector<Fiber*> fibers, idle;
thread_local std::string told;        // the report of this host thread's last launch
thread_local uint64_t told_bytes[2];  // that it loaded and stored
uint64_t seed = 0, random_state;
std::mutex one_at_a_time;

std::string site(const char* file, int line) {
    const char* name = strrchr(file, '/');
    return std::string(name ? name + 1 : file) + ":" + std::to_string(line);
}

std::string described(const CudaThread& thread) {
    std::string words = "thread " + text(thread.index) + " is at " + thread.operation;
    if (thread.mask) {
        char mask[32];
        snprintf(mask, sizeof mask, " with mask 0x%08x", thread.mask);
        words += mask;
    }
    return words + " (" + site(thread.file, thread.line) + ")";
}

// ---- scheduling ----

void resume(unsigned number, Fiber* from) {
    CudaThread& thread = launch.threads[number];
    launch.current = number;
    thread.state = State::running;
    lucid_running.thread = thread.index;
    lucid_running.number = number;
    switch_fiber(from, thread.fiber);
}

Fiber* new_fiber() {
    Fiber* fiber = new Fiber;
    fiber->stack = stacks() + fibers.size() * (guard_size + stack_size) + guard_size;
    fibers.push_back(fiber);
    return fiber;
}

void work();

// Gives the processor of `from` to whoever can use it, to the host if nobody can.
void run_other(Fiber* from) {
    if (launch.next_ready < launch.ready.size()) {
        const unsigned number = launch.ready[launch.next_ready++];
        if (launch.next_ready == launch.ready.size()) launch.ready.clear(), launch.next_ready = 0;
        return resume(number, from);
    }
    if (launch.next_start < launch.order.size()) {
        if (idle.empty()) idle.push_back(new_fiber());
        Fiber* fresh = idle.back();
        idle.pop_back();
        prepare_fiber(fresh, work);
        starting = fresh;
        return switch_fiber(from, fresh);
    }
    switch_fiber(from, &launch.host);
}

void release_barrier() {
    launch.barrier_result = launch.barrier_sum;
    if (launch.barrier_operation == barrier_and) launch.barrier_result = launch.barrier_sum == (int)launch.arrived;
    if (launch.barrier_operation == barrier_or) launch.barrier_result = launch.barrier_sum != 0;
    launch.arrived = 0;
    order_block();
    for (unsigned number : launch.order)
        if (launch.threads[number].state == State::at_barrier) launch.ready.push_back(number);
}

// What a lane takes from those of its warp that have come.
unsigned long long taken(const CudaThread* lanes, const CudaThread& self, unsigned present) {
    if (self.source >= 0) return present >> self.source & 1 ? lanes[self.source].offered : ~0ull;
    unsigned long long equal = 0;
    for (unsigned rest = present; rest; rest &= rest - 1)
        if (lanes[__builtin_ctz(rest)].offered == self.sought) equal |= rest & -rest;
    return equal;
}

// Whether all lanes that `number` waits for have come; then they exchange what they offered and go on.
bool release_lanes(unsigned number) {
    Warp& warp = launch.warps[number / 32];
    CudaThread* lanes = &launch.threads[number / 32 * 32];
    const CudaThread& self = launch.threads[number];
    const unsigned needed = self.mask & warp.live;
    if ((warp.waiting & needed) != needed) return false;
    for (unsigned rest = needed; rest; rest &= rest - 1)
        if (lanes[__builtin_ctz(rest)].mask != self.mask) return false;
    for (unsigned rest = needed; rest; rest &= rest - 1) {
        const CudaThread& other = lanes[__builtin_ctz(rest)];
        if (strcmp(other.operation, self.operation) != 0)
            stop("divergent warp operations: " + described(other) + ", but " + described(self));
    }
    warp.waiting &= ~needed;
    // Of all that lanes do together only this orders what they do to memory. CuPy's own kernels believe that of shuffles.
    if (launch.of_cupy || strcmp(self.operation, "__syncwarp") == 0)
        order_lanes(number / 32, needed, needed == warp.live);
    // All at once, because the first that goes on may offer something else.
    for (unsigned rest = needed; rest; rest &= rest - 1) {
        const unsigned other = number / 32 * 32 + __builtin_ctz(rest);
        launch.threads[other].received = taken(lanes, launch.threads[other], needed);
        if (other != launch.current) launch.ready.push_back(other);
    }
    return true;
}

void end_thread() {
    const unsigned number = launch.current;
    launch.threads[number].state = State::ended;
    --launch.live;
    Warp& warp = launch.warps[number / 32];
    warp.live &= ~(1u << number % 32);
    if (launch.arrived && launch.arrived == launch.live) release_barrier();
    for (unsigned rest = warp.waiting; rest; rest &= rest - 1) {
        const unsigned lane = __builtin_ctz(rest);
        if (warp.waiting >> lane & 1) release_lanes(number / 32 * 32 + lane);
    }
}

// What a fiber runs: thread after thread, as long as none waits.
void work() {
    Fiber* const self = starting;
    while (launch.next_start < launch.order.size()) {
        const unsigned number = launch.order[launch.next_start++];
        CudaThread& thread = launch.threads[number];
        thread.fiber = self;
        thread.state = State::running;
        launch.current = number;
        lucid_running.thread = thread.index;
        lucid_running.number = number;
        launch.instance->run(launch.packed);
        end_thread();
        if (launch.next_ready < launch.ready.size()) break;
    }
    idle.push_back(self);
    run_other(self);
}

// ---- a launch ----

unsigned draw(unsigned below) {
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)((random_state >> 33) % below);
}

void shuffle_order() {
    if (!seed) return;
    for (unsigned i = (unsigned)launch.order.size(); i > 1; --i) std::swap(launch.order[i - 1], launch.order[draw(i)]);
}

std::string deadlock() {
    std::string words = "deadlock: " + std::to_string(launch.live) + " threads wait and none can go on";
    const CudaThread* last = nullptr;
    int told = 0;
    for (const CudaThread& thread : launch.threads) {
        if (thread.state == State::ended) continue;
        const bool same = last && last->line == thread.line && last->file == thread.file && last->mask == thread.mask;
        last = &thread;
        if (!same && ++told <= 8) words += "\n  " + described(thread);
    }
    return words;
}

// While it lives, subnormal numbers are zeros where they are computed with. On a GPU that holds for floats only; here it
// would for doubles too, so that kernels of arrays of doubles go without. Halves are converted by integers.
class Flushing {
    static constexpr unsigned results = 0x8000, operands = 0x40;
    const unsigned before = _mm_getcsr();

 public:
    explicit Flushing(const Instance* instance) {
        if (instance->unit->flushes && !instance->doubles) _mm_setcsr(before | results | operands);
    }
    ~Flushing() { _mm_setcsr(before); }
};

void run_block(uint3 block) {
    lucid_running.block = block;
    const size_t count = launch.threads.size();
    for (CudaThread& thread : launch.threads) thread.state = State::unstarted;
    for (size_t w = 0; w < launch.warps.size(); ++w) {
        const size_t lanes = count - w * 32;
        launch.warps[w].live = lanes >= 32 ? ~0u : (1u << lanes) - 1;
        launch.warps[w].waiting = 0;
    }
    launch.live = (unsigned)count;
    launch.arrived = 0;
    launch.next_start = launch.next_ready = 0;
    launch.ready.clear();
    idle = fibers;
    shuffle_order();
    fill_shared();
    order_block();
    launch.inside = true;
    run_other(&launch.host);
    launch.inside = false;
    if (launch.report.empty() && launch.live) note(deadlock());
}

}  // namespace

extern "C" {

void lucid_stop(const char* what, const char* file, int line) {
    stop(std::string(what) + " (" + site(file, line) + ")");
}

// ---- what threads wait at ----

static const char* const barrier_names[] = {"__syncthreads", "__syncthreads_count", "__syncthreads_and",
                                            "__syncthreads_or"};

int lucid_block_barrier(BlockOperation operation, int predicate, const char* file, int line) {
    CudaThread& self = launch.threads[launch.current];
    self.operation = barrier_names[operation];
    self.file = file;
    self.line = line;
    self.mask = 0;
    if (launch.arrived == 0) {
        launch.arrived_first = launch.current;
        launch.barrier_operation = operation;
        launch.barrier_sum = 0;
    } else {
        const CudaThread& first = launch.threads[launch.arrived_first];
        if (first.line != line || first.operation != self.operation || strcmp(first.file, file) != 0)
            stop("divergent barrier: it is at " + std::string(self.operation) + " (" + site(file, line) + "), but " +
                 described(first));
    }
    launch.barrier_sum += predicate != 0;
    if (++launch.arrived == launch.live) {
        release_barrier();
    } else {
        self.state = State::at_barrier;
        run_other(self.fiber);
    }
    return launch.barrier_result;
}

static unsigned long long meet(const char* operation, unsigned mask, unsigned long long offered, int source,
                               unsigned long long sought, const char* file, int line) {
    const unsigned number = launch.current, lane = number % 32;
    CudaThread& self = launch.threads[number];
    self.operation = operation;
    self.file = file;
    self.line = line;
    self.mask = mask;
    self.offered = offered;
    self.source = source;
    self.sought = sought;
    if (!(mask >> lane & 1)) stop("a lane that is not in the mask: " + described(self));
    launch.warps[number / 32].waiting |= 1u << lane;
    if (!release_lanes(number)) {
        self.state = State::at_warp;
        run_other(self.fiber);
    }
    return self.received;
}

unsigned long long lucid_shuffle(const char* operation, unsigned mask, unsigned long long value, int source,
                                 const char* file, int line) {
    return meet(operation, mask, value, source & 31, 0, file, line);
}

unsigned lucid_match(const char* operation, unsigned mask, unsigned long long offered, unsigned long long sought,
                     const char* file, int line) {
    return (unsigned)meet(operation, mask, offered, -1, sought, file, line);
}

unsigned lucid_active_mask() { return 1u << launch.current % 32; }

void lucid_atomic(int begins) { atomically = begins; }

// ---- what Python calls ----

// As cuLaunchKernel; `extra` is CU_LAUNCH_PARAM_BUFFER_POINTER, pointer, CU_LAUNCH_PARAM_BUFFER_SIZE, pointer, end.
__attribute__((visibility("default"))) int lucid_launch(const Instance* instance, unsigned gx, unsigned gy, unsigned gz,
                                                        unsigned bx, unsigned by, unsigned bz, unsigned shared, void*,
                                                        void**, void** extra) {
    std::lock_guard<std::mutex> guard(one_at_a_time);
    const size_t count = (size_t)bx * by * bz;
    forget_fault();
    if (gx - 1 >= 0x7fffffffu || gy - 1 >= 65535 || gz - 1 >= 65535 || count - 1 >= 1024 || bz > 64 ||
        shared > 227 << 10) {
        told =
            "a block has at most 1,024 threads and 227 KiB of shared memory, a grid at most 2^31 - 1 blocks, 65,535 "
            "along y and z";
        return 2;
    }
    if (!executes()) return 0;
    launch.report.clear();
    launch.instance = instance;
    launch.of_cupy = strncmp(instance->name, "cupy_", 5) == 0;
    launch.packed = (const unsigned char*)extra[1];
    lucid_running.block_size = {bx, by, bz};
    lucid_running.grid_size = {gx, gy, gz};
    if (launch.threads.size() != count) launch.threads.resize(count);
    launch.warps.resize((count + 31) / 32);
    launch.order.resize(count);
    for (unsigned i = 0; i < count; ++i) {
        launch.threads[i].index = {i % bx, i / bx % by, i / (bx * by)};
        launch.order[i] = i;
    }
    random_state = seed * 0x9E3779B97F4A7C15ull + 1;
    begin_launch(instance, launch.packed, shared);
    const Chosen x(gx), y(gy), z(gz);
    const uint64_t blocks = x.count * y.count * z.count, start = seed && blocks ? draw(0x7fffffff) % blocks : 0;
    {
        const Flushing flushing(instance);
        const Signals signals;
        for (uint64_t i = 0; i < blocks && launch.report.empty(); ++i) {
            const uint64_t turn = (i + start) % blocks;
            run_block({x[turn % x.count], y[turn / x.count % y.count], z[turn / x.count / y.count]});
        }
    }
    told = launch.report;
    for (int stored = 0; stored < 2; ++stored) told_bytes[stored] = moved_bytes(stored);
    if (!launch.report.empty()) return 1;
    told = race_of_launch();
    return told.empty() ? 0 : 3;
}

__attribute__((visibility("default"))) uint64_t lucid_bytes(int stored) { return told_bytes[stored]; }
__attribute__((visibility("default"))) const char* lucid_report() { return told.c_str(); }
__attribute__((visibility("default"))) void lucid_set_seed(unsigned long long value) { seed = value; }
__attribute__((visibility("default"))) unsigned long long lucid_seed() { return seed; }
}
