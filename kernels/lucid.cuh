// What all kernels share: the type to compute in, packs, reductions of a warp and of a block, loops over a grid.
//
// Reductions of a warp or block are called by all its threads, and all of them get the result. A block has whole warps:
// a multiple of 32 threads, in one, two or three dimensions. The order of operations depends on the block's size alone.
//
// Device functions only. The header's presence marks the folder of the kernels.

#ifndef LUCID_LUCID_CUH
#define LUCID_LUCID_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif

// T* name = the dynamic shared memory of the block. One array in bytes, because names of arrays must agree in their type.
#ifndef DYN_SHARED
#define DYN_SHARED(T, name)                                        \
    extern __shared__ __align__(16) unsigned char lucid_dynamic[]; \
    T* name = reinterpret_cast<T*>(lucid_dynamic)
#endif

// Every index i below n, spread over all threads of a one-dimensional grid.
#define LUCID_FOR(i, n)                                                                                  \
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x, lucid_end = (n); i < lucid_end; \
         i += (long long)gridDim.x * blockDim.x)

namespace lucid {

// i / size of numbers from 0 on, by the short division where that does.
__device__ __forceinline__ long long quotient(long long i, long long size) {
    return (i | size) >> 31 ? i / size : (long long)((unsigned)i / (unsigned)size);
}

// ---- types ----

template <typename T> struct RealOf {
    typedef T type;
};
template <> struct RealOf<__half> {
    typedef float type;
};
template <> struct RealOf<__nv_bfloat16> {
    typedef float type;
};

// What values of T are computed and accumulated in: float for the half types, else T.
template <typename T> using Real = typename RealOf<T>::type;

template <typename T> __device__ __forceinline__ T to_real(T value) { return value; }
__device__ __forceinline__ float to_real(__half value) { return __half2float(value); }
__device__ __forceinline__ float to_real(__nv_bfloat16 value) { return __bfloat162float(value); }

template <typename T> struct Rounded {
    __device__ __forceinline__ static T of(T value) { return value; }
};
template <> struct Rounded<__half> {
    __device__ __forceinline__ static __half of(float value) { return __float2half_rn(value); }
};
template <> struct Rounded<__nv_bfloat16> {
    __device__ __forceinline__ static __nv_bfloat16 of(float value) { return __float2bfloat16_rn(value); }
};

// value rounded to T, once.
template <typename T> __device__ __forceinline__ T from_real(Real<T> value) { return Rounded<T>::of(value); }

// Neighbours that are loaded or stored together, in one access if they fit into 16 bytes; they begin at a multiple of
// their bytes, or of 16 if there are more.
template <typename T, int COUNT = 16 / (int)sizeof(T)>
struct alignas(COUNT * sizeof(T) < 16 ? COUNT * sizeof(T) : 16) Pack {
    static constexpr int WIDTH = COUNT;
    T value_k[COUNT];
};

// The least and the greatest value of a type that is computed in: the identities of max and min.
template <typename R> struct Limits;
template <> struct Limits<float> {
    __device__ __forceinline__ static float least() { return -INFINITY; }
    __device__ __forceinline__ static float greatest() { return INFINITY; }
};
template <> struct Limits<double> {
    __device__ __forceinline__ static double least() { return -(double)INFINITY; }
    __device__ __forceinline__ static double greatest() { return (double)INFINITY; }
};
template <> struct Limits<long long> {
    __device__ __forceinline__ static long long least() { return -9223372036854775807LL - 1; }
    __device__ __forceinline__ static long long greatest() { return 9223372036854775807LL; }
};

// ---- reductions ----

// Integers wrap around: signed overflow is undefined, unsigned is not.

struct Sum {
    template <typename R> __device__ __forceinline__ R operator()(R a, R b) const { return a + b; }
    __device__ __forceinline__ int operator()(int a, int b) const { return (int)((unsigned)a + (unsigned)b); }
    __device__ __forceinline__ long long operator()(long long a, long long b) const {
        return (long long)((unsigned long long)a + (unsigned long long)b);
    }
};

struct Product {
    template <typename R> __device__ __forceinline__ R operator()(R a, R b) const { return a * b; }
    __device__ __forceinline__ int operator()(int a, int b) const { return (int)((unsigned)a * (unsigned)b); }
    __device__ __forceinline__ long long operator()(long long a, long long b) const {
        return (long long)((unsigned long long)a * (unsigned long long)b);
    }
};

// Greater and smaller of two, NaN if one of them is.
struct Max {
    template <typename R> __device__ __forceinline__ R operator()(R a, R b) const { return a > b || a != a ? a : b; }
};
struct Min {
    template <typename R> __device__ __forceinline__ R operator()(R a, R b) const { return a < b || a != a ? a : b; }
};

// The value of the thread whose lane differs in these bits, for any plain struct of whole words.
template <typename R> __device__ __forceinline__ R shuffle_xor(R value, int bits) {
    if constexpr (sizeof(R) % 4 == 0) {
        constexpr int WORDS = sizeof(R) / 4;
        union Words {
            R value;
            int word_w[WORDS];
            __device__ __forceinline__ Words(R value) : value(value) {}
        } words(value);
#pragma unroll
        for (int w = 0; w < WORDS; ++w) words.word_w[w] = __shfl_xor_sync(0xffffffffu, words.word_w[w], bits);
        return words.value;
    } else {
        return __shfl_xor_sync(0xffffffffu, value, bits);
    }
}

// op(a, b) is associative and commutative.
template <typename R, typename Op> __device__ __forceinline__ R warp_reduce(R value, Op op) {
#pragma unroll
    for (int bits = 16; bits > 0; bits /= 2) value = op(value, shuffle_xor(value, bits));
    return value;
}

__device__ __forceinline__ int thread_of_block() {
    return (int)(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
}

// op(identity, a) is a.
template <typename R, typename Op> __device__ __forceinline__ R block_reduce(R value, R identity, Op op) {
    __shared__ __align__(16) unsigned char part_bytes[32 * sizeof(R)];
    R* part_w = reinterpret_cast<R*>(part_bytes);
    const int thread = thread_of_block(), warps = (int)(blockDim.x * blockDim.y * blockDim.z / 32);
    value = warp_reduce(value, op);
    if (warps == 1) return value;
    __syncthreads();  // the threads may still read the parts of an earlier call
    if (thread % 32 == 0) part_w[thread / 32] = value;
    __syncthreads();
    return warp_reduce(thread % 32 < warps ? part_w[thread % 32] : identity, op);
}

template <typename R> __device__ __forceinline__ R warp_sum(R value) { return warp_reduce(value, Sum()); }
template <typename R> __device__ __forceinline__ R block_sum(R value) { return block_reduce(value, (R)0, Sum()); }
template <typename R> __device__ __forceinline__ R block_max(R value) {
    return block_reduce(value, Limits<R>::least(), Max());
}

// A value and where it stands, for argmax and argmin: of equal values the first, of NaN the first.
template <typename R> struct Place {
    R value;
    long long index;
};
template <bool LARGEST> struct First {
    template <typename R> __device__ __forceinline__ Place<R> operator()(Place<R> a, Place<R> b) const {
        const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
        if (a_nan != b_nan) return a_nan ? a : b;
        if (!a_nan && a.value != b.value) return (LARGEST ? a.value > b.value : a.value < b.value) ? a : b;
        return a.index < b.index ? a : b;
    }
};

// ---- many terms in one thread ----

// Numbers that are added one after the other, and sums of such that are: a total rounds each number to its own digits.
constexpr int AT_ONCE = 64, GROUPS_AT_ONCE = 32;

// Elements first to last of a row's `units`, those of chunk number `chunk`.
struct Part {
    long long first, last;
    __device__ __forceinline__ Part(long long units, long long chunk, long long chunks) {
        const long long each = (units + chunks - 1) / chunks;
        first = min(chunk * each, units);
        last = min(first + each, units);
    }
};

// An op has an accumulator A, the A of nothing, and the A of two.
template <typename R> struct Adding {
    typedef R A;
    __device__ __forceinline__ A identity() const { return 0; }
    __device__ __forceinline__ A merge(A a, A b) const { return Sum()(a, b); }
};

// The A of what take(a, i) adds to a for i = first, first + step, ... below end, WIDTH numbers each time: in groups,
// groups of these, and so on, LEVELS in all, so that few are added one after the other however many there are.
template <int WIDTH = 1, int LEVELS = 4, int UNROLL = 4, typename Op, typename Take>
__device__ __forceinline__ typename Op::A gathered(const Op& op, long long first, long long end, long long step,
                                                   const Take& take) {
    typename Op::A total = op.identity();
    if constexpr (LEVELS == 1) {
#pragma unroll UNROLL
        for (long long i = first; i < end; i += step) take(total, i);
    } else {
        long long span = (AT_ONCE / WIDTH) * step;
        for (int level = 2; level < LEVELS; ++level) span *= GROUPS_AT_ONCE;
#pragma unroll 1
        for (; first < end; first += span)
            total = op.merge(total, gathered<WIDTH, LEVELS - 1, UNROLL>(op, first, min(first + span, end), step, take));
    }
    return total;
}

// The merged A of the threads of one column of a two-dimensional block, in all of them; `shared` has an A a thread.
template <typename Op>
__device__ __forceinline__ typename Op::A merged_down(const Op& op, typename Op::A a, typename Op::A* shared) {
    const int across = (int)blockDim.x;
    typename Op::A* mine = shared + threadIdx.y * across + threadIdx.x;
    *mine = a;
    __syncthreads();
    for (int half = (int)blockDim.y / 2; half; half /= 2) {
        if ((int)threadIdx.y < half) *mine = op.merge(*mine, mine[half * across]);
        __syncthreads();
    }
    return shared[threadIdx.x];
}

}  // namespace lucid

#endif  // LUCID_LUCID_CUH
