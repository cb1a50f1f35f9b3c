// Modules of kernels, which are libraries of the host, and their launches.
#include <dlfcn.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "execution/images.h"
#include "execution/memory.h"
#include "execution/runtime.h"
#include "host/capture.h"
#include "host/handles.h"
#include "host/memory/host_memory.h"
#include "host/memory/order.h"
#include "host/state.h"

using namespace lucid_simulator;

extern "C" {
int lucid_launch(const Instance*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                 void**);
const char* lucid_report();
const char* lucid_fault_library();
uint64_t lucid_bytes(int stored);
}

namespace {

// What NVRTC gives in place of machine code: this word, and the path of the library.
constexpr char mark[] = "lucid simulator\n";
constexpr unsigned most_shared = 227 << 10, plain_shared = 48 << 10;

struct Variable {
    std::string name;
    uintptr_t begin;
    size_t size;
};

struct Module {
    void* library;
    const Unit* unit;
    std::vector<size_t> launches;
    const unsigned* most_threads;  // of each kernel's launch bounds, 0 for none that is known; null if all are
    bool one_block;                // of CuPy's fused kernels, whose loops stride over the grid
    std::map<const Instance*, std::map<int, int>> attributes;
};

std::mutex lock;
std::vector<Module*> modules;
std::map<const Unit*, std::list<Variable>> variables;  // whose names the checks know

// Under the lock.
Module* module_of(const Instance* instance) {
    for (Module* module : modules)
        if (instance >= module->unit->instances && instance < module->unit->instances + module->unit->count)
            return module;
    return nullptr;
}

// Of CUfunction_attribute: those that a program may choose begin with the bytes of dynamic shared memory.
enum { threads_of_block = 0, own_shared = 1, registers = 4, ptx = 5, binary = 6, dynamic_shared = 8, carveout = 9 };

// Under the lock.
int attribute_of(const Instance* instance, int which) {
    Module* module = module_of(instance);
    const int own = module ? (int)least_shared(module->unit) : 0;
    if (which == own_shared) return own;
    if (which == threads_of_block) {
        const unsigned most =
            module && module->most_threads ? module->most_threads[instance - module->unit->instances] : 0;
        return most ? (int)most : 1024;
    }
    if (module)
        if (const auto& chosen = module->attributes[instance]; chosen.count(which)) return chosen.at(which);
    if (which == dynamic_shared) return (int)plain_shared - own;
    return which == registers ? 32 : which == ptx || which == binary ? 90 : which == carveout ? -1 : 0;
}

// Why CUDA does not take a launch; "" if it does. What is too large for every kernel is told by the launch.
std::string too_large(const Instance* instance, uint64_t threads, unsigned shared) {
    std::lock_guard<std::mutex> guard(lock);
    const int most = attribute_of(instance, threads_of_block), allowed = attribute_of(instance, dynamic_shared);
    if (threads > (unsigned)most && threads <= 1024)
        return "a block of " + std::to_string(threads) + " threads for " + instance->name +
               ", whose __launch_bounds__ are " + std::to_string(most);
    if ((int64_t)shared > allowed && shared <= most_shared)
        return std::to_string(shared) + " bytes of dynamic shared memory for " + instance->name + ", which may have " +
               std::to_string(allowed) + ": set its max_dynamic_shared_size_bytes, " +
               "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, before";
    return "";
}

// Parameters that lie apart, into one buffer. The first that lies in no memory is told by its number: whoever gives too
// few has any address behind the last.
int pack(const Instance* instance, void** parameters, unsigned char* packed) {
    for (unsigned i = 0; i < instance->parameters; ++i) {
        const iovec to = {packed + instance->offsets[i], instance->sizes[i]},
                    from = {parameters[i], instance->sizes[i]};
        const ssize_t moved = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
        if (moved < 0 && errno != EFAULT) memcpy(to.iov_base, from.iov_base, to.iov_len);  // not permitted here
        if ((moved < 0 && errno == EFAULT) || (moved >= 0 && (size_t)moved < to.iov_len))
            return fail_with(invalid_value, "argument " + std::to_string(i + 1) + " of " + instance->name +
                                                " lies in no memory; the kernel has " +
                                                std::to_string(instance->parameters) + " parameters");
    }
    return success;
}

const Unit* unit_of(void* library) { return library ? (const Unit*)dlsym(library, "lucid_unit") : nullptr; }

// The system loads a file once, and each module has variables of its own.
void* open_copy(const char* path) {
    namespace files = std::filesystem;
    std::string name = files::temp_directory_path() / "lucid-XXXXXX";
    const int file = mkstemp(name.data());
    if (file < 0) return nullptr;
    std::error_code failed;
    files::copy_file(path, name, files::copy_options::overwrite_existing, failed);
    void* library = failed ? nullptr : dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    close(file);
    unlink(name.c_str());
    return library;
}

int launch(const Instance* instance, dim3 grid, dim3 block, unsigned shared, void* stream,
           const unsigned char* packed) {
    {
        std::lock_guard<std::mutex> guard(lock);
        if (Module* module = module_of(instance)) ++module->launches[(size_t)(instance - module->unit->instances)];
        ++counts.launches;
    }
    size_t size = instance->size;
    void* buffer[] = {(void*)1, (void*)packed, (void*)2, &size, nullptr};
    const auto work = begin_work(stream, current_device(), instance->name, host_memory_is_awaited());
    const HostMemoryFor shown(work);
    launched_work = orders() ? work : nullptr;
    const int faulty =
        lucid_launch(instance, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, stream, nullptr, buffer);
    counts.bytes_loaded += lucid_bytes(0);
    counts.bytes_stored += lucid_bytes(1);
    if (!faulty || (faulty == 1 && was_interrupted())) return success;
    if (faulty == 3) return fail(launch_failed, lucid_report());
    const char *report = lucid_report(), *library = lucid_fault_library();
    std::string words = report;
    if (python.explain)
        if (const Answer told = ask([&] { python.explain(report, library ? library : ""); }); told.given)
            words = told.text;
    return fail(faulty == 2 ? invalid_value : code_of_fault(words), std::string(instance->name) + ": " + words);
}

}  // namespace

LUCID_CUDA int cuModuleLoadData(Module** out, const void* image) {
    make_context();
    if (strncmp((const char*)image, mark, sizeof mark - 1) != 0)
        return fail(invalid_image, "the simulator loads what its own NVRTC has compiled, no machine code");
    const char* path = (const char*)image + sizeof mark - 1;
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library && python.load)
        if (const Answer known = ask([&] { python.load(path, nullptr); }); known.given && known.number)
            library = open_copy(path);
    if (!library) {
        const char* why = dlerror();
        return fail(invalid_image, why ? why : "the folder for temporary files cannot be written");
    }
    const Unit* unit = unit_of(library);
    if (python.load && !ask([&] { python.load(path, unit); }).given) return fail(invalid_image, "interrupted");
    Module* made = new Module{library,
                              unit,
                              std::vector<size_t>(unit->count),
                              (const unsigned*)dlsym(library, "lucid_most_threads"),
                              dlsym(library, "lucid_one_block") != nullptr,
                              {}};
    std::lock_guard<std::mutex> guard(lock);
    modules.push_back(made);
    return *out = made, success;
}

LUCID_CUDA int cuModuleLoad(Module** out, const char* path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return fail(file_not_found);
    const std::string image{std::istreambuf_iterator<char>(file), {}};
    return cuModuleLoadData(out, image.c_str());
}

// CuPy asks for these by name, and would take one that is missing for a fault of its own.
#define LUCID_ABSENT(name, words) \
    LUCID_CUDA int name() { return fail(not_supported, "the simulator " words); }
LUCID_ABSENT(cuLinkCreate_v2, "links no machine code")
LUCID_ABSENT(cuLinkAddData_v2, "links no machine code")
LUCID_ABSENT(cuLinkAddFile_v2, "links no machine code")
LUCID_ABSENT(cuLinkComplete, "links no machine code")
LUCID_ABSENT(cuLinkDestroy, "links no machine code")
LUCID_ABSENT(cuCtxCreate_v2, "has the primary context of each device only")
LUCID_ABSENT(cuCtxDestroy_v2, "has the primary context of each device only")

// Other modules may be the same library, which stays.
LUCID_CUDA int cuModuleUnload(Module* module) {
    std::lock_guard<std::mutex> guard(lock);
    for (const Variable& variable : variables[module->unit]) {
        leave_memory(variable.begin, variable.size);
        forget_accesses(variable.begin, variable.size);
    }
    variables.erase(module->unit);
    return success;
}

LUCID_CUDA int cuModuleGetGlobal_v2(uintptr_t* out, size_t* size, const Module* module, const char* name) {
    std::lock_guard<std::mutex> guard(lock);
    for (const Variable& variable : variables[module->unit]) {
        if (variable.name != name) continue;
        if (out) *out = variable.begin;
        if (size) *size = variable.size;
        return success;
    }
    return fail(not_found);
}

LUCID_CUDA int cuModuleGetFunction(const Instance** out, Module* module, const char* name) {
    for (unsigned i = 0; i < module->unit->count; ++i)
        if (strcmp(module->unit->instances[i].name, name) == 0) return *out = &module->unit->instances[i], success;
    return fail(not_found);
}

LUCID_CUDA int cuLaunchKernel(const Instance* instance, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                              unsigned bz, unsigned shared, void* stream, void** parameters, void** extra) {
    if (!has_context()) return fail(no_context);
    if (const int code = check_stream(stream)) return code;
    if (!gx || !gy || !gz || !bx || !by || !bz) return fail(invalid_value);
    if (const std::string why = too_large(instance, (uint64_t)bx * by * bz, shared); !why.empty())
        return fail_with(invalid_value, why);
    std::vector<unsigned char> packed(instance->size);  // as aligned as any parameter
    if (parameters) {
        if (const int code = pack(instance, parameters, packed.data())) return code;
    } else if (extra) {
        memcpy(packed.data(), extra[1], instance->size);
    } else if (instance->size) {
        return fail(invalid_value);
    }
    current_device();
    return submit(stream, instance->name, [=, packed = std::move(packed)](void* on) {
        return launch(instance, {gx, gy, gz}, {bx, by, bz}, shared, on, packed.data());
    });
}

LUCID_CUDA int cuLaunchCooperativeKernel(const Instance* instance, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                         unsigned by, unsigned bz, unsigned shared, void* stream, void** parameters) {
    bool one_block;
    {
        std::lock_guard<std::mutex> guard(lock);
        const Module* module = module_of(instance);
        one_block = module && module->one_block;
    }
    if (one_block) return cuLaunchKernel(instance, 1, 1, 1, bx, by, bz, shared, stream, parameters, nullptr);
    if (gx == 1 && gy == 1 && gz == 1)
        return cuLaunchKernel(instance, gx, gy, gz, bx, by, bz, shared, stream, parameters, nullptr);
    return fail(not_supported, "the simulator runs one block after another: no kernel can wait for other blocks");
}

LUCID_CUDA int cuFuncGetAttribute(int* out, int which, const Instance* instance) {
    std::lock_guard<std::mutex> guard(lock);
    return *out = attribute_of(instance, which), success;
}
LUCID_CUDA int cuFuncSetAttribute(const Instance* instance, int which, int value) {
    std::lock_guard<std::mutex> guard(lock);
    if (which < dynamic_shared) return fail(invalid_value);
    const int own = attribute_of(instance, own_shared);
    if (which == dynamic_shared && (value < 0 || value > (int)most_shared - own)) return fail(invalid_value);
    if (which == carveout && (value < -1 || value > 100)) return fail(invalid_value);
    if (Module* module = module_of(instance)) module->attributes[instance][which] = value;
    return success;
}
LUCID_CUDA int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* out, const Instance*, int threads, size_t) {
    return *out = 2048 / (threads > 0 ? threads : 1), success;
}
LUCID_CUDA int cuOccupancyMaxPotentialBlockSize(int* blocks, int* threads, const Instance*, void*, size_t, int most) {
    return *blocks = 132, *threads = most ? most : 256, success;
}

// ---- what Python tells and reads ----

// A library that was loaded has the variables of its source, of __constant__ or __device__, at these offsets.
LUCID_CUDA void lucid_declare(const Unit* unit, unsigned count, const size_t* offsets, const size_t* sizes,
                              const char** names) {
    Dl_info library;
    if (!dladdr(unit, &library)) return;
    std::lock_guard<std::mutex> guard(lock);
    for (unsigned i = 0; i < count; ++i) {
        unsigned char* const place = (unsigned char*)library.dli_fbase + offsets[i];
        const bool constant = place >= unit->constants_begin && place < unit->constants_end;
        variables[unit].push_back({names[i], (uintptr_t)place, sizes[i]});
        use_memory({(uintptr_t)place, sizes[i], current_device(), 0, variables[unit].back().name.c_str(), constant});
    }
}

// The types of a kernel's parameters, and how many bytes they take when packed.
LUCID_CUDA const char* lucid_parameters(const Instance* instance, unsigned* size) {
    return *size = instance->size, instance->codes;
}

// Calls with the name of each kernel that was launched and how often, and begins to count anew if asked to.
LUCID_CUDA void lucid_each_kernel(void (*tell)(const char*, size_t), int anew) {
    std::lock_guard<std::mutex> guard(lock);
    for (Module* module : modules)
        for (unsigned i = 0; i < module->unit->count; ++i) {
            if (tell && module->launches[i]) tell(module->unit->instances[i].name, module->launches[i]);
            if (anew) module->launches[i] = 0;
        }
}
