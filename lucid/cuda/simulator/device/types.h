// Integers of a size, vector types, and what templates ask about types.
#pragma once

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;

#define LUCID_VECTORS(T, name, align2, align4)                                                    \
    struct name##1 { T x; };                                                                      \
    struct alignas(align2) name##2 { T x, y; };                                                   \
    struct name##3 { T x, y, z; };                                                                \
    struct alignas(align4) name##4 { T x, y, z, w; };                                             \
    inline name##1 make_##name##1(T x) { return {x}; }                                            \
    inline name##2 make_##name##2(T x, T y) { return {x, y}; }                                    \
    inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                            \
    inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
LUCID_VECTORS(signed char, char, 2, 4)
LUCID_VECTORS(unsigned char, uchar, 2, 4)
LUCID_VECTORS(short, short, 4, 8)
LUCID_VECTORS(unsigned short, ushort, 4, 8)
LUCID_VECTORS(int, int, 8, 16)
LUCID_VECTORS(long, long, 16, 16)
LUCID_VECTORS(unsigned long, ulong, 16, 16)
LUCID_VECTORS(long long, longlong, 16, 16)
LUCID_VECTORS(unsigned long long, ulonglong, 16, 16)
LUCID_VECTORS(float, float, 8, 16)
LUCID_VECTORS(double, double, 16, 16)
#undef LUCID_VECTORS
struct uint1 { unsigned x; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
inline uint1 make_uint1(unsigned x) { return {x}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

namespace lucid_simulator {
template <class T> struct Plain { using type = T; };
template <class T> using plain = typename Plain<T>::type;  // not deduced: atomicAdd(float*, 1) converts the 1
template <class To, class From> inline To bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "a value keeps its size");
    To to;
    __builtin_memcpy(&to, &from, sizeof(To));
    return to;
}
struct Nobody;
// Overloading must choose a conversion for every arithmetic type, and no pointer.
template <class T> struct Arithmetic {};
#define LUCID_ARITHMETIC(T) \
    template <> struct Arithmetic<T> { using type = T; };
LUCID_ARITHMETIC(bool)
LUCID_ARITHMETIC(char)
LUCID_ARITHMETIC(signed char)
LUCID_ARITHMETIC(unsigned char)
LUCID_ARITHMETIC(short)
LUCID_ARITHMETIC(unsigned short)
LUCID_ARITHMETIC(int)
LUCID_ARITHMETIC(unsigned int)
LUCID_ARITHMETIC(long)
LUCID_ARITHMETIC(unsigned long)
LUCID_ARITHMETIC(long long)
LUCID_ARITHMETIC(unsigned long long)
LUCID_ARITHMETIC(float)
LUCID_ARITHMETIC(double)
#undef LUCID_ARITHMETIC
}  // namespace lucid_simulator
