// Whole quotients and remainders, and their derivatives: lucid/ops/elementwise/division.py. Launched by
// lucid/cuda/launch/elementwise.py.
//
// Integers by zero give zero, as in NumPy and CuPy: the CPU path refuses them, a kernel cannot. Integers by -1 are
// negated, so that the lowest one wraps around.

#include "elementwise.cuh"

// The machine's division traps or overflows by 0 and by -1.
template <class A> __device__ __forceinline__ bool is_minus_one(A b) { return A(-1) < A(0) && b == A(-1); }

// Rounded towards zero.
template <class A> __device__ __forceinline__ A whole_quotient(A a, A b) {
    return b == 0 ? A(0) : is_minus_one(b) ? difference(A(0), a) : A(a / b);
}

// With the sign of the dividend.
template <class A> __device__ __forceinline__ A whole_rest(A a, A b) {
    return b == 0 || is_minus_one(b) ? A(0) : A(a % b);
}

// With the remainder taken off first: 1 // 0.1 is 9.
struct FloorDivide {
    template <class A> __device__ A operator()(A a, A b) const {
        if constexpr (is_floating<A>) {
            if (b == 0) return a / b;
            const A rest = fmod(a, b);
            A quotient = (a - rest) / b;
            if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
            if (quotient == 0) return copysign(A(0), a / b);
            const A below = floor(quotient);
            return quotient - below > A(0.5) ? below + 1 : below;
        } else {
            const A quotient = whole_quotient(a, b);
            return whole_rest(a, b) != 0 && (a < 0) != (b < 0) ? A(quotient - 1) : quotient;
        }
    }
};

// Of a quotient in the precision of T.
template <class T> struct TruncDivide {
    template <class A> __device__ A operator()(A a, A b) const {
        if constexpr (is_floating<A>) return trunc(through<T>(a / b));
        return whole_quotient(a, b);
    }
};

// With the sign of the divisor; exact before the last step.
struct Remainder {
    template <class A> __device__ A operator()(A a, A b) const {
        if constexpr (is_floating<A>) {
            const A rest = fmod(a, b);
            if (b == 0) return rest;
            if (rest == 0) return copysign(A(0), b);
            return (b < 0) != (rest < 0) ? rest + b : rest;
        } else {
            const A rest = whole_rest(a, b);
            return rest != 0 && (b < 0) != (rest < 0) ? A(rest + b) : rest;
        }
    }
};

struct RemainderGradB {
    template <class A> __device__ A operator()(A grad, A a, A b) const { return -(grad * FloorDivide()(a, b)); }
};

struct Fmod {
    template <class A> __device__ A operator()(A a, A b) const {
        if constexpr (is_floating<A>) {
            return fmod(a, b);
        } else {
            return whole_rest(a, b);
        }
    }
};

template <class T> struct FmodGradB {
    template <class A> __device__ A operator()(A grad, A a, A b) const { return -(grad * TruncDivide<T>()(a, b)); }
};

// Of the lowest integer, too, which no integer of its dtype is.
template <class A> __device__ __forceinline__ Bits magnitude(A x) { return x < 0 ? Bits(0) - (Bits)x : (Bits)x; }

__device__ __forceinline__ Bits common_divisor(Bits a, Bits b) {
    while (b != 0) {
        const Bits rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

struct Gcd {
    template <class A> __device__ A operator()(A a, A b) const {
        return static_cast<A>(common_divisor(magnitude(a), magnitude(b)));
    }
};

struct Lcm {
    template <class A> __device__ A operator()(A a, A b) const {
        const Bits divisor = common_divisor(magnitude(a), magnitude(b));
        return divisor == 0 ? A(0) : static_cast<A>(magnitude(a) / divisor * magnitude(b));
    }
};
