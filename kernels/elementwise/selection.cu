// Elements chosen by masks and bounds, and the derivatives: lucid/ops/elementwise/selection.py,
// lucid/ops/index/masked_select.py. Launched by lucid/cuda/launch/elementwise.py.

#include "elementwise.cuh"

struct Where {
    template <class A> __device__ A operator()(bool condition, A a, A b) const { return condition ? a : b; }
};

struct Clamp {
    template <class A> __device__ A operator()(A x, A low, A high) const { return smaller(larger(x, low), high); }
};

struct ClampGradX {
    template <class A> __device__ A operator()(A grad, A x, A low, A high) const {
        return x >= low && x <= high ? grad : A(0);
    }
};

struct ClampGradLow {
    template <class A> __device__ A operator()(A grad, A x, A low, A high) const {
        return x < low && low < high ? grad : A(0);
    }
};

struct ClampGradHigh {
    template <class A> __device__ A operator()(A grad, A x, A low, A high) const {
        return x > high || low > high ? grad : A(0);
    }
};
