// The devices, which answer as an H200 does, and which of them a thread uses.
#include <dlfcn.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "host/state.h"

namespace lucid_simulator {

Python python = {};
Counts counts = {};

namespace {

thread_local int device = 0;
thread_local bool context = false, known = false;
thread_local Answer answer = {};
std::mutex peers_lock;
std::set<std::pair<int, int>> peers;
std::atomic<size_t> room{150754820096};

void be_known() {
    if (known) return;
    known = true;  // what Python does here asks for the device, too
    known = python.enter && ask(python.enter).number;
}

int number_in(const char* variable, int otherwise) {
    const char* text = getenv(variable);
    return text && *text ? atoi(text) : otherwise;
}

bool is_device(int index) { return index >= 0 && index < device_count(); }

// `several`: one kernel on several devices, which is gone in CUDA 13.
constexpr int processors = 132, clock_khz = 1980000, bus = 33, several = LUCID_VERSION < 13000;

// By cudaDeviceAttr. Published figures of an H200 and, for textures, of Hopper; what the part of the L2 cache that can be
// set aside has is not published. It is a host's on PCIe, which does not share its pages.
const std::map<int, int> attributes = {
    {1, 1024},     {2, 1024},        {3, 1024},    {4, 64},          {5, 2147483647}, {6, 65535},      {7, 65535},
    {8, 49152},    {9, 65536},       {10, 32},     {11, 2147483647}, {12, 65536},     {13, clock_khz}, {14, 512},
    {15, 1},       {16, processors}, {19, 1},      {21, 131072},     {22, 131072},    {23, 65536},     {24, 16384},
    {25, 16384},   {26, 16384},      {27, 32768},  {28, 32768},      {29, 2048},      {30, 512},       {31, 1},
    {32, 1},       {36, 3201000},    {37, 6144},   {38, 62914560},   {39, 2048},      {40, 3},         {41, 1},
    {42, 32768},   {43, 2048},       {45, 32768},  {46, 32768},      {47, 8192},      {48, 8192},      {49, 32768},
    {51, 32},      {52, 32768},      {53, 32768},  {54, 2046},       {55, 32768},     {56, 131072},    {57, 65536},
    {58, 16384},   {59, 16384},      {60, 16384},  {61, 32768},      {62, 2048},      {63, 32768},     {64, 32768},
    {65, 2048},    {66, 32768},      {67, 32768},  {68, 2046},       {69, 268435456}, {70, 131072},    {71, 65000},
    {72, 2097120}, {73, 32768},      {74, 32768},  {75, 9},          {76, 0},         {77, 32768},     {78, 1},
    {79, 1},       {80, 1},          {81, 233472}, {82, 65536},      {83, 1},         {87, 2},         {89, 1},
    {90, 1},       {91, 1},          {95, 1},      {96, several},    {97, 232448},    {99, 1},         {106, 32},
    {111, 1024},   {112, 1},         {114, 1},     {115, 1},         {116, 1},        {117, 1},        {118, 100},
    {119, 9},      {120, 1},         {121, 1},     {125, 1},         {129, 1},
};

int attribute(int which, int index) {
    const auto found = attributes.find(which);
    return which == bus ? index + 1 : found == attributes.end() ? 0 : found->second;
}

// cudaDeviceProp: what is no attribute, then the attributes that its members tell, in their order. Those that are a size_t
// are marked.
template <size_t size> struct Properties {
    char name[256], uuid[16], luid[8];
    unsigned luid_mask;
    size_t total_memory;
    unsigned char members[size - 296];
};
using Properties12 = Properties<1032>;
using Properties13 = Properties<1008>;
constexpr int large = 1000;
constexpr int members[] = {
    8 + large,  12,         10,  11 + large, 1,   2,          3,   4,   5,           6,  7,   13,  9 + large, 75,  76,
    14 + large, 51 + large, 15,  16,         17,  18,         19,  20,  21,          77, 69,  22,  23,        73,  74,
    70,         71,         72,  45,         46,  24,         25,  26,  47,          48, 49,  52,  42,        43,  27,
    28,         29,         53,  54,         55,  56,         57,  58,  59,          60, 61,  62,  63,        64,  65,
    66,         67,         68,  30 + large, 31,  32,         33,  34,  50,          35, 40,  41,  36,        37,  38,
    108,        39,         78,  79,         80,  81 + large, 82,  83,  84,          85, 86,  87,  88,        89,  90,
    91,         95,         96,  97 + large, 100, 101,        106, 109, 111 + large, 99, 112, 113, 114,       115, 116,
    117,        118,        119, 121,        125, 120,        129,
};
// What CUDA 13 has left out of it, and what it has put behind the rest.
const std::set<int> only_in_12 = {13, 15, 17, 20, 36, 69, 87, 96};
constexpr int only_in_13[] = {130, 131, 133, 134, 139, 140, 143};

unsigned char* put(int member, int index, unsigned char* begin, unsigned char* place) {
    const size_t value = (size_t)attribute(member % large, index), size = member < large ? sizeof(int) : sizeof value;
    place += (size_t)(begin - place) % size;  // it begins at a multiple of 8
    memcpy(place, &value, size);
    return place + size;
}

template <class Properties> int tell(Properties* out, int index) {
    if (!is_device(index)) return fail(invalid_device);
    constexpr bool is_13 = std::is_same<Properties, Properties13>::value;
    *out = {};
    snprintf(out->name, sizeof out->name, "lucid simulator %d", index);
    out->uuid[0] = (char)(index + 1);
    out->total_memory = capacity();
    unsigned char* place = out->members;
    for (const int member : members)
        if (!is_13 || !only_in_12.count(member)) place = put(member, index, out->members, place);
    if (is_13)
        for (const int member : only_in_13) place = put(member, index, out->members, place);
    return success;
}

}  // namespace

Answer ask(const std::function<void()>& call) {
    // what Python does for it may ask, too
    Answer outer = std::move(answer);
    answer = {};
    call();
    std::swap(outer, answer);
    if (!outer.given) raise(SIGINT);
    return outer;
}

bool signalled() {
    struct Error {
        void *kind, *value, *traceback;
    };
    static const auto hold = (int (*)())dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
    static const auto let_go = (void (*)(int))dlsym(RTLD_DEFAULT, "PyGILState_Release");
    static const auto answer_signals = (int (*)())dlsym(RTLD_DEFAULT, "PyErr_CheckSignals");
    static const auto fetch = (void (*)(void**, void**, void**))dlsym(RTLD_DEFAULT, "PyErr_Fetch");
    static const auto restore = (void (*)(void*, void*, void*))dlsym(RTLD_DEFAULT, "PyErr_Restore");
    static const auto call_later = (int (*)(int (*)(void*), void*))dlsym(RTLD_DEFAULT, "Py_AddPendingCall");
    if (!hold || !let_go || !answer_signals || !fetch || !restore || !call_later) return false;
    const int state = hold();
    const bool raised = answer_signals() != 0;
    if (raised) {
        Error* error = new Error{};
        fetch(&error->kind, &error->value, &error->traceback);
        call_later(
            [](void* kept) {
                const Error error = *(Error*)kept;
                delete (Error*)kept;
                return restore(error.kind, error.value, error.traceback), -1;
            },
            error);
    }
    let_go(state);
    return raised;
}

int device_count() {
    static const int count = number_in("LUCID_CUDA_SIMULATOR", 1);
    return count;
}

int current_device() {
    be_known();
    return device;
}

int set_current_device(int index) {
    if (!is_device(index)) return fail(invalid_device);
    device = index;
    make_context();
    return success;
}

bool has_context() { return context; }

void make_context() {
    be_known();
    context = true;
}

bool may_reach(int from, int to) {
    if (from == to) return true;
    std::lock_guard<std::mutex> guard(peers_lock);
    return peers.count({from, to}) > 0;
}

size_t capacity() { return room; }

}  // namespace lucid_simulator

using namespace lucid_simulator;

LUCID_CUDA int cudaGetDevice(int* out) { return *out = current_device(), success; }
LUCID_CUDA int cudaSetDevice(int index) { return set_current_device(index); }
LUCID_CUDA int cudaGetDeviceCount(int* out) { return *out = device_count(), success; }
LUCID_CUDA int cudaDriverGetVersion(int* out) { return *out = LUCID_VERSION, success; }
LUCID_CUDA int cudaRuntimeGetVersion(int* out) { return *out = LUCID_VERSION, success; }
LUCID_CUDA int cuDriverGetVersion(int* out) { return *out = LUCID_VERSION, success; }
// CuPy begins none of it by these. Whoever does, such as numba and cuda-python, wants a whole driver, and sees no device.
LUCID_CUDA int cuInit(unsigned) { return no_device; }
LUCID_CUDA int cuGetProcAddress_v2(const char* name, void** out, int, uint64_t, int* found) {
    *out = strcmp(name, "cuDriverGetVersion") == 0 ? (void*)cuDriverGetVersion : (void*)cuInit;
    if (found) *found = 0;
    return success;
}
LUCID_CUDA int cuGetProcAddress(const char* name, void** out, int version, uint64_t flags) {
    return cuGetProcAddress_v2(name, out, version, flags, nullptr);
}

LUCID_CUDA int cudaDeviceGetAttribute(int* out, int which, int index) {
    if (!is_device(index)) return fail(invalid_device);
    return *out = attribute(which, index), success;
}

// CUDA 12 has the first name for its own, CUDA 13 the second.
LUCID_CUDA int cudaGetDeviceProperties_v2(Properties12* out, int index) { return tell(out, index); }
LUCID_CUDA int cudaGetDeviceProperties(Properties13* out, int index) { return tell(out, index); }

LUCID_CUDA int cudaDeviceGetPCIBusId(char* out, int room, int index) {
    if (!is_device(index)) return fail(invalid_device);
    return snprintf(out, (size_t)room, "0000:%02x:00.0", index + 1), success;
}
LUCID_CUDA int cudaDeviceGetByPCIBusId(int* out, const char* id) {
    const int index = strlen(id) > 5 ? (int)strtol(id + 5, nullptr, 16) - 1 : -1;
    return is_device(index) ? (*out = index, success) : fail(invalid_device);
}

LUCID_CUDA int cudaDeviceCanAccessPeer(int* out, int from, int to) {
    if (!is_device(from) || !is_device(to)) return fail(invalid_device);
    return *out = from != to, success;
}
LUCID_CUDA int cudaDeviceEnablePeerAccess(int other, unsigned) {
    if (!is_device(other) || other == current_device()) return fail(invalid_device);
    std::lock_guard<std::mutex> guard(peers_lock);
    return peers.insert({current_device(), other}).second ? success : fail(peer_enabled);
}
LUCID_CUDA int cudaDeviceDisablePeerAccess(int other) {
    if (!is_device(other)) return fail(invalid_device);
    std::lock_guard<std::mutex> guard(peers_lock);
    return peers.erase({current_device(), other}) ? success : fail(peer_not_enabled);
}
LUCID_CUDA int cudaDeviceGetLimit(size_t* out, int) { return *out = 1024, success; }
LUCID_CUDA int cudaDeviceSetLimit(int, size_t) { return success; }
LUCID_CUDA int cudaProfilerStart() { return success; }
LUCID_CUDA int cudaProfilerStop() { return success; }

// ---- contexts: each device has its primary one, whose handle tells the device ----

namespace {
constexpr uintptr_t first_context = 0x1000;
void* context_of(int index) { return (void*)(first_context + (uintptr_t)index); }
}  // namespace

LUCID_CUDA int cuCtxGetCurrent(void** out) {
    return *out = has_context() ? context_of(current_device()) : nullptr, success;
}
LUCID_CUDA int cuCtxSetCurrent(void* chosen) {
    if (!chosen) return lucid_simulator::context = false, success;
    return set_current_device((int)((uintptr_t)chosen - first_context));
}
LUCID_CUDA int cuCtxGetDevice(int* out) {
    return has_context() ? (*out = current_device(), success) : fail(no_context);
}
LUCID_CUDA int cuDevicePrimaryCtxRelease_v2(int) { return success; }
// NVIDIA's own NVRTC, where a process has that too, asks the driver for tables that nobody documents, and believes that a
// driver without this function has given them.
LUCID_CUDA int cuGetExportTable(const void**, const void*) {
    return fail(not_supported, "lucid's simulated CUDA has no tables of functions");
}
LUCID_CUDA int cuStreamGetCtx(void*, void** out) { return *out = context_of(current_device()), success; }

// ---- what Python sets and reads ----

LUCID_CUDA void lucid_set_python(const Python* functions) { python = *functions; }
// Of the call that this thread is in; no text: there is none.
LUCID_CUDA void lucid_answer(int number, const char* text) { answer = {text != nullptr, number, text ? text : ""}; }
// How many bytes a device has, an H200's unless it is told; gives how many it had.
LUCID_CUDA size_t lucid_set_capacity(size_t size) { return room.exchange(size); }
LUCID_CUDA Counts* lucid_counts() { return &counts; }
// What CuPy's binaries call that is not written.
LUCID_CUDA int lucid_unsupported() { return fail(not_supported, "lucid's simulated CUDA has no such function"); }
