#include "execution/images.h"

#include <link.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "execution/launch.h"
#include "host/queue.h"

using namespace lucid_simulator;

alignas(1024) unsigned char lucid_dynamic_shared[227 << 10];

namespace {

std::map<const Unit*, Library> libraries;

// Tells where a library lies, if it is the one that holds the unit.
int find_image(dl_phdr_info* info, size_t, void* data) {
    auto& [unit, entry] = *(std::pair<const Unit* const, Library>*)data;
    Library found{entry.path, info->dlpi_addr, {}, {}, {~(uintptr_t)0, 0}, {}, {}};
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& part = info->dlpi_phdr[i];
        const Range range{info->dlpi_addr + part.p_vaddr, info->dlpi_addr + part.p_vaddr + part.p_memsz};
        if (part.p_type == PT_GNU_RELRO) found.read_only_after_loading = range;
        if (part.p_type != PT_LOAD) continue;
        if (part.p_flags & PF_W) found.writable = range;
        found.image = {std::min(found.image.begin, range.begin), std::max(found.image.end, range.end)};
    }
    if (!found.image.holds((uintptr_t)unit, 1)) return 0;
    return entry = found, 1;
}

}  // namespace

namespace lucid_simulator {

const Library* library;
Range dynamic;
thread_local std::string fault_library;

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
    fault_library = library->path;
    return "{code " + hexadecimal(code) + "}";
}

}  // namespace lucid_simulator

// ---- what Python calls ----

// Shared variables, LUCID_SHARED of device.h, are at these rising offsets of the library that holds `loaded`, which was
// built as `path`.
LUCID_CUDA void lucid_load(const Unit* loaded, const char* path, unsigned count, const size_t* offsets,
                           const char** names) {
    if (libraries.count(loaded)) return;  // what was loaded once stays
    auto& known = *libraries.emplace(loaded, Library{path, 0, {}, {}, {}, {}, {}}).first;
    dl_iterate_phdr(find_image, &known);
    Library& entry = known.second;
    constexpr size_t room = 64;
    for (unsigned i = 0; i < count; ++i) {
        const uintptr_t begin = entry.base + offsets[i] + room;
        entry.shared.push_back({{begin, begin + *(const size_t*)(begin - room)}, names[i]});
    }
    if (count) entry.statics = {entry.shared.front().range.begin - room, entry.shared.back().range.end + room};
}

// The path as which the library of a kernel was built; "" if it was not told.
LUCID_CUDA const char* lucid_path(const Instance* instance) {
    const auto found = libraries.find(instance->unit);
    return found == libraries.end() ? "" : found->second.path.c_str();
}
LUCID_CUDA const char* lucid_name(const Instance* instance) { return instance->name; }
