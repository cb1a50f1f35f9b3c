// Sums, products, magnitudes and signs, in which integers wrap around, and choices: lucid/ops/elementwise/arithmetic.py,
// complex.py (of real numbers), power.py, nonfinite.py and selection.py. Launched by lucid/cuda/launch/elementwise.py.

#include "elementwise.cuh"

struct Add {
    template <class A> __device__ A operator()(A a, A b) const {
        if constexpr (is_floating<A>) return a + b;
        return static_cast<A>((Bits)a + (Bits)b);
    }
};

struct Sub {
    template <class A> __device__ A operator()(A a, A b) const { return difference(a, b); }
};

struct Mul {
    template <class A> __device__ A operator()(A a, A b) const { return product(a, b); }
};

struct Mul3 {
    template <class A> __device__ A operator()(A a, A b, A c) const { return product(a, product(b, c)); }
};

struct Addcmul {
    template <class A> __device__ A operator()(A x, A a, A b, A value) const {
        return Add()(x, product(product(a, b), value));
    }
};

struct Neg {
    template <class A> __device__ A operator()(A x) const {
        if constexpr (is_floating<A>) return -x;
        return difference(A(0), x);
    }
};

struct Abs {
    template <class A> __device__ A operator()(A x) const {
        if constexpr (is_floating<A>) return fabs(x);
        return x < 0 ? difference(A(0), x) : x;
    }
};

struct Square {
    template <class A> __device__ A operator()(A x) const { return product(x, x); }
};

struct SignBit {
    template <class A> __device__ bool operator()(A x) const {
        if constexpr (is_floating<A>) return copysign(A(1), x) < 0;
        return x < 0;
    }
};

struct Where {
    template <class A> __device__ A operator()(bool condition, A a, A b) const { return condition ? a : b; }
};
