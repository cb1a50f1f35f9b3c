// Memory of the simulated device, and the check of each load and store of a kernel.
//
// g++ puts a call of __asan_load4_noabort and the like before each access whose address it cannot vouch for. An address
// must lie in an allocation, in shared memory, on the stacks of the threads, or in the tables of the kernel's library.
#include "memory.h"

#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <vector>

#include "fiber.h"
#include "races.h"

using namespace lucid_simulator;

namespace {

constexpr int garbage = 0xFF;  // NaN in every floating type, -1 in the signed ones
constexpr size_t unit_size = 512;

struct Allocation {
    size_t size;
    void* storage;  // to be given back
    size_t mapped;  // bytes of it, 0 if it is the heap's
};

struct Range {
    uintptr_t begin, end;
    bool holds(uintptr_t address, size_t size) const { return address >= begin && address + size <= end; }
};

struct Variable {
    Range range;
    const char* name;
};

struct Library {
    std::string path;
    uintptr_t base;
    Range image;
    std::vector<Variable> shared;
    Range statics;  // from the first of these to the last
    Range writable;
    std::vector<bool> may_touch;  // each byte of that part
};

std::mutex table_lock;
std::map<uintptr_t, Allocation> table;
std::vector<Range> lent;  // memory of others, which may overlap
std::map<const Unit*, Library> libraries;
std::vector<Variable> registered;  // by libraries that are being loaded
thread_local const char* fault_library = nullptr;  // of this host thread's last launch

// Of the launch. Allocations begin at multiples of 512, so that no two share an entry of `recent`.
Range recent[1024], parameters, dynamic;
const Library* library;
std::vector<unsigned char> dynamic_storage;

std::string counted(uint64_t bytes) {
    std::string digits = std::to_string(bytes);
    for (int i = (int)digits.size() - 3; i > 0; i -= 3) digits.insert(i, ",");
    return digits + (bytes == 1 ? " byte" : " bytes");
}

// Where `address` lies relative to `range`, and how far from it.
std::string relation(uintptr_t address, const Range& range, uint64_t* distance) {
    *distance = address < range.begin ? range.begin - address : address - range.end;
    if (address < range.begin) return counted(*distance) + " before ";
    if (address < range.end) return *distance = 0, "over the end of ";
    return *distance == 0 ? "just behind " : counted(*distance) + " behind ";
}

std::string nearest(uintptr_t address) {
    uint64_t least = ~0ull;
    std::string words;
    auto consider = [&](const Range& range, const std::string& what) {
        uint64_t distance;
        const std::string where = relation(address, range, &distance);
        if (distance < least) least = distance, words = where + what + " of " + counted(range.end - range.begin);
    };
    for (const auto& [begin, allocation] : table) consider({begin, begin + allocation.size}, "an allocation");
    for (const Range& range : lent) consider(range, "memory lent by the host");
    if (library)
        for (const Variable& variable : library->shared)
            consider(variable.range, "the shared variable " + std::string(variable.name));
    consider(dynamic, "the dynamic shared memory");
    if (address < 4096) return "a null pointer";
    return least < (1 << 20) ? words : "far from all memory of the device";
}

bool remember(const Range& range, uintptr_t address, size_t size) {
    if (!range.holds(address, size)) return false;
    recent[address / unit_size % 1024] = range;
    return true;
}

bool of_library(uintptr_t address, size_t size) {
    const uintptr_t offset = address - library->writable.begin;
    if (offset < library->may_touch.size()) return library->may_touch[offset] && library->may_touch[offset + size - 1];
    return library->image.holds(address, size);
}

bool of_others(uintptr_t address, size_t size) {
    if (parameters.holds(address, size)) return true;
    std::lock_guard<std::mutex> guard(table_lock);
    const auto next = table.upper_bound(address);
    if (next != table.begin()) {
        const auto& [begin, allocation] = *std::prev(next);
        if (remember({begin, begin + allocation.size}, address, size)) return true;
    }
    for (const Range& range : lent)
        if (remember(range, address, size)) return true;
    return false;
}

enum class Access { read, write };

[[noreturn]] void refuse(uintptr_t address, size_t size, Access access, uintptr_t code) {
    char number[32];
    snprintf(number, sizeof number, "0x%llx", (unsigned long long)address);
    const std::string what = access == Access::read ? "read" : "write";
    lucid_simulator_fail("out-of-range " + what + " of " + counted(size) + " at " + number + ", " + nearest(address) +
                         code_mark(code));
}

// The dynamic shared memory comes first among what is watched for races, and the variables behind it.
size_t statics_offset() { return (dynamic.end - dynamic.begin + 15) / 16 * 16; }

inline void check(uintptr_t address, size_t size, Access access, void* return_address) {
    if (recent[address / unit_size % 1024].holds(address, size) || in_stacks(address)) return;
    const uintptr_t code = (uintptr_t)return_address - 1 - library->base;
    size_t offset;
    if (dynamic.holds(address, size)) {
        offset = address - dynamic.begin;
    } else if (of_library(address, size)) {
        if (!library->statics.holds(address, size)) return;
        offset = statics_offset() + (address - library->statics.begin);
    } else if (of_others(address, size)) {
        return;
    } else {
        refuse(address, size, access, code);
    }
    access == Access::read ? load_shared(offset, size, code) : store_shared(offset, size, code);
}

struct Image {
    uintptr_t inside, base;
    const char* path;
    Range all, writable, read_only_after_loading;
};

// Looks for the library that holds `inside`.
int find_image(dl_phdr_info* info, size_t, void* data) {
    Image image{((Image*)data)->inside, info->dlpi_addr, info->dlpi_name, {~(uintptr_t)0, 0}, {}, {}};
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& part = info->dlpi_phdr[i];
        const Range range{info->dlpi_addr + part.p_vaddr, info->dlpi_addr + part.p_vaddr + part.p_memsz};
        if (part.p_type == PT_GNU_RELRO) image.read_only_after_loading = range;
        if (part.p_type != PT_LOAD) continue;
        if (part.p_flags & PF_W) image.writable = range;
        image.all = {range.begin < image.all.begin ? range.begin : image.all.begin,
                     range.end > image.all.end ? range.end : image.all.end};
    }
    if (!image.all.holds(image.inside, 1)) return 0;
    *(Image*)data = image;
    return 1;
}

}  // namespace

namespace lucid_simulator {

void begin_launch(const Instance* instance, const unsigned char* packed, size_t shared) {
    library = &libraries.at(instance->unit);
    memset(recent, 0, sizeof recent);
    parameters = {(uintptr_t)packed, (uintptr_t)packed + instance->size};
    dynamic_storage.resize(shared + 16);
    const uintptr_t begin = ((uintptr_t)dynamic_storage.data() + 15) / 16 * 16;
    dynamic = {begin, begin + shared};
    watch_shared(statics_offset() + (library->statics.end - library->statics.begin));
}

void fill_shared() {
    memset((void*)dynamic.begin, garbage, dynamic.end - dynamic.begin);
    for (const Variable& variable : library->shared)
        memset((void*)variable.range.begin, garbage, variable.range.end - variable.range.begin);
}

void forget_fault() { fault_library = nullptr; }

std::string shared_place(size_t offset) {
    if (offset < dynamic.end - dynamic.begin)
        return "byte " + std::to_string(offset) + " of the dynamic shared memory";
    const uintptr_t address = library->statics.begin + (offset - statics_offset());
    for (const Variable& variable : library->shared)
        if (variable.range.holds(address, 1))
            return "byte " + std::to_string(address - variable.range.begin) + " of the shared variable " + variable.name;
    return "shared memory";
}

std::string code_mark(uintptr_t code) {
    fault_library = library->path.c_str();
    char mark[32];
    snprintf(mark, sizeof mark, "{code %llx}", (unsigned long long)code);
    return mark;
}

unsigned char* dynamic_shared() { return (unsigned char*)dynamic.begin; }

}  // namespace lucid_simulator

#define LUCID_EXPORT __attribute__((visibility("default")))

extern "C" {

// ---- what Python calls ----

// Sparse memory is zero, and takes none of the host's until it is written to.
LUCID_EXPORT uintptr_t lucid_allocate(size_t size, int sparse) {
    const size_t whole = (size + unit_size - 1) / unit_size * unit_size + 2 * unit_size;
    void* storage = sparse ? mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                           : aligned_alloc(unit_size, whole);
    if (!storage || storage == MAP_FAILED) return 0;
    if (sparse)
        madvise(storage, whole, MADV_NOHUGEPAGE);
    else
        memset(storage, garbage, whole);
    const uintptr_t begin = (uintptr_t)storage + unit_size;
    std::lock_guard<std::mutex> guard(table_lock);
    table[begin] = {size, storage, sparse ? whole : 0};
    return begin;
}

LUCID_EXPORT int lucid_free(uintptr_t begin) {
    std::lock_guard<std::mutex> guard(table_lock);
    auto found = table.find(begin);
    if (found == table.end()) return 1;
    if (found->second.mapped) {
        munmap(found->second.storage, found->second.mapped);
    } else {
        memset((void*)begin, garbage, found->second.size);
        free(found->second.storage);
    }
    table.erase(found);
    return 0;
}

LUCID_EXPORT void lucid_lend(uintptr_t begin, size_t size) {
    std::lock_guard<std::mutex> guard(table_lock);
    lent.push_back({begin, begin + size});
}

LUCID_EXPORT int lucid_forget(uintptr_t begin) {
    std::lock_guard<std::mutex> guard(table_lock);
    for (size_t i = 0; i < lent.size(); ++i) {
        if (lent[i].begin != begin) continue;
        lent.erase(lent.begin() + (ptrdiff_t)i);
        return 0;
    }
    return 1;
}

LUCID_EXPORT void lucid_load(const Unit* loaded) {
    if (libraries.count(loaded)) return;  // what was loaded once stays
    Image image{(uintptr_t)loaded, 0, "", {}, {}, {}};
    dl_iterate_phdr(find_image, &image);
    Library& entry = libraries[loaded];
    entry.path = image.path;
    entry.base = image.base;
    entry.image = image.all;
    entry.writable = image.writable;
    entry.may_touch.assign(image.writable.end - image.writable.begin, false);
    auto allow = [&](const Range& range) {
        for (uintptr_t a = range.begin; a < range.end; ++a)
            if (image.writable.holds(a, 1)) entry.may_touch[a - image.writable.begin] = true;
    };
    const Range constants{(uintptr_t)loaded->constants_begin, (uintptr_t)loaded->constants_end};
    allow(constants);
    allow(image.read_only_after_loading);
    for (const Variable& variable : registered) {
        const uintptr_t begin = variable.range.begin;
        const bool writable = image.writable.holds(begin, 1) && !image.read_only_after_loading.holds(begin, 1);
        if (!writable || constants.holds(begin, 1)) continue;
        entry.shared.push_back(variable);
        allow(variable.range);
        Range& statics = entry.statics;
        if (statics.end == 0) statics.begin = begin / 16 * 16;
        statics.begin = std::min(statics.begin, begin / 16 * 16);
        statics.end = std::max(statics.end, variable.range.end);
    }
    registered.clear();
}

// Whose code the marks of the report mean; null if it has none.
LUCID_EXPORT const char* lucid_fault_library() { return fault_library; }

// ---- what the address sanitizer calls ----

#define LUCID_ACCESS(size)                                         \
    LUCID_EXPORT void __asan_load##size##_noabort(uintptr_t a) {   \
        check(a, size, Access::read, __builtin_return_address(0));       \
    }                                                              \
    LUCID_EXPORT void __asan_store##size##_noabort(uintptr_t a) {  \
        check(a, size, Access::write, __builtin_return_address(0));      \
    }
LUCID_ACCESS(1)
LUCID_ACCESS(2)
LUCID_ACCESS(4)
LUCID_ACCESS(8)
LUCID_ACCESS(16)
LUCID_EXPORT void __asan_loadN_noabort(uintptr_t a, size_t size) {
    if (size) check(a, size, Access::read, __builtin_return_address(0));
}
LUCID_EXPORT void __asan_storeN_noabort(uintptr_t a, size_t size) {
    if (size) check(a, size, Access::write, __builtin_return_address(0));
}
LUCID_EXPORT void __asan_handle_no_return() {}

struct Global {
    uintptr_t begin;
    size_t size, size_with_redzone;
    const char *name, *module;
    uintptr_t dynamic_init;
    void* location;
    uintptr_t odr_indicator;
};

LUCID_EXPORT void __asan_register_globals(const Global* globals, size_t count) {
    for (size_t i = 0; i < count; ++i)
        if (globals[i].name[0] != '*')  // so begin the names of the compiler's own variables
            registered.push_back({{globals[i].begin, globals[i].begin + globals[i].size}, globals[i].name});
}
LUCID_EXPORT void __asan_unregister_globals(const Global*, size_t) {}
}
