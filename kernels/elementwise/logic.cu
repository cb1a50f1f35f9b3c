// Inverted and shifted bits: lucid/ops/elementwise/logic.py. Launched by lucid/cuda/launch/elementwise.py.
//
// Shifts by all bits or more, and by negative numbers, leave zero, or the sign, as in NumPy.

#include "elementwise.cuh"

struct BitwiseNot {
    template <class A> __device__ A operator()(A x) const { return ~x; }
    __device__ bool operator()(bool x) const { return !x; }
};

struct LeftShift {
    template <class A> __device__ A operator()(A a, A b) const {
        return (Bits)b < 8 * sizeof(A) ? A((Bits)a << b) : A(0);
    }
};

struct RightShift {
    template <class A> __device__ A operator()(A a, A b) const {
        return (Bits)b < 8 * sizeof(A) ? A(a >> b) : A(a < 0 ? -1 : 0);
    }
};
