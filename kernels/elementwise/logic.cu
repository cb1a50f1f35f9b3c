// Logical and bitwise operations: lucid/ops/elementwise/logic.py. Launched by lucid/cuda/launch/elementwise.py.
//
// What is not zero is true, NaN too. Shifts by all bits or more, and by negative numbers, leave zero, or the sign, as in
// NumPy.

#include "elementwise.cuh"

struct LogicalAnd {
    template <class A> __device__ bool operator()(A a, A b) const { return a != 0 && b != 0; }
};

struct LogicalOr {
    template <class A> __device__ bool operator()(A a, A b) const { return a != 0 || b != 0; }
};

struct LogicalXor {
    template <class A> __device__ bool operator()(A a, A b) const { return (a != 0) != (b != 0); }
};

struct LogicalNot {
    template <class A> __device__ bool operator()(A x) const { return x == 0; }
};

struct BitwiseAnd {
    template <class A> __device__ A operator()(A a, A b) const { return a & b; }
};

struct BitwiseOr {
    template <class A> __device__ A operator()(A a, A b) const { return a | b; }
};

struct BitwiseXor {
    template <class A> __device__ A operator()(A a, A b) const { return a ^ b; }
};

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
