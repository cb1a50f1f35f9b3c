// CUDA C++ as C++ for a processor: what headers in kernels/ take from CUDA, for the loops beside this file.
//
// A function that Python calls is marked __global__, as a kernel is, so that its parameters are read by the same reader.
// It runs in the thread that calls it. Nothing is contracted or reordered: each operation rounds once, as in NumPy.

#ifndef LUCID_CPU_H
#define LUCID_CPU_H

#include <cmath>
#include <cstring>

#define __device__
#define __global__
#define __forceinline__ inline __attribute__((always_inline))
#define __restrict__ __restrict

inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a * b) >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)(((unsigned __int128)a * b) >> 64);
}
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double a) { return std::sqrt(a); }
template <typename To, typename From> inline To bits_as(From value) {
    static_assert(sizeof(To) == sizeof(From), "");
    To bits;
    std::memcpy(&bits, &value, sizeof(To));
    return bits;
}
inline long long __double_as_longlong(double a) { return bits_as<long long>(a); }
inline double __longlong_as_double(long long a) { return bits_as<double>(a); }

#endif  // LUCID_CPU_H
