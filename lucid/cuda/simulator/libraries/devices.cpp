// The devices, which answer as an H200 does, and which of them a thread uses.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "allocation.h"
#include "state.h"

namespace lucid_simulator {

Python python = {};
Counts counts = {};

namespace {

thread_local int device = 0;
thread_local bool context = false, known = false;
std::mutex peers_lock;
std::set<std::pair<int, int>> peers;

void be_known() {
    if (known) return;
    known = true;  // what Python does here asks for the device, too
    known = python.enter && python.enter();
}

int number_in(const char* variable, int otherwise) {
    const char* text = getenv(variable);
    return text && *text ? atoi(text) : otherwise;
}

bool is_device(int index) { return index >= 0 && index < device_count(); }

// The beginning of cudaDeviceProp of CUDA 12; the rest stays zero.
struct Properties {
    char name[256], uuid[16], luid[8];
    unsigned luid_mask;
    size_t total_memory, shared_of_block;
    int registers_of_block, warp;
    size_t pitch;
    int threads_of_block, block[3], grid[3], clock;
    size_t constants;
    int major, minor;
    size_t texture_alignment, texture_pitch_alignment;
    int overlap, processors, timeout, integrated, maps_host, compute_mode;
};
constexpr size_t properties_size = 1032;
constexpr int processors = 132, clock_khz = 1980000;

// By cudaDeviceAttr.
const std::map<int, int> attributes = {
    {1, 1024},      {2, 1024},   {3, 1024},    {4, 64},         {5, 2147483647}, {6, 65535},   {7, 65535},
    {8, 49152},     {9, 65536},  {10, 32},     {11, 2147483647}, {12, 65536},    {13, clock_khz}, {14, 512},
    {15, 1},        {16, processors}, {17, 0}, {18, 0},         {19, 1},         {20, 0},      {31, 1},
    {36, 3201000},  {37, 6144},  {38, 62914560}, {39, 2048},    {40, 3},         {41, 1},      {75, 9},
    {76, 0},        {78, 1},     {79, 1},      {80, 1},         {81, 233472},    {82, 65536},  {83, 1},
    {85, 0},        {86, 1},     {87, 2},      {88, 1},         {89, 1},         {90, 1},      {91, 1},
    {95, 1},        {97, 232448}, {99, 1},     {100, 1},        {101, 1},        {106, 32},    {111, 1024},
    {115, 1},       {116, 1},
};

}  // namespace

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

}  // namespace lucid_simulator

using namespace lucid_simulator;

LUCID_CUDA int cudaGetDevice(int* out) { return *out = current_device(), success; }
LUCID_CUDA int cudaSetDevice(int index) { return set_current_device(index); }
LUCID_CUDA int cudaGetDeviceCount(int* out) { return *out = device_count(), success; }
LUCID_CUDA int cudaDriverGetVersion(int* out) { return *out = 12090, success; }
LUCID_CUDA int cudaRuntimeGetVersion(int* out) { return *out = 12090, success; }
LUCID_CUDA int cuInit(unsigned) { return success; }
LUCID_CUDA int cuDriverGetVersion(int* out) { return *out = 12090, success; }

LUCID_CUDA int cudaDeviceGetAttribute(int* out, int which, int index) {
    if (!is_device(index)) return fail(invalid_device);
    const auto found = attributes.find(which);
    return *out = found == attributes.end() ? 0 : found->second, success;
}

LUCID_CUDA int cudaGetDeviceProperties_v2(void* out, int index) {
    if (!is_device(index)) return fail(invalid_device);
    memset(out, 0, properties_size);
    Properties& told = *(Properties*)out;
    snprintf(told.name, sizeof told.name, "lucid simulator %d", index);
    told.uuid[0] = (char)(index + 1);
    told.total_memory = capacity();
    told.shared_of_block = 49152;
    told.registers_of_block = 65536;
    told.warp = 32;
    told.pitch = 2147483647;
    told.threads_of_block = told.block[0] = told.block[1] = 1024;
    told.block[2] = 64;
    told.grid[0] = 2147483647;
    told.grid[1] = told.grid[2] = 65535;
    told.clock = clock_khz;
    told.constants = 65536;
    told.major = 9;
    told.texture_alignment = 512;
    told.texture_pitch_alignment = 32;
    told.overlap = told.maps_host = 1;
    told.processors = processors;
    return success;
}
LUCID_CUDA int cudaGetDeviceProperties(void* out, int index) { return cudaGetDeviceProperties_v2(out, index); }

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
LUCID_CUDA Counts* lucid_counts() { return &counts; }
// What CuPy's binaries call that is not written.
LUCID_CUDA int lucid_unsupported() { return fail(not_supported, "lucid's simulated CUDA has no such function"); }
