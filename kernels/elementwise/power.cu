// Powers, and their derivatives in the base; mantissas and exponents: lucid/ops/elementwise/power.py. Launched by
// lucid/cuda/launch/elementwise.py.

#include "elementwise.cuh"

// Integers wrap around; to negative powers fractions become zero.
struct Pow {
    template <class A> __device__ A operator()(A a, A b) const {
        if constexpr (is_floating<A>) {
            return b == 2 ? a * a : b == 3 ? a * a * a : b == -1 ? 1 / a : pow(a, b);
        } else {
            if (b < 0) return a == 1 ? A(1) : a == A(-1) ? (b & 1 ? A(-1) : A(1)) : A(0);
            Bits result = 1, base = (Bits)a;
            for (Bits rest = (Bits)b; rest; rest >>= 1) {
                if (rest & 1) result *= base;
                base *= base;
            }
            return static_cast<A>(result);
        }
    }
};

// By a number, roots are roots: pow(-inf, 0.5) is inf, and pow(-0.0, 0.5) is 0.
struct PowNumber {
    template <class A> __device__ A operator()(A a, A b) const {
        return b == A(0.5) ? sqrt(a) : b == A(-0.5) ? 1 / sqrt(a) : Pow()(a, b);
    }
};

// b a^(b - 1), zero where b is, whatever the rest.
struct PowGradA {
    template <class A> __device__ A operator()(A grad, A a, A b) const {
        return b == 0 ? A(0) : grad * (b * Pow()(a, b - 1));
    }
};

struct PowNumberGrad {
    template <class A> __device__ A operator()(A grad, A a, A b) const {
        return b == 0 ? A(0) : grad * (b * PowNumber()(a, b - 1));
    }
};

// Of numbers of any precision, in double.
struct FloatPow {
    template <class A> __device__ double operator()(A a, A b) const { return Pow()((double)a, (double)b); }
};

struct Ldexp {
    template <class A> __device__ A operator()(A x, int exponent) const { return ldexp(x, exponent); }
};

struct Mantissa {
    template <class A> __device__ A operator()(A x) const {
        int exponent;
        return frexp(x, &exponent);
    }
};

// Zero of infinity and NaN, of which CUDA says none.
struct Exponent {
    template <class A> __device__ int operator()(A x) const {
        int exponent;
        frexp(x, &exponent);
        return isfinite(x) ? exponent : 0;
    }
};
