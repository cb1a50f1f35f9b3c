// float16 and bfloat16 as bits, to float and back: to the nearest, of two equally near ones to the even. NaN keeps what
// NumPy and ml_dtypes keep of it. No branches, and integers alone but for subnormal numbers, so that loops are of vectors.

#include "cpu.h"

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

// The same of numbers that take part in arithmetic, which makes each NaN a quiet one.
template <class T> __forceinline__ float operand(T half) { return widened(half); }
__forceinline__ float operand(float value) { return value; }
template <class T> __forceinline__ T result(float value) { return narrowed<T>(value); }
template <class T> __forceinline__ T result(bool value) { return value; }
#ifdef __AVX512FP16__
__forceinline__ float operand(__half half) { return (float)bits_as<_Float16>(half.bits); }
template <> __forceinline__ __half result<__half>(float value) { return {bits_as<unsigned short>((_Float16)value)}; }
#endif

// Rows of a result, dense; operands have steps from row to row, and along rows 0 or 1.
template <class T, class A, class B, class Of>
static void combine(T* __restrict__ out_n, const A* a_n, const B* b_n, long long rows, long long width, long long a_row,
                    bool a_along, long long b_row, bool b_along, Of of) {
    for (long long r = 0; r < rows; ++r, out_n += width, a_n += a_row, b_n += b_row) {
        const float a = operand(*a_n), b = operand(*b_n);
        if (a_along && b_along)
            for (long long i = 0; i < width; ++i) out_n[i] = result<T>(of(operand(a_n[i]), operand(b_n[i])));
        else if (a_along)
            for (long long i = 0; i < width; ++i) out_n[i] = result<T>(of(operand(a_n[i]), b));
        else if (b_along)
            for (long long i = 0; i < width; ++i) out_n[i] = result<T>(of(a, operand(b_n[i])));
        else
            for (long long i = 0; i < width; ++i) out_n[i] = result<T>(of(a, b));
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
// As NumPy chooses of both zeros: of float16 the first, of bfloat16 the second. Either is kept as it is, NaN too. By bits
// alone, which are ordered as integers are once those behind a sign are turned around.
template <class T> struct Limits;
template <> struct Limits<__half> {
    static constexpr short infinity = 0x7C00;
    static constexpr bool first_zero = true;
};
template <> struct Limits<__nv_bfloat16> {
    static constexpr short infinity = 0x7F80;
    static constexpr bool first_zero = false;
};
template <class T, bool larger> static void choose(T* __restrict__ out_n, const T* a_n, const T* b_n, long long n) {
    for (long long i = 0; i < n; ++i) {
        const short a = a_n[i].bits, b = b_n[i].bits, size_a = a & 0x7FFF, size_b = b & 0x7FFF;
        const short order_a = a < 0 ? (short)~size_a : size_a, order_b = b < 0 ? (short)~size_b : size_b;
        short chosen = (larger ? order_a >= order_b : order_a <= order_b) ? a : b;
        chosen = (short)(size_a | size_b) == 0 ? (Limits<T>::first_zero ? a : b) : chosen;
        chosen = size_b > Limits<T>::infinity ? b : chosen;
        out_n[i].bits = size_a > Limits<T>::infinity ? a : chosen;
    }
}
template <typename T> __global__ void maximum(T* out_n, const T* a_n, const T* b_n, long long n) {
    choose<T, true>(out_n, a_n, b_n, n);
}
template <typename T> __global__ void minimum(T* out_n, const T* a_n, const T* b_n, long long n) {
    choose<T, false>(out_n, a_n, b_n, n);
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
