// CUDA's intrinsics of integers: bits, products, averages, and the parts of a word.
#pragma once

LUCID_FUNCTION int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
LUCID_FUNCTION int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
LUCID_FUNCTION int __ffs(int x) { return __builtin_ffs(x); }
LUCID_FUNCTION int __ffsll(long long x) { return __builtin_ffsll(x); }
LUCID_FUNCTION int __popc(unsigned x) { return __builtin_popcount(x); }
LUCID_FUNCTION int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
LUCID_FUNCTION unsigned long long __brevll(unsigned long long x) {
    unsigned long long reversed = 0;
    for (int i = 0; i < 64; ++i) reversed |= (x >> i & 1ull) << (63 - i);
    return reversed;
}
LUCID_FUNCTION unsigned __brev(unsigned x) { return (unsigned)(__brevll(x) >> 32); }
LUCID_FUNCTION int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
LUCID_FUNCTION unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
LUCID_FUNCTION long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
LUCID_FUNCTION unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
LUCID_FUNCTION int __mul24(int a, int b) {
    return (int)((long long)((int)((unsigned)a << 8) >> 8) * ((int)((unsigned)b << 8) >> 8));
}
LUCID_FUNCTION unsigned __umul24(unsigned a, unsigned b) { return (a & 0xFFFFFFu) * (b & 0xFFFFFFu); }

// |a - b| + c
LUCID_FUNCTION unsigned __sad(int a, int b, unsigned c) { return c + (a > b ? (unsigned)a - (unsigned)b : (unsigned)b - (unsigned)a); }
LUCID_FUNCTION unsigned __usad(unsigned a, unsigned b, unsigned c) { return c + (a > b ? a - b : b - a); }

// Averages, rounded down, and in the second form up
LUCID_FUNCTION int __hadd(int a, int b) { return (int)(((long long)a + b) >> 1); }
LUCID_FUNCTION int __rhadd(int a, int b) { return (int)(((long long)a + b + 1) >> 1); }
LUCID_FUNCTION unsigned __uhadd(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a + b) >> 1); }
LUCID_FUNCTION unsigned __urhadd(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a + b + 1) >> 1); }

// 32 bits of the 64 of both; the shift wraps, and in the second form stops at 32
namespace lucid_simulator {
inline unsigned long long joined(unsigned low, unsigned high) { return (unsigned long long)high << 32 | low; }
}  // namespace lucid_simulator
LUCID_FUNCTION unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(lucid_simulator::joined(low, high) << (shift & 31) >> 32);
}
LUCID_FUNCTION unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(lucid_simulator::joined(low, high) << (shift < 32 ? shift : 32) >> 32);
}
LUCID_FUNCTION unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(lucid_simulator::joined(low, high) >> (shift & 31));
}
LUCID_FUNCTION unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(lucid_simulator::joined(low, high) >> (shift < 32 ? shift : 32));
}

// Four of the eight bytes of both; the highest bit of a selector repeats the sign of its byte.
LUCID_FUNCTION unsigned __byte_perm(unsigned a, unsigned b, unsigned selectors) {
    unsigned result = 0;
    for (int i = 0; i < 4; ++i) {
        const unsigned selector = selectors >> 4 * i & 15;
        unsigned byte = (unsigned)(lucid_simulator::joined(a, b) >> 8 * (selector & 7)) & 0xFF;
        if (selector & 8) byte = byte & 0x80 ? 0xFF : 0;
        result |= byte << 8 * i;
    }
    return result;
}

// ---- the parts of a word ----

namespace lucid_simulator {
// The part of `size` bits number i
template <class T> inline T part(unsigned word, int i, int size);
template <> inline unsigned part<unsigned>(unsigned word, int i, int size) { return word << (32 - size * (i + 1)) >> (32 - size); }
template <> inline int part<int>(unsigned word, int i, int size) { return (int)(word << (32 - size * (i + 1))) >> (32 - size); }

template <class T, int size, class F> inline unsigned by_parts(unsigned a, unsigned b, F f) {
    const unsigned mask = size == 8 ? 0xFFu : 0xFFFFu;
    unsigned result = 0;
    for (int i = 0; i < 32 / size; ++i)
        result |= ((unsigned)f(part<T>(a, i, size), part<T>(b, i, size)) & mask) << size * i;
    return result;
}
template <class T> inline T between(T x, T low, T high) { return x < low ? low : x > high ? high : x; }
}  // namespace lucid_simulator

#define LUCID_OF_PARTS(name, T, size, expression)                                                              \
    LUCID_FUNCTION unsigned __v##name(unsigned first, unsigned second) {                                               \
        return lucid_simulator::by_parts<T, size>(first, second, [](T a, T b) { return expression; });         \
    }
// The parts of two or four in a word: wrapping, saturating, extremes, averages, differences, and masks of comparisons
#define LUCID_OF_ALL_PARTS(n, size)                                                                            \
    LUCID_OF_PARTS(add##n, unsigned, size, a + b)                                                              \
    LUCID_OF_PARTS(sub##n, unsigned, size, a - b)                                                              \
    LUCID_OF_PARTS(addss##n, int, size, lucid_simulator::between(a + b, -(1 << (size - 1)), (1 << (size - 1)) - 1)) \
    LUCID_OF_PARTS(subss##n, int, size, lucid_simulator::between(a - b, -(1 << (size - 1)), (1 << (size - 1)) - 1)) \
    LUCID_OF_PARTS(addus##n, unsigned, size, lucid_simulator::between(a + b, 0u, (1u << size) - 1))            \
    LUCID_OF_PARTS(subus##n, unsigned, size, a > b ? a - b : 0u)                                               \
    LUCID_OF_PARTS(mins##n, int, size, a < b ? a : b)                                                          \
    LUCID_OF_PARTS(maxs##n, int, size, a > b ? a : b)                                                          \
    LUCID_OF_PARTS(minu##n, unsigned, size, a < b ? a : b)                                                     \
    LUCID_OF_PARTS(maxu##n, unsigned, size, a > b ? a : b)                                                     \
    LUCID_OF_PARTS(avgs##n, int, size, a + b < 0 ? (a + b) >> 1 : (a + b + 1) >> 1)                            \
    LUCID_OF_PARTS(avgu##n, unsigned, size, (a + b + 1) >> 1)                                                  \
    LUCID_OF_PARTS(haddu##n, unsigned, size, (a + b) >> 1)                                                     \
    LUCID_OF_PARTS(absdiffs##n, int, size, a > b ? a - b : b - a)                                              \
    LUCID_OF_PARTS(absdiffu##n, unsigned, size, a > b ? a - b : b - a)                                         \
    LUCID_OF_PARTS(cmpeq##n, unsigned, size, a == b ? ~0u : 0u)                                                \
    LUCID_OF_PARTS(cmpne##n, unsigned, size, a != b ? ~0u : 0u)                                                \
    LUCID_OF_PARTS(cmpgts##n, int, size, a > b ? ~0u : 0u)                                                     \
    LUCID_OF_PARTS(cmpges##n, int, size, a >= b ? ~0u : 0u)                                                    \
    LUCID_OF_PARTS(cmplts##n, int, size, a < b ? ~0u : 0u)                                                     \
    LUCID_OF_PARTS(cmples##n, int, size, a <= b ? ~0u : 0u)                                                    \
    LUCID_OF_PARTS(cmpgtu##n, unsigned, size, a > b ? ~0u : 0u)                                                \
    LUCID_OF_PARTS(cmpgeu##n, unsigned, size, a >= b ? ~0u : 0u)                                               \
    LUCID_OF_PARTS(cmpltu##n, unsigned, size, a < b ? ~0u : 0u)                                                \
    LUCID_OF_PARTS(cmpleu##n, unsigned, size, a <= b ? ~0u : 0u)                                               \
    LUCID_FUNCTION unsigned __vneg##n(unsigned a) { return __vsub##n(0, a); }                                          \
    LUCID_FUNCTION unsigned __vabs##n(unsigned a) { return __vmaxs##n(a, __vneg##n(a)); }
LUCID_OF_ALL_PARTS(2, 16)
LUCID_OF_ALL_PARTS(4, 8)
#undef LUCID_OF_ALL_PARTS
#undef LUCID_OF_PARTS

namespace lucid_simulator {
// A sum that wraps around, as the device's does
template <typename T> inline T wrapped_sum(T a, T b) { return (T)((unsigned)a + (unsigned)b); }
}  // namespace lucid_simulator

// Sums of products of the parts, added to a third number
#define LUCID_PRODUCTS(A, B, C)                                                                                          \
    LUCID_FUNCTION C __dp4a(C a, C b, C c) {                                                                                     \
        for (int i = 0; i < 4; ++i) c = lucid_simulator::wrapped_sum(c, lucid_simulator::part<A>((unsigned)a, i, 8) * lucid_simulator::part<B>((unsigned)b, i, 8)); \
        return c;                                                                                                        \
    }                                                                                                                    \
    LUCID_FUNCTION C __dp2a_lo(C a, C b, C c) {                                                                                  \
        for (int i = 0; i < 2; ++i) c = lucid_simulator::wrapped_sum(c, lucid_simulator::part<A>((unsigned)a, i, 16) * lucid_simulator::part<B>((unsigned)b, i, 8)); \
        return c;                                                                                                        \
    }                                                                                                                    \
    LUCID_FUNCTION C __dp2a_hi(C a, C b, C c) {                                                                                  \
        for (int i = 0; i < 2; ++i) c = lucid_simulator::wrapped_sum(c, lucid_simulator::part<A>((unsigned)a, i, 16) * lucid_simulator::part<B>((unsigned)b, i + 2, 8)); \
        return c;                                                                                                        \
    }
LUCID_PRODUCTS(int, int, int)
LUCID_PRODUCTS(unsigned, unsigned, unsigned)
#undef LUCID_PRODUCTS
LUCID_FUNCTION int __dp4a(char4 a, char4 b, int c) {
    return __dp4a(lucid_simulator::bits<int>(a), lucid_simulator::bits<int>(b), c);
}
LUCID_FUNCTION unsigned __dp4a(uchar4 a, uchar4 b, unsigned c) {
    return __dp4a(lucid_simulator::bits<unsigned>(a), lucid_simulator::bits<unsigned>(b), c);
}
