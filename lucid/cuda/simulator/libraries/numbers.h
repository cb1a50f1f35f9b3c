// Types of elements that the simulated libraries compute with and C++17 does not have.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace lucid_simulator {

using Half = _Float16;

struct Bfloat16 {
    uint16_t word;
};

// Not std::complex, whose product looks for infinities where both parts are NaN, which no GPU does.
template <class R> struct Complex {
    R real, imaginary;

    Complex(R real = 0, R imaginary = 0) : real(real), imaginary(imaginary) {}
    Complex operator-() const { return {-real, -imaginary}; }
    Complex operator+(Complex other) const { return {real + other.real, imaginary + other.imaginary}; }
    Complex operator-(Complex other) const { return {real - other.real, imaginary - other.imaginary}; }
    Complex operator*(Complex other) const {
        return {real * other.real - imaginary * other.imaginary, real * other.imaginary + imaginary * other.real};
    }
    // Scaled, so that squares of large and small numbers do not leave the range of R.
    Complex operator/(Complex other) const {
        const R scale = std::fmax(std::fabs(other.real), std::fabs(other.imaginary));
        const R a = other.real / scale, b = other.imaginary / scale, square = (a * a + b * b) * scale;
        return {(real * a + imaginary * b) / square, (imaginary * a - real * b) / square};
    }
    bool operator==(Complex other) const { return real == other.real && imaginary == other.imaginary; }
};

template <class T> struct Parts {
    using Real = T;
    static constexpr int count = 1;
};
template <class R> struct Parts<Complex<R>> {
    using Real = R;
    static constexpr int count = 2;
};
template <class T> using Real = typename Parts<T>::Real;
template <class T> constexpr bool is_complex = Parts<T>::count == 2;

// The type that sums of elements have: float for the 16-bit types.
inline float widen(Half x) { return (float)x; }
inline float widen(Bfloat16 x) {
    const uint32_t word = (uint32_t)x.word << 16;
    float value;
    std::memcpy(&value, &word, sizeof value);
    return value;
}
template <class T> T widen(T x) { return x; }

// To the nearest, ties to even, as all of these libraries round.
inline void narrow(Half& out, float x) { out = (Half)x; }
inline void narrow(Bfloat16& out, float x) {
    uint32_t word;
    std::memcpy(&word, &x, sizeof word);
    out.word = x != x ? 0x7fff : (uint16_t)((word + 0x7fff + (word >> 16 & 1)) >> 16);
}
template <class T> void narrow(T& out, T x) { out = x; }

template <class T> T conjugate(T x) { return x; }
template <class R> Complex<R> conjugate(Complex<R> x) { return {x.real, -x.imaginary}; }

// The size by which BLAS compares complex numbers, and sums them in asum.
template <class T> T magnitude(T x) { return std::fabs(x); }
template <class R> R magnitude(Complex<R> x) { return std::fabs(x.real) + std::fabs(x.imaginary); }

}  // namespace lucid_simulator
