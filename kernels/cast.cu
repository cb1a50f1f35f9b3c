// Copies, fills and casts, between any strides: lucid/ops/promotion.py, core.py. Launched by lucid/cuda/elementwise.py.

#include "elementwise.cuh"

struct Same {
    template <class A>
    __device__ A operator()(A x) const { return x; }
};
