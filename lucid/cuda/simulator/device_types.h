// Vector types and the half types. The arithmetic of half types is float arithmetic rounded once, as on the device.
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
    inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
LUCID_VECTORS(signed char, char, 2, 4)
LUCID_VECTORS(unsigned char, uchar, 2, 4)
LUCID_VECTORS(short, short, 4, 8)
LUCID_VECTORS(unsigned short, ushort, 4, 8)
LUCID_VECTORS(int, int, 8, 16)
LUCID_VECTORS(long long, longlong, 16, 16)
LUCID_VECTORS(unsigned long long, ulonglong, 16, 16)
LUCID_VECTORS(float, float, 8, 16)
LUCID_VECTORS(double, double, 16, 16)
#undef LUCID_VECTORS
struct uint1 { unsigned x; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float3 make_float3(float x, float y, float z) { return {x, y, z}; }
inline int3 make_int3(int x, int y, int z) { return {x, y, z}; }
inline double3 make_double3(double x, double y, double z) { return {x, y, z}; }

namespace lucid_simulator {
template <class T> struct Plain { using type = T; };
template <class T> using plain = typename Plain<T>::type;  // not deduced: atomicAdd(float*, 1) converts the 1
template <class To, class From> inline To bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "a value keeps its size");
    To to;
    __builtin_memcpy(&to, &from, sizeof(To));
    return to;
}
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

inline unsigned short bfloat16_bits(float value) {
    const unsigned word = bits<unsigned>(value);
    if (value != value) return 0x7fff;
    return (unsigned short)((word + 0x7fff + (word >> 16 & 1)) >> 16);
}
inline float bfloat16_value(unsigned short word) { return bits<float>((unsigned)word << 16); }

// Odd rounding keeps the second rounding, to bfloat16, correct.
inline unsigned short bfloat16_bits(double value) {
    float rounded = (float)value;
    unsigned word = bits<unsigned>(rounded);
    if (rounded == rounded && (double)rounded != value && (word & 1) == 0) {
        const bool outwards = (value < 0 ? -(double)rounded : (double)rounded) < (value < 0 ? -value : value);
        rounded = bits<float>(outwards ? word + 1 : word - 1);
    }
    return bfloat16_bits(rounded);
}
}  // namespace lucid_simulator

struct __half_raw {
    unsigned short x;
};

struct __half {
    _Float16 value;
    __half() = default;
    __half(__half_raw raw) : value(lucid_simulator::bits<_Float16>(raw.x)) {}
    operator __half_raw() const { return {lucid_simulator::bits<unsigned short>(value)}; }
    template <class T, class = typename lucid_simulator::Arithmetic<T>::type>
    __half(T from) : value((_Float16)from) {}
    operator float() const { return (float)value; }
};

struct __nv_bfloat16 {
    unsigned short word;
    __nv_bfloat16() = default;
    template <class T, class = typename lucid_simulator::Arithmetic<T>::type>
    __nv_bfloat16(T from) : word(lucid_simulator::bfloat16_bits((double)from)) {}
    __nv_bfloat16(float from) : word(lucid_simulator::bfloat16_bits(from)) {}
    __nv_bfloat16(double from) : word(lucid_simulator::bfloat16_bits(from)) {}
    operator float() const { return lucid_simulator::bfloat16_value(word); }
};

typedef __half half;
typedef __nv_bfloat16 nv_bfloat16;
struct alignas(4) __half2 { __half x, y; };
struct alignas(4) __nv_bfloat162 { __nv_bfloat16 x, y; };
typedef __half2 half2;
typedef __nv_bfloat162 nv_bfloat162;

#define LUCID_HALF_OPERATORS(T)                                                             \
    inline T operator+(T a, T b) { return T((float)a + (float)b); }                         \
    inline T operator-(T a, T b) { return T((float)a - (float)b); }                         \
    inline T operator*(T a, T b) { return T((float)a * (float)b); }                         \
    inline T operator/(T a, T b) { return T((float)a / (float)b); }                         \
    inline T operator-(T a) { return T(-(float)a); }                                        \
    inline T operator+(T a) { return a; }                                                   \
    inline T& operator+=(T& a, T b) { return a = a + b; }                                   \
    inline T& operator-=(T& a, T b) { return a = a - b; }                                   \
    inline T& operator*=(T& a, T b) { return a = a * b; }                                   \
    inline T& operator/=(T& a, T b) { return a = a / b; }                                   \
    inline bool operator==(T a, T b) { return (float)a == (float)b; }                       \
    inline bool operator!=(T a, T b) { return (float)a != (float)b; }                       \
    inline bool operator<(T a, T b) { return (float)a < (float)b; }                         \
    inline bool operator>(T a, T b) { return (float)a > (float)b; }                         \
    inline bool operator<=(T a, T b) { return (float)a <= (float)b; }                       \
    inline bool operator>=(T a, T b) { return (float)a >= (float)b; }                       \
    inline T __hadd(T a, T b) { return a + b; }                                             \
    inline T __hsub(T a, T b) { return a - b; }                                             \
    inline T __hmul(T a, T b) { return a * b; }                                             \
    inline T __hdiv(T a, T b) { return a / b; }                                             \
    inline T __hneg(T a) { return -a; }                                                     \
    inline T __habs(T a) { return T(__builtin_fabsf((float)a)); }                           \
    inline T __hfma(T a, T b, T c) { return T((double)(float)a * (float)b + (float)c); }    \
    inline bool __heq(T a, T b) { return a == b; }                                          \
    inline bool __hlt(T a, T b) { return a < b; }                                           \
    inline bool __hgt(T a, T b) { return a > b; }                                           \
    inline bool __hisnan(T a) { return (float)a != (float)a; }                              \
    inline int __hisinf(T a) { return __builtin_isinf_sign((float)a); }
LUCID_HALF_OPERATORS(__half)
LUCID_HALF_OPERATORS(__nv_bfloat16)
#undef LUCID_HALF_OPERATORS

inline float __half2float(__half a) { return (float)a; }
inline __half __float2half(float a) { return __half(a); }
inline __half __float2half_rn(float a) { return __half(a); }
inline __half __double2half(double a) { return __half(a); }
inline float2 __half22float2(__half2 a) { return {(float)a.x, (float)a.y}; }
inline __half2 __floats2half2_rn(float a, float b) { return {__half(a), __half(b)}; }
inline unsigned short __half_as_ushort(__half a) { return lucid_simulator::bits<unsigned short>(a); }
inline __half __ushort_as_half(unsigned short a) { return lucid_simulator::bits<__half>(a); }
inline float __bfloat162float(__nv_bfloat16 a) { return (float)a; }
inline __nv_bfloat16 __float2bfloat16(float a) { return __nv_bfloat16(a); }
inline __nv_bfloat16 __float2bfloat16_rn(float a) { return __nv_bfloat16(a); }
inline __nv_bfloat16 __double2bfloat16(double a) { return __nv_bfloat16(a); }
inline float2 __bfloat1622float2(__nv_bfloat162 a) { return {(float)a.x, (float)a.y}; }
inline __nv_bfloat162 __floats2bfloat162_rn(float a, float b) { return {__nv_bfloat16(a), __nv_bfloat16(b)}; }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 a) { return a.word; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short a) { return lucid_simulator::bits<__nv_bfloat16>(a); }
