// Whether numbers are close to each other: lucid/ops/reduction/closeness.py. Launched by lucid/cuda/launch/elementwise.py.

#include "elementwise.cuh"

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
