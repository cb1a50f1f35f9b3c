// Tests for numbers that are not finite, and what stands in their place: lucid/ops/elementwise/nonfinite.py. Launched by
// lucid/cuda/launch/elementwise.py. An infinity minus itself is NaN, which no integer is.

#include "elementwise.cuh"

struct IsNan {
    template <class A> __device__ bool operator()(A x) const { return x != x; }
};

struct IsInf {
    template <class A> __device__ bool operator()(A x) const { return x == x && x - x != 0; }
};

struct IsFinite {
    template <class A> __device__ bool operator()(A x) const { return x - x == 0; }
};

struct NanToNum {
    template <class A> __device__ A operator()(A x, A nan, A above, A below) const {
        return x - x == 0 ? x : x != x ? nan : x > 0 ? above : below;
    }
};

struct NanToNumGrad {
    template <class A> __device__ A operator()(A grad, A x) const { return x - x == 0 ? grad : A(0); }
};

struct SignBit {
    template <class A> __device__ bool operator()(A x) const {
        if constexpr (IsFloating<A>::value) {
            return copysign(A(1), x) < 0;
        } else {
            return x < 0;
        }
    }
};
