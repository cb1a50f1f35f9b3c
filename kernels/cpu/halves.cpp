// float16 and bfloat16 as bits, to float and back: to the nearest, of two equally near ones to the even. NaN keeps what
// NumPy and ml_dtypes keep of it. No branches, and integers but for subnormal numbers, so that loops are of vectors.

#include "cpu.h"

#ifdef __F16C__
#include <immintrin.h>
#endif

// CUDA's names of them.
struct __half {
    unsigned short bits;
};
struct __nv_bfloat16 {
    unsigned short bits;
};

namespace lucid {

__forceinline__ float widened(__half half) {
    const unsigned size = (half.bits & 0x7FFFu) << 13, sign = (half.bits & 0x8000u) << 16;
    const unsigned least = bits_as<unsigned>(bits_as<float>(size + 0x38800000u) - bits_as<float>(0x38800000u));
    const unsigned normal = size + (size >= 0x0F800000u ? 0x70000000u : 0x38000000u);
    return bits_as<float>((size < 0x00800000u ? least : normal) | sign);
}
__forceinline__ float widened(__nv_bfloat16 half) { return bits_as<float>((unsigned)half.bits << 16); }

template <class T> T narrowed(float);
template <> __forceinline__ __half narrowed<__half>(float value) {
    const unsigned bits = bits_as<unsigned>(value), size = bits & 0x7FFFFFFFu, sign = (bits >> 16) & 0x8000u;
    // of 0.5 the last bit is the smallest subnormal number's
    const unsigned least = bits_as<unsigned>(bits_as<float>(size) + 0.5f) - 0x3F000000u;
    const unsigned finite = size < 0x47800000u ? size : 0x47800000u;
    const unsigned normal = (finite - 0x38000000u + 0xFFFu + ((finite >> 13) & 1u)) >> 13;
    const unsigned kept = (size >> 13) & 0x3FFu, nan = 0x7C00u | (kept ? kept : 1u);
    const unsigned number = size < 0x38800000u ? least : normal;
    return {(unsigned short)((size > 0x7F800000u ? nan : number) | sign)};
}
template <> __forceinline__ __nv_bfloat16 narrowed<__nv_bfloat16>(float value) {
    const unsigned bits = bits_as<unsigned>(value);
    const unsigned number = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16, nan = ((bits >> 16) & 0x8000u) | 0x7FC0u;
    return {(unsigned short)((bits & 0x7FFFFFFFu) > 0x7F800000u ? nan : number)};
}

template <typename T> __global__ void widen(float* __restrict__ out_n, const T* __restrict__ half_n, long long n) {
    for (long long i = 0; i < n; ++i) out_n[i] = widened(half_n[i]);
}
template <typename T> __global__ void narrow(T* __restrict__ out_n, const float* __restrict__ value_n, long long n) {
    for (long long i = 0; i < n; ++i) out_n[i] = narrowed<T>(value_n[i]);
}

// Elements of a block, which stays in the first-level cache.
constexpr int BLOCK = 512;

// The conversions of a block that takes part in arithmetic, which makes each NaN a quiet one: so does the instruction.
template <class T> static void read(float* __restrict__ out_n, const T* half_n, int count) {
    for (int i = 0; i < count; ++i) out_n[i] = widened(half_n[i]);
}
static void read(float* __restrict__ out_n, const float* value_n, int count) {
    for (int i = 0; i < count; ++i) out_n[i] = value_n[i];
}
template <class T> static void write(T* __restrict__ out_n, const float* value_n, int count) {
    for (int i = 0; i < count; ++i) out_n[i] = narrowed<T>(value_n[i]);
}
#ifdef __F16C__
static void read(float* __restrict__ out_n, const __half* half_n, int count) {
    int i = 0;
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(out_n + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(half_n + i))));
    for (; i < count; ++i) out_n[i] = widened(half_n[i]);
}
static void write(__half* __restrict__ out_n, const float* value_n, int count) {
    int i = 0;
    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128((__m128i*)(out_n + i), _mm256_cvtps_ph(_mm256_loadu_ps(value_n + i), 0));
    for (; i < count; ++i) out_n[i] = narrowed<__half>(value_n[i]);
}
#endif
template <class T> static void read(float* out_n, const T* from_n, bool along, int count) {
    if (along) return read(out_n, from_n, count);
    float value;
    read(&value, from_n, 1);
    for (int i = 0; i < count; ++i) out_n[i] = value;
}

// Rows of a result, dense; operands have steps from row to row, and along rows 0 or 1. Of two NaN either may stay, as
// compilers swap operands.
template <class T, class A, class B, class Of>
static void combine(T* __restrict__ out_n, const A* a_n, const B* b_n, long long rows, long long width, long long a_row,
                    bool a_along, long long b_row, bool b_along, Of of) {
    alignas(64) float one_n[BLOCK], two_n[BLOCK];
    for (long long r = 0; r < rows; ++r, out_n += width, a_n += a_row, b_n += b_row)
        for (long long start = 0; start < width; start += BLOCK) {
            const int count = width - start < BLOCK ? width - start : BLOCK;
            read(one_n, a_n + (a_along ? start : 0), a_along, count);
            read(two_n, b_n + (b_along ? start : 0), b_along, count);
            if constexpr (sizeof(T) == 1)
                for (int i = 0; i < count; ++i) out_n[start + i] = of(one_n[i], two_n[i]);
            else {
                for (int i = 0; i < count; ++i) one_n[i] = of(one_n[i], two_n[i]);
                write(out_n + start, one_n, count);
            }
        }
}

template <typename T, typename A, typename B>
__global__ void add(T* out_n, const A* a_n, const B* b_n, long long rows, long long width, long long a_row,
                    bool a_along, long long b_row, bool b_along) {
    combine(out_n, a_n, b_n, rows, width, a_row, a_along, b_row, b_along, [](float a, float b) { return a + b; });
}
template <typename T, typename A, typename B>
__global__ void subtract(T* out_n, const A* a_n, const B* b_n, long long rows, long long width, long long a_row,
                         bool a_along, long long b_row, bool b_along) {
    combine(out_n, a_n, b_n, rows, width, a_row, a_along, b_row, b_along, [](float a, float b) { return a - b; });
}
template <typename T, typename A, typename B>
__global__ void multiply(T* out_n, const A* a_n, const B* b_n, long long rows, long long width, long long a_row,
                         bool a_along, long long b_row, bool b_along) {
    combine(out_n, a_n, b_n, rows, width, a_row, a_along, b_row, b_along, [](float a, float b) { return a * b; });
}
template <typename T, typename A, typename B>
__global__ void divide(T* out_n, const A* a_n, const B* b_n, long long rows, long long width, long long a_row,
                       bool a_along, long long b_row, bool b_along) {
    combine(out_n, a_n, b_n, rows, width, a_row, a_along, b_row, b_along, [](float a, float b) { return a / b; });
}
// As NumPy chooses of both zeros: of float16 the first, of bfloat16 the second. Either is kept as it is, NaN too. By
// bits alone, which are ordered as integers are once those behind a sign are turned around.
template <class T> struct Limits;
template <> struct Limits<__half> {
    static constexpr short infinity = 0x7C00;
    static constexpr bool first_zero = true;
};
template <> struct Limits<__nv_bfloat16> {
    static constexpr short infinity = 0x7F80;
    static constexpr bool first_zero = false;
};
template <class T, bool larger> static void choose(T* __restrict__ out_n, const T* a_n, const T* b_n, int count) {
    for (int i = 0; i < count; ++i) {
        const short a = a_n[i].bits, b = b_n[i].bits, size_a = a & 0x7FFF, size_b = b & 0x7FFF;
        const short order_a = a < 0 ? (short)~size_a : size_a, order_b = b < 0 ? (short)~size_b : size_b;
        short chosen = (larger ? order_a >= order_b : order_a <= order_b) ? a : b;
        chosen = (short)(size_a | size_b) == 0 ? (Limits<T>::first_zero ? a : b) : chosen;
        chosen = size_b > Limits<T>::infinity ? b : chosen;
        out_n[i].bits = size_a > Limits<T>::infinity ? a : chosen;
    }
}
template <class T, bool larger>
static void choose(T* __restrict__ out_n, const T* a_n, const T* b_n, long long rows, long long width, long long a_row,
                   bool a_along, long long b_row, bool b_along) {
    T one_n[BLOCK], two_n[BLOCK];
    for (long long r = 0; r < rows; ++r, out_n += width, a_n += a_row, b_n += b_row) {
        for (int i = 0; i < BLOCK && i < width && !a_along; ++i) one_n[i] = *a_n;
        for (int i = 0; i < BLOCK && i < width && !b_along; ++i) two_n[i] = *b_n;
        for (long long start = 0; start < width; start += BLOCK)
            choose<T, larger>(out_n + start, a_along ? a_n + start : one_n, b_along ? b_n + start : two_n,
                              width - start < BLOCK ? width - start : BLOCK);
    }
}
template <typename T>
__global__ void maximum(T* out_n, const T* a_n, const T* b_n, long long rows, long long width, long long a_row,
                        bool a_along, long long b_row, bool b_along) {
    choose<T, true>(out_n, a_n, b_n, rows, width, a_row, a_along, b_row, b_along);
}
template <typename T>
__global__ void minimum(T* out_n, const T* a_n, const T* b_n, long long rows, long long width, long long a_row,
                        bool a_along, long long b_row, bool b_along) {
    choose<T, false>(out_n, a_n, b_n, rows, width, a_row, a_along, b_row, b_along);
}

template <typename T>
__global__ void less(bool* out_n, const T* a_n, const T* b_n, long long rows, long long width, long long a_row,
                     bool a_along, long long b_row, bool b_along) {
    combine(out_n, a_n, b_n, rows, width, a_row, a_along, b_row, b_along, [](float a, float b) { return a < b; });
}
template <typename T>
__global__ void less_equal(bool* out_n, const T* a_n, const T* b_n, long long rows, long long width, long long a_row,
                           bool a_along, long long b_row, bool b_along) {
    combine(out_n, a_n, b_n, rows, width, a_row, a_along, b_row, b_along, [](float a, float b) { return a <= b; });
}
template <typename T>
__global__ void greater(bool* out_n, const T* a_n, const T* b_n, long long rows, long long width, long long a_row,
                        bool a_along, long long b_row, bool b_along) {
    combine(out_n, a_n, b_n, rows, width, a_row, a_along, b_row, b_along, [](float a, float b) { return a > b; });
}
template <typename T>
__global__ void greater_equal(bool* out_n, const T* a_n, const T* b_n, long long rows, long long width, long long a_row,
                              bool a_along, long long b_row, bool b_along) {
    combine(out_n, a_n, b_n, rows, width, a_row, a_along, b_row, b_along, [](float a, float b) { return a >= b; });
}
template <typename T>
__global__ void equal(bool* out_n, const T* a_n, const T* b_n, long long rows, long long width, long long a_row,
                      bool a_along, long long b_row, bool b_along) {
    combine(out_n, a_n, b_n, rows, width, a_row, a_along, b_row, b_along, [](float a, float b) { return a == b; });
}
template <typename T>
__global__ void not_equal(bool* out_n, const T* a_n, const T* b_n, long long rows, long long width, long long a_row,
                          bool a_along, long long b_row, bool b_along) {
    combine(out_n, a_n, b_n, rows, width, a_row, a_along, b_row, b_along, [](float a, float b) { return a != b; });
}
}  // namespace lucid
