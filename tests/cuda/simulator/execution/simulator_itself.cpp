// The runtime of the simulated device under g++'s sanitizers: launches of kernels that are written as g++ builds them,
// with a call of the runtime before each access. Exit status 0: all came out as they should.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "execution/runtime.h"

using namespace lucid_simulator;

extern "C" {
int cudaMalloc(void** out, size_t size);
int cudaFree(void* address);
int cudaHostRegister(void* address, size_t size, unsigned flags);
int cudaHostUnregister(void* address);
void lucid_divide(uintptr_t begin);
void lucid_hand_out(uintptr_t begin, size_t size);
void lucid_take_back(uintptr_t begin);
void lucid_load(const Unit* loaded, const char* path, unsigned count, const size_t* offsets, const char** names);
int lucid_launch(const Instance*, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                 unsigned shared, void*, void**, void** extra);
const char* lucid_report();
void lucid_set_seed(unsigned long long value);
void __tsan_read4(uintptr_t address);
void __tsan_write4(uintptr_t address);
void __tsan_write_range(uintptr_t address, size_t size);
}

namespace {

struct Parameters {
    int* x;
    int n;
};

struct {
    unsigned long bytes;
    unsigned char before[56];
    int variable[64];
    unsigned char behind[64];
} shared = {sizeof shared.variable};

int load(const int* p) {
    __tsan_read4((uintptr_t)p);
    return *p;
}
void store(int* p, int value) {
    __tsan_write4((uintptr_t)p);
    *p = value;
}

void add(const unsigned char* packed) {
    const Parameters& p = *(const Parameters*)packed;
    const int i = (int)(lucid_running.block.x * lucid_running.block_size.x + lucid_running.thread.x);
    if (i < p.n) store(p.x + i, load(p.x + i) + i);
}

template <bool BARRIER> void reverse(const unsigned char* packed) {
    const Parameters& p = *(const Parameters*)packed;
    const int t = (int)lucid_running.thread.x;
    int* const s = p.n ? (int*)lucid_dynamic_shared : shared.variable;
    store(s + t, load(p.x + t));
    if (BARRIER) lucid_block_barrier(barrier, 0, "itself", 1);
    const int other = load(s + 63 - t);
    const unsigned long long sum = lucid_shuffle("__shfl_xor_sync", ~0u, (unsigned)other, t % 32 ^ 1, "itself", 2);
    lucid_match("__syncwarp", t % 32 < 7 ? 0x7fu : ~0x7fu, 0, 0, "itself", 3);
    store(p.x + t, (int)sum);
}

void outside(const unsigned char* packed) {
    const Parameters& p = *(const Parameters*)packed;
    lucid_block_barrier(barrier, 0, "itself", 4);
    if (lucid_running.thread.x == 7) __tsan_write_range((uintptr_t)(p.x + p.n - 1), 12);
}

void apart(const unsigned char*) {
    if (lucid_running.thread.x == 3) return;
    if (lucid_running.thread.x < 5) lucid_block_barrier(barrier, 0, "itself", 5);
    lucid_match("__syncwarp", ~0u, 0, 0, "itself", 6);
}

extern const Unit unit;
const Instance instances[] = {
    {"add", "Pi", sizeof(Parameters), add, &unit},
    {"reverse", "Pi", sizeof(Parameters), reverse<true>, &unit},
    {"race", "Pi", sizeof(Parameters), reverse<false>, &unit},
    {"outside", "Pi", sizeof(Parameters), outside, &unit},
    {"apart", "Pi", sizeof(Parameters), apart, &unit},
};
const Unit unit = {instances, 5, nullptr, nullptr};

void expect(bool right, const std::string& what) {
    if (right) return;
    fprintf(stderr, "%s; report: %s\n", what.c_str(), lucid_report());
    exit(1);
}

int launch(int number, unsigned grid, unsigned block, int* x, int n, unsigned bytes = 0) {
    Parameters parameters = {x, n};
    size_t size = sizeof parameters;
    void* extra[] = {(void*)1, &parameters, (void*)2, &size, nullptr};
    return lucid_launch(&instances[number], grid, 1, 1, block, 1, 1, bytes, nullptr, nullptr, extra);
}

bool refused(int code, const char* word) { return code && strstr(lucid_report(), word); }

void run(unsigned long long seed) {
    lucid_set_seed(seed);
    int* x;
    expect(cudaMalloc((void**)&x, 1000 * sizeof(int)) == 0, "malloc");
    for (int i = 0; i < 1000; ++i) x[i] = i;
    expect(launch(0, 8, 128, x, 1000) == 0 && x[999] == 1998, "add");
    for (unsigned bytes : {0u, 256u, 4096u}) {
        for (int i = 0; i < 64; ++i) x[i] = i;
        expect(launch(1, 1, 64, x, bytes != 0, bytes) == 0, "reverse");
        for (int i = 0; i < 64; ++i) expect(x[i] == 63 - (i ^ 1), "reversed");
        expect(refused(launch(2, 3, 64, x, bytes != 0, bytes), "race on"), "race");
    }
    expect(refused(launch(1, 1, 128, x, 0), "out-of-range"), "beyond the shared variable");
    expect(refused(launch(3, 2, 96, x, 1000), "over the end of"), "over the end");
    expect(launch(3, 2, 96, x, 998) == 0, "up to the end");
    expect(refused(launch(4, 1, 64, x, 0), "deadlock"), "deadlock");
    expect(refused(launch(0, 1, 1025, x, 0), "at most 1,024"), "too large a block");
    expect(launch(1, 5, 64, x, 0) == 0, "after errors");
    lucid_divide((uintptr_t)x);
    expect(refused(launch(0, 1, 32, x, 1), "out-of-range"), "between blocks");
    lucid_hand_out((uintptr_t)x, 400);
    lucid_hand_out((uintptr_t)(x + 128), 400);
    expect(x[0] == -1 && launch(0, 1, 128, x, 100) == 0 && x[99] == 98, "a block");
    expect(refused(launch(0, 1, 128, x, 101), "just behind an allocation of 400"), "behind a block");
    lucid_take_back((uintptr_t)x);
    expect(refused(launch(0, 1, 32, x, 1), "out-of-range"), "after it was taken back");
    expect(cudaFree(x) == 0 && cudaFree(x) != 0, "free");
    expect(refused(launch(0, 1, 32, x + 128, 1), "out-of-range"), "after free");
    std::vector<int> mine(64);
    expect(cudaHostRegister(mine.data(), 256, 0) == 0, "register");
    expect(launch(0, 1, 64, mine.data(), 64) == 0 && mine[63] == 63, "registered");
    expect(cudaHostUnregister(mine.data()) == 0 && cudaHostUnregister(mine.data()) != 0, "unregister");
}

}  // namespace

int main() {
    const size_t offset = strtoull(getenv("LUCID_SHARED_OFFSET"), nullptr, 16);
    const char* name = "variable";
    lucid_load(&unit, "", 1, &offset, &name);
    for (unsigned long long seed = 0; seed < 5; ++seed) run(seed);
    std::thread other([] { run(7); });
    other.join();
    puts("all as it should be");
}
