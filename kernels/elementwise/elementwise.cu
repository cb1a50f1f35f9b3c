// Arithmetic, magnitudes, signs and blends, and their derivatives: lucid/ops/elementwise/arithmetic.py, complex.py (of real
// numbers) and combination.py. Launched by lucid/cuda/launch/elementwise.py.

#include "elementwise.cuh"

struct Add {
    template <class A> __device__ A operator()(A a, A b) const {
        if constexpr (IsFloating<A>::value) {
            return a + b;
        } else {
            return static_cast<A>((Bits)a + (Bits)b);
        }
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
        if constexpr (IsFloating<A>::value) {
            return -x;
        } else {
            return difference(A(0), x);
        }
    }
};

struct Abs {
    template <class A> __device__ A operator()(A x) const {
        if constexpr (IsFloating<A>::value) {
            return fabs(x);
        } else {
            return x < 0 ? difference(A(0), x) : x;
        }
    }
};

// The sign of NaN is zero, as in PyTorch.
struct Sign {
    template <class A> __device__ A operator()(A x) const { return A((x > 0) - (x < 0)); }
};

// The sign of NaN is NaN, as in NumPy.
struct SignOrNan {
    template <class A> __device__ A operator()(A x) const { return x != x ? x : A((x > 0) - (x < 0)); }
};

struct AbsGrad {
    template <class A> __device__ A operator()(A grad, A x) const { return grad * A((x > 0) - (x < 0)); }
};

// start + weight * (end - start), from the nearer end.
struct Lerp {
    template <class A> __device__ A operator()(A start, A end, A weight) const {
        const A step = end - start;
        return fabs(weight) < A(0.5) ? start + weight * step : end - (1 - weight) * step;
    }
};

struct LerpStartGrad {
    template <class A> __device__ A operator()(A grad, A weight) const { return grad * (1 - weight); }
};

struct LerpWeightGrad {
    template <class A> __device__ A operator()(A grad, A start, A end) const { return grad * (end - start); }
};

struct Copysign {
    template <class A> __device__ A operator()(A a, A b) const { return copysign(a, b); }
};

struct NextAfter {
    template <class A> __device__ A operator()(A a, A b) const { return nextafter(a, b); }
};
