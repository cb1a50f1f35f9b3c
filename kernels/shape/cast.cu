// Copies, fills and casts, between any strides: lucid/ops/base/promotion.py, core.py. Launched by lucid/cuda/launch/elementwise.py.

#include "elementwise.cuh"

struct Same {
    template <class A> __device__ A operator()(A x) const { return x; }
};
