#include "execution/images.h"

#include <link.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>

using namespace lucid_simulator;

alignas(1024) unsigned char lucid_dynamic_shared[227 << 10];

namespace {

std::map<const Unit*, Library> libraries;
thread_local const char* fault_library = nullptr;  // of this host thread's last launch

struct Image {
    uintptr_t inside, base;
    Range all, writable, read_only_after_loading;
};

// Looks for the library that holds `inside`.
int find_image(dl_phdr_info* info, size_t, void* data) {
    Image image{((Image*)data)->inside, info->dlpi_addr, {~(uintptr_t)0, 0}, {}, {}};
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& part = info->dlpi_phdr[i];
        const Range range{info->dlpi_addr + part.p_vaddr, info->dlpi_addr + part.p_vaddr + part.p_memsz};
        if (part.p_type == PT_GNU_RELRO) image.read_only_after_loading = range;
        if (part.p_type != PT_LOAD) continue;
        if (part.p_flags & PF_W) image.writable = range;
        image.all = {std::min(image.all.begin, range.begin), std::max(image.all.end, range.end)};
    }
    if (!image.all.holds(image.inside, 1)) return 0;
    *(Image*)data = image;
    return 1;
}

}  // namespace

namespace lucid_simulator {

const Library* library;
Range dynamic;

void place_shared(const Unit* unit, size_t bytes) {
    library = &libraries.at(unit);
    const uintptr_t begin = (uintptr_t)lucid_dynamic_shared;
    dynamic = {begin, begin + bytes};
}

size_t statics_offset() { return (dynamic.end - dynamic.begin + 15) / 16 * 16; }

void fill_shared() {
    memset((void*)dynamic.begin, garbage, dynamic.end - dynamic.begin);
    for (const SharedVariable& variable : library->shared)
        memset((void*)variable.range.begin, garbage, variable.range.end - variable.range.begin);
}

size_t least_shared(const Unit* unit) {
    const auto found = libraries.find(unit);
    if (found == libraries.end()) return 0;
    size_t sum = 0, largest = 0;
    for (const SharedVariable& variable : found->second.shared) {
        const size_t size = variable.range.end - variable.range.begin;
        sum += size;
        largest = std::max(largest, size);
    }
    return unit->count == 1 ? sum : largest;
}

std::string shared_place(size_t offset) {
    if (offset < dynamic.end - dynamic.begin) return "byte " + std::to_string(offset) + " of the dynamic shared memory";
    const uintptr_t address = library->statics.begin + (offset - statics_offset());
    for (const SharedVariable& variable : library->shared)
        if (variable.range.holds(address, 1))
            return "byte " + std::to_string(address - variable.range.begin) + " of the shared variable " +
                   variable.name;
    return "shared memory";
}

std::string code_mark(uintptr_t code) {
    fault_library = library->path.c_str();
    char mark[32];
    snprintf(mark, sizeof mark, "{code %llx}", (unsigned long long)code);
    return mark;
}

void forget_fault() { fault_library = nullptr; }

}  // namespace lucid_simulator

#define LUCID_EXPORT extern "C" __attribute__((visibility("default")))

// ---- what Python calls ----

// Shared variables, LUCID_SHARED of device.h, are at these rising offsets of the library that holds `loaded`, which was
// built as `path`.
LUCID_EXPORT void lucid_load(const Unit* loaded, const char* path, unsigned count, const size_t* offsets,
                             const char** names) {
    if (libraries.count(loaded)) return;  // what was loaded once stays
    Image image{(uintptr_t)loaded, 0, {}, {}, {}};
    dl_iterate_phdr(find_image, &image);
    Library& entry = libraries[loaded];
    entry.path = path;
    entry.base = image.base;
    entry.image = image.all;
    entry.writable = image.writable;
    entry.read_only_after_loading = image.read_only_after_loading;
    constexpr size_t room = 64;
    for (unsigned i = 0; i < count; ++i) {
        const uintptr_t begin = image.base + offsets[i] + room;
        entry.shared.push_back({{begin, begin + *(const size_t*)(begin - room)}, names[i]});
    }
    if (count) entry.statics = {entry.shared.front().range.begin - room, entry.shared.back().range.end + room};
}

// The path as which the library of a kernel was built; "" if it was not told.
LUCID_EXPORT const char* lucid_path(const Instance* instance) {
    const auto found = libraries.find(instance->unit);
    return found == libraries.end() ? "" : found->second.path.c_str();
}
LUCID_EXPORT const char* lucid_name(const Instance* instance) { return instance->name; }

// Whose code the marks of the report mean; null if it has none.
LUCID_EXPORT const char* lucid_fault_library() { return fault_library; }
