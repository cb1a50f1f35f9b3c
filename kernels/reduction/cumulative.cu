// Running sums, products and linear recurrences along one axis, and the move of elements along it by one place.
//
//     CumulativeSum        y[c] = x[0] + ... + x[c]                  as the dtype `dtype`
//     CumulativeProduct    y[c] = x[0] * ... * x[c]                  as the dtype `dtype`
//     Recurrence           y[c] = x[c] + f[c] * y[c - 1]             as the dtype of x
//     shift                y[c] = x[c - by], by being 1 or -1; `fill` where there is none
//
// scan_lines: one thread a line, for lines that lie side by side in memory, or are short. Block of 32 to 256 threads.
// scan_rows:  one block a line, or one a chunk of it; block of a multiple of 32 threads. Lines that are few and long are
//     cut into chunks, at most as many as a block has threads: with `totals_only` each block writes what its chunk
//     amounts to, totals[n, chunk], and a second launch begins each chunk with what those before it amount to.
//     grid (lines, chunks).
// shift: one thread an element.
// Outputs are in C order: line n begins at n / inner * length * inner + n % inner, beside `first`, and has stride
// `y_step`, inner or, from the end on, -inner. Axes: n = line, c = element; kept = the axes of lines.

#include "reduction.cuh"

namespace lucid {

// What running products of T are carried on in: later elements may bring back what has left the range of float.
template <typename T> struct RunningOf {
    typedef Total<T> type;
};
template <> struct RunningOf<float> : RealOf<double> {};
template <typename T> using Running = typename RunningOf<T>::type;

// ---- ops: A of one element, of nothing, and of two stretches of a line, in their order ----

template <typename T> struct CumulativeSum {
    typedef Total<T> A;
    static constexpr bool FACTOR = false, GROUPED = true;
    __device__ A of(T x, T) const { return (A)x; }
    __device__ A identity() const { return 0; }
    __device__ A merge(A before, A after) const { return Sum()(before, after); }
    __device__ A from_below(A a, int lanes) const { return __shfl_up_sync(0xffffffffu, a, lanes); }
    __device__ Total<T> value(A a) const { return a; }
};

template <typename T> struct CumulativeProduct {
    typedef Running<T> A;
    static constexpr bool FACTOR = false, GROUPED = false;
    __device__ A of(T x, T) const { return (A)x; }
    __device__ A identity() const { return 1; }
    __device__ A merge(A before, A after) const { return Product()(before, after); }
    __device__ A from_below(A a, int lanes) const { return __shfl_up_sync(0xffffffffu, a, lanes); }
    __device__ A value(A a) const { return a; }
};

// y -> total + factor * y
template <typename R> struct Linear {
    R total, factor;
};

template <typename T> struct Recurrence {
    typedef Linear<Total<T>> A;
    static constexpr bool FACTOR = true, GROUPED = false;
    __device__ A of(T x, T factor) const { return A{(Total<T>)x, (Total<T>)factor}; }
    __device__ A identity() const { return A{0, 1}; }
    __device__ A merge(A before, A after) const {
        return A{after.total + after.factor * before.total, before.factor * after.factor};
    }
    __device__ A from_below(A a, int lanes) const {
        return A{__shfl_up_sync(0xffffffffu, a.total, lanes), __shfl_up_sync(0xffffffffu, a.factor, lanes)};
    }
    __device__ Total<T> value(A a) const { return a.total; }
};

// What a line amounts to so far: a group of elements, and all groups before it, of which sums round less than of one
// element after the other. Products of groups may leave the range that those of the line stay in.
template <typename Op> struct Stretch {
    typename Op::A groups, group;
    int taken = 0;

    __device__ __forceinline__ Stretch(const Op& op) : groups(op.identity()), group(op.identity()) {}
    __device__ __forceinline__ void take(const Op& op, typename Op::A a) {
        group = op.merge(group, a);
        if (Op::GROUPED && ++taken == AT_ONCE) {
            groups = op.merge(groups, group);
            group = op.identity();
            taken = 0;
        }
    }
    __device__ __forceinline__ typename Op::A all(const Op& op) const {
        return Op::GROUPED ? op.merge(groups, group) : group;
    }
};

// ---- kernels ----

// Where a line of x and of the factors begins and how it goes on.
template <typename T> struct Line {
    const T* x_c;
    const T* factor_c;
    long long x_step, factor_step;

    template <typename Op> __device__ __forceinline__ typename Op::A at(const Op& op, long long c) const {
        const T x = x_c[c * x_step];
        if constexpr (Op::FACTOR)
            return op.of(x, factor_c[c * factor_step]);
        else
            return op.of(x, x);
    }
};

template <typename T, template <typename> class Scan>
__global__ void scan_lines(const T* x, const T* factor, void* y, const __grid_constant__ Axes kept,
                           const __grid_constant__ Axes factor_kept, long long lines, long long length,
                           long long x_step, long long factor_step, long long y_step, long long first, long long inner,
                           int dtype) {
    const Scan<T> op;
    const long long n = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= lines) return;
    const Line<T> line{x + kept.offset(n), factor + factor_kept.offset(n), x_step, factor_step};
    const long long start = first + n / inner * length * inner + n % inner;
    Stretch<Scan<T>> before(op);
    for (long long c = 0; c < length; ++c) {
        before.take(op, line.at(op, c));
        store_as(y, start + c * y_step, op.value(before.all(op)), dtype);
    }
}

// The A of all threads up to each, in their order, and of all; `part_w` has an A for each warp and one more.
template <typename Op>
__device__ __forceinline__ typename Op::A scanned(const Op& op, typename Op::A a, typename Op::A* part_w,
                                                  typename Op::A& all) {
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, warps = (int)blockDim.x / 32;
    for (int lanes = 1; lanes < 32; lanes *= 2) {
        const typename Op::A below = op.from_below(a, lanes);
        if (lane >= lanes) a = op.merge(below, a);
    }
    __syncthreads();  // all have read what an earlier call left here
    if (lane == 31) part_w[warp] = a;
    __syncthreads();
    typename Op::A before = op.identity();
    all = op.identity();
    for (int w = 0; w < warps; ++w) {
        if (w == warp) before = all;
        all = op.merge(all, part_w[w]);
    }
    return op.merge(before, a);
}

template <typename T, template <typename> class Scan>
__global__ void scan_rows(const T* x, const T* factor, void* y, void* totals_nk, const __grid_constant__ Axes kept,
                          const __grid_constant__ Axes factor_kept, long long lines, long long length, long long x_step,
                          long long factor_step, long long y_step, long long first, long long inner, int dtype,
                          int totals_only) {
    typedef typename Scan<T>::A A;
    __shared__ __align__(16) unsigned char part_bytes[32 * sizeof(A)];
    A* part_w = reinterpret_cast<A*>(part_bytes);
    const Scan<T> op;
    const long long n = blockIdx.x;
    const int chunk = (int)blockIdx.y, chunks = (int)gridDim.y;
    const Line<T> line{x + kept.offset(n), factor + factor_kept.offset(n), x_step, factor_step};
    const long long start = first + n / inner * length * inner + n % inner;
    const Part part(length, chunk, chunks);
    A* totals_k = (A*)totals_nk + n * chunks;
    Stretch<Scan<T>> before(op);
    A all;
    if (chunks > 1 && !totals_only) {
        scanned(op, (int)threadIdx.x < chunk ? totals_k[threadIdx.x] : op.identity(), part_w, all);
        before.take(op, all);
    }
    for (long long base = part.first; base < part.last; base += blockDim.x) {
        const long long c = base + threadIdx.x;
        A a = scanned(op, c < part.last ? line.at(op, c) : op.identity(), part_w, all);
        if (!totals_only && c < part.last)
            store_as(y, start + c * y_step, op.value(op.merge(before.all(op), a)), dtype);
        before.take(op, all);
    }
    if (totals_only && threadIdx.x == 0) totals_k[chunk] = before.all(op);
}

template <typename T>
__global__ void shift(const T* x, T* y, const __grid_constant__ Axes kept, long long lines, long long length,
                      long long step, long long inner, int by, double fill) {
    const long long index = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= lines * length) return;
    const long long slice = index / inner, c = slice % length - by, n = slice / length * inner + index % inner;
    y[index] = 0 <= c && c < length ? x[kept.offset(n) + c * step] : (T)(float)fill;
}

}  // namespace lucid
