// Elementwise maps: out[i] = f(a[i], b[i], ...), operands of any strides, broadcast against each other.
//
// An op is a functor of values, `struct Exp { template <class A> __device__ A operator()(A x) const { return exp(x); } };`
// which gets floating-point arguments in the type Real<T> that it computes in, float for the half types; its result is
// rounded once. Kernels: unary, binary, ternary, quaternary<T, F, PACKED, Out, In...>, for the dtype T of the op.
// An operand In is an array's dtype, or Setting: a number in Real<T>, in double beside integers. Any array may be replaced by a number: then its
// pointer is null. Out may be one of the operands.
//
// Launch: one dimension, one thread for each pack of the layout, or fewer. A pack is a run of 16 / sizeof(T) elements
// along the innermost dimension, loaded at once, if PACKED: then data are aligned to 16 bytes, the innermost strides are
// 1, or 0 for a broadcast operand, and other strides and the innermost size multiples of the pack; only a layout of one
// dimension has a tail of single elements. Otherwise a pack is one element, and strides are arbitrary.
// Axes: d = dimension, innermost first; k = operand, the output first.

#ifndef LUCID_ELEMENTWISE_CUH
#define LUCID_ELEMENTWISE_CUH

#include "lucid.cuh"

namespace lucid {

// What a setting of an op is declared as, in place of an operand's dtype.
struct Setting {};

template <class T> constexpr bool is_half = false;
template <> constexpr bool is_half<__half> = true;
template <> constexpr bool is_half<__nv_bfloat16> = true;

template <class T> constexpr bool is_floating = is_half<T>;
template <> constexpr bool is_floating<float> = true;
template <> constexpr bool is_floating<double> = true;

template <class T> constexpr bool is_integer = !is_floating<T>;
template <> constexpr bool is_integer<bool> = false;

// The type of a number that stands for an operand, and of a setting.
template <class T> struct NumberOf {
    typedef long long number;
    typedef double setting;
};
template <> struct NumberOf<float> {
    typedef double number;
    typedef float setting;
};
template <> struct NumberOf<double> {
    typedef double number;
    typedef double setting;
};
template <> struct NumberOf<__half> {
    typedef double number;
    typedef float setting;
};
template <> struct NumberOf<__nv_bfloat16> {
    typedef double number;
    typedef float setting;
};
template <class T> using Number = typename NumberOf<T>::number;

// A number without its fraction. C++ leaves undefined what does not fit and NaN: here they give the lowest integer, as
// processors that run NumPy do.
template <class Wide, class A> __device__ __forceinline__ Wide whole(A x) {
    const Wide lowest = static_cast<Wide>(1ULL << (8 * sizeof(Wide) - 1));
    const A end = -static_cast<A>(lowest);
    // NaN fails both
    return x >= -end && x < end ? static_cast<Wide>(x) : lowest;
}

// Halves are made of floats: not every header makes them of every integer. Integers narrower than 32 bits, sums of which
// are int, wrap around.
template <class Out, class Value> __device__ __forceinline__ Out rounded(Value value) {
    if constexpr (is_half<Out> && !is_floating<Value>) {
        return static_cast<Out>(static_cast<float>(value));
    } else if constexpr (is_integer<Out> && is_floating<Value>) {
        return static_cast<Out>(whole<decltype(Out() + 0)>(static_cast<Real<Value>>(value)));
    } else {
        return static_cast<Out>(value);
    }
}

// A number that stands for an operand, in the type that the op computes in. Beside half types the result is rounded, not
// the number before it; where there is none, as in comparisons, it becomes a half.
template <class In, class Out> __device__ __forceinline__ Real<In> taken(Number<In> number) {
    if constexpr (is_half<In> && is_floating<Out>) return static_cast<Real<In>>(number);
    return static_cast<Real<In>>(rounded<In>(number));
}

// A value in the precision of T, for functors that round on the way: `template <class T> struct Round`.
template <class T, class A> __device__ __forceinline__ A through(A value) { return static_cast<A>(rounded<T>(value)); }

// NaN if either is; the first of equal ones.
template <class A> __device__ __forceinline__ A larger(A a, A b) { return a >= b || a != a ? a : b; }
template <class A> __device__ __forceinline__ A smaller(A a, A b) { return a <= b || a != a ? a : b; }

// Integers wrap around: signed overflow is undefined, unsigned is not.
typedef unsigned long long Bits;

template <class A> __device__ __forceinline__ A product(A a, A b) {
    if constexpr (is_floating<A>) return a * b;
    return static_cast<A>((Bits)a * (Bits)b);
}
template <class A> __device__ __forceinline__ A difference(A a, A b) {
    if constexpr (is_floating<A>) return a - b;
    return static_cast<A>((Bits)a - (Bits)b);
}

template <class In> struct Operand {
    const In* data;
    Number<In> number;
};
template <> struct Operand<Setting> {
    double number;
};

constexpr int MAX_DIMS = 8;

template <int OPERANDS> struct Layout {
    long long packs;  // of the dimensions together
    long long tail;   // elements after the packs
    long long dims;
    long long size_d[MAX_DIMS];               // in packs along the innermost dimension
    long long stride_kd[OPERANDS][MAX_DIMS];  // in elements
};

// Offsets of a pack in each operand. 32-bit division is several times faster than 64-bit.
template <int OPERANDS>
__device__ __forceinline__ void place(const Layout<OPERANDS>& layout, long long pack, int width, long long* at_k) {
#pragma unroll
    for (int k = 0; k < OPERANDS; ++k) at_k[k] = 0;
    const bool narrow = layout.packs <= 0xffffffffLL;
#pragma unroll 1
    for (int d = 0; d < layout.dims; ++d) {
        const long long size = layout.size_d[d];
        long long rest = 0;
        if (d + 1 < layout.dims) { rest = narrow ? (long long)((unsigned)pack / (unsigned)size) : pack / size; }
        const long long step = (pack - rest * size) * (d ? 1 : width);
#pragma unroll
        for (int k = 0; k < OPERANDS; ++k) at_k[k] += step * layout.stride_kd[k][d];
        pack = rest;
    }
}

// The operand's values of one pack, in the type that the op computes in.
template <class T, class Out, class In, int WIDTH> struct Values {
    Real<In> value[WIDTH];

    __device__ __forceinline__ Values(const Operand<In>& operand, long long at, long long stride) {
        if (operand.data == nullptr) {
            fill(taken<In, Out>(operand.number));
        } else if (WIDTH == 1 || stride == 0) {
            fill(static_cast<Real<In>>(operand.data[at]));
        } else {
            const Pack<In, WIDTH> pack = *reinterpret_cast<const Pack<In, WIDTH>*>(operand.data + at);
#pragma unroll
            for (int i = 0; i < WIDTH; ++i) value[i] = static_cast<Real<In>>(pack.value_k[i]);
        }
    }

    __device__ __forceinline__ void fill(Real<In> one) {
#pragma unroll
        for (int i = 0; i < WIDTH; ++i) value[i] = one;
    }

    __device__ __forceinline__ Real<In> operator[](int i) const { return value[i]; }
};

template <class T, class Out, int WIDTH> struct Values<T, Out, Setting, WIDTH> {
    typename NumberOf<T>::setting value;

    __device__ __forceinline__ Values(const Operand<Setting>& operand, long long, long long)
        : value(static_cast<decltype(value)>(operand.number)) {}

    __device__ __forceinline__ decltype(value) operator[](int) const { return value; }
};

template <int WIDTH, class F, class Out, class... V>
__device__ __forceinline__ void write(Out* out, const V&... values) {
    Pack<Out, WIDTH> pack;
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) pack.value_k[i] = rounded<Out>(F()(values[i]...));
    if constexpr (WIDTH == 1) {
        *out = pack.value_k[0];
    } else {
        *reinterpret_cast<Pack<Out, WIDTH>*>(out) = pack;
    }
}

template <int... K> struct Places {};
template <int COUNT, int... K> struct Counted : Counted<COUNT - 1, COUNT - 1, K...> {};
template <int... K> struct Counted<0, K...> {
    typedef Places<K...> type;
};

template <class T, class F, bool PACKED, class Out, class... In, int... K>
__device__ __forceinline__ void map(Places<K...>, const Layout<1 + sizeof...(In)>& layout, Out* out,
                                    const Operand<In>&... operands) {
    constexpr int WIDTH = PACKED ? 16 / sizeof(T) : 1;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const long long threads = (long long)gridDim.x * blockDim.x;
    for (long long pack = first; pack < layout.packs; pack += threads) {
        long long at_k[1 + sizeof...(In)];
        place(layout, pack, WIDTH, at_k);
        write<WIDTH, F>(out + at_k[0], Values<T, Out, In, WIDTH>(operands, at_k[1 + K], layout.stride_kd[1 + K][0])...);
    }
    if constexpr (PACKED) {
        for (long long i = first; i < layout.tail; i += threads) {
            const long long at = layout.packs * WIDTH + i;
            write<1, F>(out + at, Values<T, Out, In, 1>(operands, at * layout.stride_kd[1 + K][0], 0)...);
        }
    }
}

template <class T, class F, bool PACKED, class Out, class A>
__global__ void unary(Layout<2> layout, Out* out, Operand<A> a) {
    map<T, F, PACKED>(Counted<1>::type(), layout, out, a);
}

template <class T, class F, bool PACKED, class Out, class A, class B>
__global__ void binary(Layout<3> layout, Out* out, Operand<A> a, Operand<B> b) {
    map<T, F, PACKED>(Counted<2>::type(), layout, out, a, b);
}

template <class T, class F, bool PACKED, class Out, class A, class B, class C>
__global__ void ternary(Layout<4> layout, Out* out, Operand<A> a, Operand<B> b, Operand<C> c) {
    map<T, F, PACKED>(Counted<3>::type(), layout, out, a, b, c);
}

template <class T, class F, bool PACKED, class Out, class A, class B, class C, class D>
__global__ void quaternary(Layout<5> layout, Out* out, Operand<A> a, Operand<B> b, Operand<C> c, Operand<D> d) {
    map<T, F, PACKED>(Counted<4>::type(), layout, out, a, b, c, d);
}

}  // namespace lucid

using namespace lucid;

#endif  // LUCID_ELEMENTWISE_CUH
