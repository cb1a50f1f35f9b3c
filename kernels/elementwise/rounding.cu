// Whole numbers near given ones: lucid/ops/elementwise/rounding.py. Launched by lucid/cuda/launch/elementwise.py.

#include "elementwise.cuh"

struct Floor {
    template <class A> __device__ A operator()(A x) const { return floor(x); }
};

struct Ceil {
    template <class A> __device__ A operator()(A x) const { return ceil(x); }
};

struct Trunc {
    template <class A> __device__ A operator()(A x) const { return trunc(x); }
};

// The even one of two.
struct Round {
    template <class A> __device__ A operator()(A x) const { return rint(x); }
};

// To decimals: ten is 10 to their number.
struct RoundDecimals {
    template <class A> __device__ A operator()(A x, A ten) const { return rint(x * ten) / ten; }
};

// To tens, hundreds and so on.
struct RoundTens {
    template <class A> __device__ A operator()(A x, A ten) const { return rint(x / ten) * ten; }
};

struct Frac {
    template <class A> __device__ A operator()(A x) const { return x - trunc(x); }
};

// Of the sign of x, of infinity a zero.
struct Fraction {
    template <class A> __device__ A operator()(A x) const { return copysign(isinf(x) ? A(0) : x - trunc(x), x); }
};
