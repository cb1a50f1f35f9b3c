// Exponentials and logarithms, and their derivatives: lucid/ops/elementwise/exponential.py. Launched by lucid/cuda/launch/elementwise.py.

#include "elementwise.cuh"

struct Exp {
    template <class A> __device__ A operator()(A x) const { return exp(x); }
};

struct Exp2 {
    template <class A> __device__ A operator()(A x) const { return exp2(x); }
};

// (2^x)' = 2^x log 2
struct Exp2Grad {
    template <class A> __device__ A operator()(A grad, A out) const { return grad * out * A(0.6931471805599453); }
};

struct Expm1 {
    template <class A> __device__ A operator()(A x) const { return expm1(x); }
};

struct Expm1Grad {
    template <class A> __device__ A operator()(A grad, A out) const { return grad * (out + 1); }
};

struct Log {
    template <class A> __device__ A operator()(A x) const { return log(x); }
};

struct Log2 {
    template <class A> __device__ A operator()(A x) const { return log2(x); }
};

// (log2 x)' = 1 / (x log 2)
struct Log2Grad {
    template <class A> __device__ A operator()(A grad, A x) const { return grad / (x * A(0.6931471805599453)); }
};

struct Log10 {
    template <class A> __device__ A operator()(A x) const { return log10(x); }
};

// (log10 x)' = 1 / (x log 10)
struct Log10Grad {
    template <class A> __device__ A operator()(A grad, A x) const { return grad / (x * A(2.302585092994046)); }
};

struct Log1p {
    template <class A> __device__ A operator()(A x) const { return log1p(x); }
};

struct Log1pGrad {
    template <class A> __device__ A operator()(A grad, A x) const { return grad / (x + 1); }
};

// log(exp(a) + exp(b)) without overflow, infinities included.
struct Logaddexp {
    template <class A> __device__ A operator()(A a, A b) const {
        if (a == b) return a + A(0.6931471805599453);
        const A step = a - b;
        return step > 0 ? a + log1p(exp(-step)) : step <= 0 ? b + log1p(exp(step)) : step;
    }
};

struct Logaddexp2 {
    template <class A> __device__ A operator()(A a, A b) const {
        if (a == b) return a + 1;
        const A step = a - b, log2_e = A(1.4426950408889634);
        return step > 0 ? a + log1p(exp2(-step)) * log2_e : step <= 0 ? b + log1p(exp2(step)) * log2_e : step;
    }
};

struct Logaddexp2Grad {
    template <class A> __device__ A operator()(A grad, A a, A b) const { return grad / (1 + exp2(b - a)); }
};

// The gradient of a; with the operands exchanged that of b.
struct LogaddexpGrad {
    template <class A> __device__ A operator()(A grad, A a, A b) const { return grad / (1 + exp(b - a)); }
};
