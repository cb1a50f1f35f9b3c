// What a compiled kernel and the runtime of the simulated device agree on.
#pragma once

struct uint3 {
    unsigned int x, y, z;
};

struct dim3 {
    unsigned int x, y, z;
    constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
};

namespace lucid_simulator {

struct Running {
    uint3 thread, block, block_size, grid_size;
    unsigned int number;  // of the thread in its block
};

struct Unit;

struct Instance {
    const char* name;
    const char* codes;  // of the parameters, as Python's struct module spells them; S is a struct
    unsigned int size;  // of the packed parameters
    void (*run)(const unsigned char* packed);
    const Unit* unit;
    unsigned int parameters;
    const unsigned int *offsets, *sizes;  // of each in the packed ones
    bool doubles;                         // whether arrays of doubles are among what they lead to
};

struct Unit {
    const Instance* instances;
    unsigned int count;
    unsigned char *constants_begin, *constants_end;  // null if there are none
    unsigned char *variables_begin, *variables_end;  // those of __device__, likewise
    bool flushes;                                    // compiled with -ftz=true
};

enum BlockOperation { barrier, barrier_count, barrier_and, barrier_or };

}  // namespace lucid_simulator

#pragma GCC visibility push(default)
extern "C" {
// For a thread it never changes, and g++ reports no load of what is constant.
#ifdef LUCID_SIMULATOR
extern thread_local const lucid_simulator::Running lucid_running __attribute__((tls_model("initial-exec")));
#else
extern thread_local lucid_simulator::Running lucid_running __attribute__((tls_model("initial-exec")));
#endif

// The dynamic shared memory of the running block, at one address for all, so that variables of a source can begin there.
extern unsigned char lucid_dynamic_shared[];
int lucid_block_barrier(lucid_simulator::BlockOperation operation, int predicate, const char* file, int line);
// The value of lane `source` among the lanes of `mask`, which all call this.
unsigned long long lucid_shuffle(const char* operation, unsigned mask, unsigned long long value, int source,
                                 const char* file, int line);
// The lanes of `mask` that offer what is sought; all call this.
unsigned lucid_match(const char* operation, unsigned mask, unsigned long long offered, unsigned long long sought,
                     const char* file, int line);
unsigned lucid_active_mask();
// The loads and stores of the running thread from now on are those of an atomic operation, or no longer.
void lucid_atomic(int begins);
[[noreturn]] void lucid_stop(const char* what, const char* file, int line);
}
#pragma GCC visibility pop
