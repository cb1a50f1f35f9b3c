// Comparisons, the larger and the smaller, and tests for numbers that are not finite: lucid/ops/elementwise/comparison.py,
// closeness.py, nonfinite.py. Launched by lucid/cuda/launch/elementwise.py.

#include "elementwise.cuh"

struct Equal {
    template <class A> __device__ bool operator()(A a, A b) const { return a == b; }
};

struct NotEqual {
    template <class A> __device__ bool operator()(A a, A b) const { return a != b; }
};

struct Less {
    template <class A> __device__ bool operator()(A a, A b) const { return a < b; }
};

struct LessEqual {
    template <class A> __device__ bool operator()(A a, A b) const { return a <= b; }
};

struct Greater {
    template <class A> __device__ bool operator()(A a, A b) const { return a > b; }
};

struct GreaterEqual {
    template <class A> __device__ bool operator()(A a, A b) const { return a >= b; }
};

struct Maximum {
    template <class A> __device__ A operator()(A a, A b) const { return larger(a, b); }
};

struct Minimum {
    template <class A> __device__ A operator()(A a, A b) const { return smaller(a, b); }
};

// The gradient of a; with the operands exchanged that of b. Equal ones take half each.
struct MaximumGrad {
    template <class A> __device__ A operator()(A grad, A a, A b) const {
        return a == b ? grad * A(0.5) : a < b ? A(0) : grad;
    }
};

struct MinimumGrad {
    template <class A> __device__ A operator()(A grad, A a, A b) const {
        return a == b ? grad * A(0.5) : a > b ? A(0) : grad;
    }
};

// The other one where one is NaN; of equal ones a takes the gradient.
struct Fmax {
    template <class A> __device__ A operator()(A a, A b) const { return a >= b || b != b ? a : b; }
};

struct FmaxGradA {
    template <class A> __device__ A operator()(A grad, A a, A b) const { return a >= b || b != b ? grad : A(0); }
};

struct FmaxGradB {
    template <class A> __device__ A operator()(A grad, A a, A b) const { return a >= b || b != b ? A(0) : grad; }
};

struct Fmin {
    template <class A> __device__ A operator()(A a, A b) const { return a <= b || b != b ? a : b; }
};

struct FminGradA {
    template <class A> __device__ A operator()(A grad, A a, A b) const { return a <= b || b != b ? grad : A(0); }
};

struct FminGradB {
    template <class A> __device__ A operator()(A grad, A a, A b) const { return a <= b || b != b ? A(0) : grad; }
};

// b at zero; of NaN it is NaN.
struct Steps {
    template <class A> __device__ A operator()(A a, A b) const { return a == 0 ? b : a != a ? a : A(a > 0); }
};

// |a - b| <= absolute + |relative * b|, infinities only to themselves; integers in double.
struct IsClose {
    template <class A, class S> __device__ bool operator()(A a, A b, S relative, S absolute) const {
        if (a == b) return true;
        const S distance = fabs(static_cast<S>(a) - static_cast<S>(b));
        return distance - distance == 0 && distance <= absolute + fabs(relative * static_cast<S>(b));
    }
};

// NaN is close to NaN as well.
struct IsCloseOrNan {
    template <class A, class S> __device__ bool operator()(A a, A b, S relative, S absolute) const {
        return (a != a && b != b) || IsClose()(a, b, relative, absolute);
    }
};
