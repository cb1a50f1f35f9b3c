// CUDA C++ for g++: what the source of a kernel sees when it is built for the simulated device.
#pragma once

#include <initializer_list>

#define LUCID_SIMULATOR 1
#include "execution/runtime.h"

#define __CUDA_ARCH__ 900
#define __CUDACC_RTC__ 1
#define NULL __null
#define __global__
#define __device__
#define __host__
#define __constant__ __attribute__((section("lucid_constant")))
#define __managed__
// compilation.py puts it before each variable of the device.
#define LUCID_VARIABLE __attribute__((section("lucid_variable")))
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
// compilation.py makes this of each shared variable, and tells the runtime where they are. The first member is the size.
#define LUCID_TYPE(...) __VA_ARGS__
#define LUCID_SHARED(type, name, ...)                     \
    static struct {                                       \
        unsigned long bytes;                              \
        unsigned char before[56];                         \
        LUCID_TYPE type variable __VA_ARGS__;             \
        unsigned char behind[64];                         \
    } lucid_shared_##name = {sizeof lucid_shared_##name.variable}; \
    auto& name = lucid_shared_##name.variable;

#define threadIdx (lucid_running.thread)
#define blockIdx (lucid_running.block)
#define blockDim (lucid_running.block_size)
#define gridDim (lucid_running.grid_size)
#define warpSize 32
#define assert(condition) \
    ((condition) ? (void)0 : lucid_stop("assert(" #condition ") failed", __FILE__, __LINE__))
#define LUCID_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

// A function of CUDA's: a template, so that one of the source's with the same parameters comes before it.
#define LUCID_FUNCTION template <int = 0> inline

// in the order in which they use each other
#include "device/types.h"
#include "device/mathematics.h"
#include "device/special_functions.h"
#include "device/rounding.h"
#include "device/integers.h"
#include "device/halves.h"

extern "C" int printf(const char*, ...);

inline void __trap(LUCID_SITE) { lucid_stop("__trap()", file, line); }

// ---- barriers ----

inline void __syncthreads(LUCID_SITE) { lucid_block_barrier(lucid_simulator::barrier, 0, file, line); }
inline int __syncthreads_count(int predicate, LUCID_SITE) {
    return lucid_block_barrier(lucid_simulator::barrier_count, predicate, file, line);
}
inline int __syncthreads_and(int predicate, LUCID_SITE) {
    return lucid_block_barrier(lucid_simulator::barrier_and, predicate, file, line);
}
inline int __syncthreads_or(int predicate, LUCID_SITE) {
    return lucid_block_barrier(lucid_simulator::barrier_or, predicate, file, line);
}
inline void __syncwarp(unsigned mask = ~0u, LUCID_SITE) { lucid_match("__syncwarp", mask, 0, 0, file, line); }
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline void __nanosleep(unsigned) {}
// The host's: a kernel may wait until it has gone on.
inline long long clock64() { return (long long)__builtin_ia32_rdtsc(); }
LUCID_FUNCTION long clock() { return (long)clock64(); }
inline void __builtin_assume(bool) {}
inline void __brkpt() {}
inline void __prof_trigger(int) {}

// ---- warps ----

namespace lucid_simulator {
inline int lane() { return (int)(lucid_running.number % 32); }
template <class T>
T shuffle(const char* operation, unsigned mask, T value, int source, const char* file, int line) {
    static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
    unsigned long long bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(T));
    bits = lucid_shuffle(operation, mask, bits, source, file, line);
    __builtin_memcpy(&value, &bits, sizeof(T));
    return value;
}
}  // namespace lucid_simulator

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, LUCID_SITE) {
    const int first = lucid_simulator::lane() & ~(width - 1);
    return lucid_simulator::shuffle("__shfl_sync", mask, value, first + (source & (width - 1)), file, line);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, LUCID_SITE) {
    const int lane = lucid_simulator::lane(), first = lane & ~(width - 1), source = lane - (int)delta;
    return lucid_simulator::shuffle("__shfl_up_sync", mask, value, source < first ? lane : source, file, line);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, LUCID_SITE) {
    const int lane = lucid_simulator::lane(), last = lane | (width - 1), source = lane + (int)delta;
    return lucid_simulator::shuffle("__shfl_down_sync", mask, value, source > last ? lane : source, file, line);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, LUCID_SITE) {
    const int lane = lucid_simulator::lane(), last = lane | (width - 1), source = lane ^ bits;
    return lucid_simulator::shuffle("__shfl_xor_sync", mask, value, source > last ? lane : source, file, line);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, LUCID_SITE) {
    return lucid_match("__ballot_sync", mask, predicate != 0, 1, file, line);
}
inline int __any_sync(unsigned mask, int predicate, LUCID_SITE) {
    return lucid_match("__any_sync", mask, predicate != 0, 1, file, line) != 0;
}
inline int __all_sync(unsigned mask, int predicate, LUCID_SITE) {
    return lucid_match("__all_sync", mask, predicate != 0, 0, file, line) == 0;
}
template <class T>
unsigned __match_any_sync(unsigned mask, T value, LUCID_SITE) {
    unsigned long long bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(T));
    return lucid_match("__match_any_sync", mask, bits, bits, file, line);
}
template <class T>
unsigned __match_all_sync(unsigned mask, T value, int* equal, LUCID_SITE) {
    unsigned long long bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(T));
    const unsigned present = lucid_match("__match_all_sync", mask, 1, 1, file, line);
    *equal = lucid_match("__match_all_sync", mask, bits, bits, file, line) == present;
    return *equal ? present : 0;
}

// What all lanes of a mask offer, combined: taken from one lane after the other.
#define LUCID_REDUCE(name, T, result)                                                                \
    inline T __reduce_##name##_sync(unsigned mask, T value, LUCID_SITE) {                            \
        const char* const operation = "__reduce_" #name "_sync";                                     \
        const unsigned present = lucid_match(operation, mask, 1, 1, file, line);                     \
        T sum{};                                                                                     \
        for (unsigned rest = present; rest; rest &= rest - 1) {                                      \
            const int source = __builtin_ctz(rest);                                                  \
            const T other = lucid_simulator::shuffle(operation, mask, value, source, file, line);    \
            sum = rest == present ? other : (T)(result);                                             \
        }                                                                                            \
        return sum;                                                                                  \
    }
LUCID_REDUCE(add, unsigned, sum + other)
LUCID_REDUCE(add, int, (unsigned)sum + (unsigned)other)
LUCID_REDUCE(min, unsigned, min(sum, other))
LUCID_REDUCE(min, int, min(sum, other))
LUCID_REDUCE(max, unsigned, max(sum, other))
LUCID_REDUCE(max, int, max(sum, other))
LUCID_REDUCE(and, unsigned, sum & other)
LUCID_REDUCE(or, unsigned, sum | other)
LUCID_REDUCE(xor, unsigned, sum ^ other)
#undef LUCID_REDUCE
inline unsigned __activemask() { return lucid_active_mask(); }

// ---- memory ----

#define DYN_SHARED(T, name) T* const name = reinterpret_cast<T*>(lucid_dynamic_shared)

// Byte after byte, so that each is looked at.
LUCID_FUNCTION void* memcpy(void* to, const void* from, size_t size) {
    for (size_t i = 0; i < size; ++i) ((unsigned char*)to)[i] = ((const unsigned char*)from)[i];
    return to;
}
LUCID_FUNCTION void* memset(void* to, int value, size_t size) {
    for (size_t i = 0; i < size; ++i) ((unsigned char*)to)[i] = (unsigned char)value;
    return to;
}

template <class T> T __ldg(const T* p) { return *p; }
template <class T> T __ldcg(const T* p) { return *p; }
template <class T> T __ldcs(const T* p) { return *p; }
template <class T> T __ldca(const T* p) { return *p; }
template <class T> T __ldlu(const T* p) { return *p; }
template <class T> T __ldcv(const T* p) { return *p; }
template <class T> void __stcs(T* p, T value) { *p = value; }
template <class T> void __stcg(T* p, T value) { *p = value; }
template <class T> void __stwb(T* p, T value) { *p = value; }
template <class T> void __stwt(T* p, T value) { *p = value; }

// Threads take turns only where they wait, so that plain loads and stores are atomic. The runtime is told, because
// atomic operations do not race with each other; each ends with a store.
namespace lucid_simulator {
struct Atomic {
    Atomic() { lucid_atomic(1); }
    ~Atomic() { lucid_atomic(0); }
};
}  // namespace lucid_simulator
#define LUCID_ATOMIC(name, result)                              \
    template <class T>                                          \
    T name(T* address, lucid_simulator::plain<T> value) {       \
        const lucid_simulator::Atomic atomic;                   \
        const T old = *address;                                 \
        *address = (result);                                    \
        return old;                                             \
    }                                                           \
    template <class T>                                          \
    T name##_block(T* address, lucid_simulator::plain<T> value) { return name(address, value); } \
    template <class T>                                          \
    T name##_system(T* address, lucid_simulator::plain<T> value) { return name(address, value); }
LUCID_ATOMIC(atomicAdd, old + value)
LUCID_ATOMIC(atomicSub, old - value)
LUCID_ATOMIC(atomicExch, value)
LUCID_ATOMIC(atomicMin, value < old ? value : old)
LUCID_ATOMIC(atomicMax, old < value ? value : old)
LUCID_ATOMIC(atomicAnd, old & value)
LUCID_ATOMIC(atomicOr, old | value)
LUCID_ATOMIC(atomicXor, old ^ value)
LUCID_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
LUCID_ATOMIC(atomicDec, old == 0 || old > value ? value : old - 1)
#undef LUCID_ATOMIC

template <class T>
T atomicCAS(T* address, lucid_simulator::plain<T> compare, lucid_simulator::plain<T> value) {
    const lucid_simulator::Atomic atomic;
    const T old = *address;
    *address = __builtin_memcmp(&old, &compare, sizeof(T)) == 0 ? T(value) : old;
    return old;
}
template <class T>
T atomicCAS_block(T* address, lucid_simulator::plain<T> compare, lucid_simulator::plain<T> value) {
    return atomicCAS(address, compare, value);
}
template <class T>
T atomicCAS_system(T* address, lucid_simulator::plain<T> compare, lucid_simulator::plain<T> value) {
    return atomicCAS(address, compare, value);
}

// ---- how the runtime calls a kernel ----

namespace lucid_simulator {

template <class T> struct Code { static constexpr char value = 'S'; };
template <class T> struct Code<T*> { static constexpr char value = 'P'; };
#define LUCID_CODE(T, code) \
    template <> struct Code<T> { static constexpr char value = code; };
LUCID_CODE(bool, '?')
LUCID_CODE(signed char, 'b')
LUCID_CODE(unsigned char, 'B')
LUCID_CODE(short, 'h')
LUCID_CODE(unsigned short, 'H')
LUCID_CODE(int, 'i')
LUCID_CODE(unsigned int, 'I')
LUCID_CODE(long, 'l')
LUCID_CODE(unsigned long, 'L')
LUCID_CODE(long long, 'q')
LUCID_CODE(unsigned long long, 'Q')
LUCID_CODE(float, 'f')
LUCID_CODE(double, 'd')
#undef LUCID_CODE

// Whether a parameter leads to doubles, by what g++ calls its type. A number itself is hardly ever subnormal.
template <class T> constexpr bool leads_far() {
    constexpr char sought[] = {'d', 'o', 'u', 'b', 'l', 'e'};
    unsigned found = 0;
    for (const char* name = __PRETTY_FUNCTION__; *name && found < sizeof sought; ++name)
        found = *name == sought[found] ? found + 1 : *name == sought[0];
    return Code<T>::value != 'd' && found == sizeof sought;
}

template <class T> struct Value { using type = T; };
template <class T> struct Value<const T> { using type = T; };

// Parameters lie one behind the other, each at a multiple of its alignment, as cuLaunchKernel takes them.
template <class... Parameters> struct Layout {
    static constexpr unsigned end(unsigned count) {
        unsigned offset = 0, i = 0;
        ((i++ < count ? (void)(offset = (offset + alignof(Parameters) - 1) / alignof(Parameters) * alignof(Parameters) +
                                        sizeof(Parameters))
                      : (void)0),
         ...);
        return offset;
    }
    static constexpr char codes[] = {Code<Parameters>::value..., 0};
};

template <unsigned... I> struct Numbers {};
template <unsigned N, unsigned... I> struct Count : Count<N - 1, N - 1, I...> {};
template <unsigned... I> struct Count<0, I...> { using type = Numbers<I...>; };

template <auto kernel> struct Call;
template <class... Parameters, void (*kernel)(Parameters...)> struct Call<kernel> {
    using layout = Layout<typename Value<Parameters>::type...>;
    static constexpr unsigned count = sizeof...(Parameters), sizes[] = {(unsigned)sizeof(Parameters)..., 0};
    static constexpr bool doubles = (false || ... || leads_far<typename Value<Parameters>::type>());
    template <unsigned... I> struct Offsets { static constexpr unsigned all[] = {(layout::end(I + 1) - sizes[I])..., 0}; };
    template <unsigned... I> static constexpr const unsigned* offsets(Numbers<I...>) { return Offsets<I...>::all; }
    template <unsigned... I> static void run(const unsigned char* packed, Numbers<I...>) {
        kernel(*reinterpret_cast<const typename Value<Parameters>::type*>(packed + layout::end(I + 1) -
                                                                          sizeof(Parameters))...);
    }
    static void run(const unsigned char* packed) { run(packed, typename Count<sizeof...(Parameters)>::type()); }
};

template <auto kernel> constexpr Instance instance(const char* name, const Unit* unit) {
    using Kernel = Call<kernel>;
    return {name, Kernel::layout::codes, Kernel::layout::end(~0u), &Kernel::run, unit, Kernel::count,
            Kernel::offsets(typename Count<Kernel::count>::type()), Kernel::sizes, Kernel::doubles};
}

}  // namespace lucid_simulator

extern "C" unsigned char __start_lucid_constant[] __attribute__((weak, visibility("hidden")));
extern "C" unsigned char __stop_lucid_constant[] __attribute__((weak, visibility("hidden")));
extern "C" unsigned char __start_lucid_variable[] __attribute__((weak, visibility("hidden")));
extern "C" unsigned char __stop_lucid_variable[] __attribute__((weak, visibility("hidden")));
extern "C" __attribute__((visibility("default"), externally_visible)) const lucid_simulator::Unit lucid_unit;
