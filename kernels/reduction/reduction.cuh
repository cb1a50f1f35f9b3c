// Reductions of any axes of a strided array: the loops, once; an op says what is gathered and what is written.
//
//     out[r] = finish(merge over i of x[r, i])        r: kept axes, flattened; i: reduced axes, flattened
//
// An op is a struct Op<T> of the members `double setting; int flavour;` with
//     A                       the accumulator, plain data
//     identity()              A of nothing
//     take(a, x, i)           a with element i of the row, of value x
//     merge(a, b)             two A as one; associative and commutative
//     finish(out, r, a)       writes result r
//
// reduce_rows: neighbouring threads take neighbouring elements of a row.
//     block (threads of a row, rows), a multiple of 32 together; over 32 threads a row: one row
//     grid (rows / rows of a block, chunks)
// reduce_columns: neighbouring threads take neighbouring rows, whose elements lie side by side in memory.
//     block (columns, parts of their length), powers of two; grid (columns / columns of a block, chunks)
//     dynamic shared memory: an A for each thread and each of its columns
// With more than one chunk, which is for few and long rows, each writes partial[r, chunk], and reduce_partials merges
// these: the order of additions depends on the shape alone, and no atomics are needed.

#ifndef LUCID_REDUCTION_CUH
#define LUCID_REDUCTION_CUH

#include "lucid.cuh"

namespace lucid {

// ---- types ----

template <typename T> struct TotalOf {
    typedef long long type;
};
template <> struct TotalOf<float> : RealOf<float> {};
template <> struct TotalOf<double> : RealOf<double> {};
template <> struct TotalOf<__half> : RealOf<__half> {};
template <> struct TotalOf<__nv_bfloat16> : RealOf<__nv_bfloat16> {};

// What sums of T are gathered in: float for half types, long long for integers and bool.
template <typename T> using Total = typename TotalOf<T>::type;

// The dtypes of results, by NumPy's names.
enum Dtype { FLOAT32, FLOAT64, FLOAT16, BFLOAT16, INT8, UINT8, INT16, INT32, INT64, BOOL };

// Writes value as a dtype.
template <typename A> __device__ __forceinline__ void store_as(void* out, long long i, A value, int dtype) {
    switch (dtype) {
        case FLOAT32:
            ((float*)out)[i] = (float)value;
            break;
        case FLOAT64:
            ((double*)out)[i] = (double)value;
            break;
        case FLOAT16:
            ((__half*)out)[i] = (__half)(float)value;
            break;
        case BFLOAT16:
            ((__nv_bfloat16*)out)[i] = (__nv_bfloat16)(float)value;
            break;
        case INT8:
            ((signed char*)out)[i] = (signed char)value;
            break;
        case UINT8:
            ((unsigned char*)out)[i] = (unsigned char)value;
            break;
        case INT16:
            ((short*)out)[i] = (short)value;
            break;
        case INT32:
            ((int*)out)[i] = (int)value;
            break;
        case INT64:
            ((long long*)out)[i] = (long long)value;
            break;
        default:
            ((bool*)out)[i] = value != 0;
    }
}

// What Max or Min gives of nothing.
template <typename A, typename Choice> struct Extreme {
    __device__ __forceinline__ static A none() { return Limits<A>::least(); }
};
template <typename A> struct Extreme<A, Min> {
    __device__ __forceinline__ static A none() { return Limits<A>::greatest(); }
};

// What the host tells an op.
struct Told {
    double setting;
    int flavour;
};

// ---- places ----

constexpr int MAX_AXES = 6;

// Some of the axes of an array, outermost first, with strides in elements; at least one. Kernels take them as
// `const __grid_constant__ Axes`: each thread would copy to its stack what `offset` indexes otherwise.
struct Axes {
    long long count;
    long long size_d[MAX_AXES];
    long long stride_d[MAX_AXES];

    __device__ __forceinline__ long long offset(long long index) const {
        long long offset = 0;
#pragma unroll 1
        for (int d = (int)count - 1; d > 0; --d) {
            const long long outer = quotient(index, size_d[d]);
            offset += (index - outer * size_d[d]) * stride_d[d];
            index = outer;
        }
        return offset + index * stride_d[0];
    }

    // The same, of one axis only if that is known: then loops over it are worth unrolling.
    template <bool ONE> __device__ __forceinline__ long long offset_along(long long index) const {
        return ONE ? index * stride_d[0] : offset(index);
    }
};

// ---- merging threads ----

// The merged A of `width` neighbouring threads, a power of two, in all of them; over 32 the whole block.
template <typename Op> __device__ __forceinline__ typename Op::A merged(const Op& op, typename Op::A a, int width) {
    typedef typename Op::A A;
    for (int lanes = min(width, 32) / 2; lanes; lanes /= 2) a = op.merge(a, shuffle_xor(a, lanes));
    if (width > 32) {
        __shared__ __align__(16) unsigned char part_bytes[32 * sizeof(A)];
        A* part_w = reinterpret_cast<A*>(part_bytes);
        const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
        __syncthreads();  // all have read what an earlier call left here
        if (lane == 0) part_w[warp] = a;
        __syncthreads();
        a = lane < width / 32 ? part_w[lane] : op.identity();
        for (int lanes = 16; lanes; lanes /= 2) a = op.merge(a, shuffle_xor(a, lanes));
    }
    return a;
}

template <typename Op>
__device__ __forceinline__ void finish(const Op& op, void* out, void* partial, long long row, typename Op::A a) {
    if (gridDim.y > 1)
        ((typename Op::A*)partial)[row * gridDim.y + blockIdx.y] = a;
    else
        op.finish(out, row, a);
}

// ---- kernels ----

// The A of those elements of a part of a row that are this thread's, WIDTH at a time.
template <int WIDTH, bool ONE_AXIS, typename T, typename Op>
__device__ __forceinline__ typename Op::A taken_of_row(const Op& op, const T* x_i, const Axes& reduced,
                                                       const Part& part) {
    constexpr int UNROLL = !ONE_AXIS ? 1 : WIDTH > 1 ? 2 : 4;
    const auto take = [&](typename Op::A& a, long long u) {
        const T* from = x_i + reduced.offset_along<ONE_AXIS>(u * WIDTH);
        if constexpr (WIDTH > 1) {
            const Pack<T> v = *(const Pack<T>*)from;
#pragma unroll
            for (int k = 0; k < WIDTH; ++k) op.take(a, v.value_k[k], u * WIDTH + k);
        } else {
            op.take(a, *from, u);
        }
    };
    return gathered<WIDTH, 2, UNROLL>(op, part.first + threadIdx.x, part.last, blockDim.x, take);
}

template <typename T, template <typename> class Gather>
__global__ void reduce_rows(const T* x, void* out, void* partial, const __grid_constant__ Axes kept,
                            const __grid_constant__ Axes reduced, long long rows, long long length, int vectors,
                            double setting, int flavour) {
    constexpr int V = Pack<T>::WIDTH;
    const Gather<T> op{setting, flavour};
    const long long row = (long long)blockIdx.x * blockDim.y + threadIdx.y;
    typename Gather<T>::A a = op.identity();
    if (row < rows) {
        const T* x_i = x + kept.offset(row);
        const Part part(vectors ? length / V : length, blockIdx.y, gridDim.y);
        if (reduced.count > 1) {
            if (vectors)
                a = taken_of_row<V, false>(op, x_i, reduced, part);
            else
                a = taken_of_row<1, false>(op, x_i, reduced, part);
        } else if (vectors) {
            a = taken_of_row<V, true>(op, x_i, reduced, part);
            if (blockIdx.y == gridDim.y - 1) {
#pragma unroll 1
                for (long long i = length - length % V + threadIdx.x; i < length; i += blockDim.x)
                    op.take(a, x_i[i], i);
            }
        } else {
            a = taken_of_row<1, true>(op, x_i, reduced, part);
        }
    }
    a = merged(op, a, blockDim.x);
    if (row < rows && threadIdx.x == 0) finish(op, out, partial, row, a);
}

// WIDTH columns side by side.
template <typename Op, int WIDTH> struct Columns {
    struct A {
        typename Op::A a_k[WIDTH];
    };
    Op op;
    __device__ __forceinline__ A identity() const {
        A a;
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) a.a_k[k] = op.identity();
        return a;
    }
    __device__ __forceinline__ A merge(A a, const A& b) const {
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) a.a_k[k] = op.merge(a.a_k[k], b.a_k[k]);
        return a;
    }
};

// The A of those elements of a part of WIDTH columns, side by side in memory, that are this thread's.
template <int WIDTH, bool ONE_AXIS, typename T, typename Op>
__device__ __forceinline__ typename Columns<Op, WIDTH>::A taken_of_columns(const Op& op, const T* x_i,
                                                                           const Axes& reduced, const Part& part) {
    constexpr int UNROLL = !ONE_AXIS ? 1 : WIDTH > 1 ? 2 : 4;
    const auto take = [&](typename Columns<Op, WIDTH>::A& a, long long i) {
        const T* from = x_i + reduced.offset_along<ONE_AXIS>(i);
        if constexpr (WIDTH > 1) {
            const Pack<T> v = *(const Pack<T>*)from;
#pragma unroll
            for (int k = 0; k < WIDTH; ++k) op.take(a.a_k[k], v.value_k[k], i);
        } else {
            op.take(a.a_k[0], *from, i);
        }
    };
    // each level has an A for each column in registers; where these are too many, results have half the digits
    constexpr int LEVELS = sizeof(typename Columns<Op, WIDTH>::A) <= 128 ? 2 : 1;
    return gathered<1, LEVELS, UNROLL>(Columns<Op, WIDTH>{op}, part.first + threadIdx.y, part.last, blockDim.y, take);
}

template <int WIDTH, typename T, typename Op>
__device__ __forceinline__ void columns_of_thread(const Op& op, const T* x, void* out, void* partial, const Axes& kept,
                                                  const Axes& reduced, long long columns, long long length,
                                                  typename Op::A* shared) {
    typedef typename Op::A A;
    const int across = (int)blockDim.x, down = (int)blockDim.y;
    const long long column = ((long long)blockIdx.x * across + threadIdx.x) * WIDTH;
    typename Columns<Op, WIDTH>::A taken = Columns<Op, WIDTH>{op}.identity();
    if (column < columns) {
        const T* x_i = x + kept.offset(column);
        const Part part(length, blockIdx.y, gridDim.y);
        if (reduced.count > 1)
            taken = taken_of_columns<WIDTH, false>(op, x_i, reduced, part);
        else
            taken = taken_of_columns<WIDTH, true>(op, x_i, reduced, part);
    }
    A* mine = shared + threadIdx.y * across + threadIdx.x;  // of each k the threads lie together
    const int apart = across * down;
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) mine[k * apart] = taken.a_k[k];
    __syncthreads();
    for (int half = down / 2; half; half /= 2) {
        if ((int)threadIdx.y < half) {
#pragma unroll 1
            for (int k = 0; k < WIDTH; ++k)
                mine[k * apart] = op.merge(mine[k * apart], mine[k * apart + half * across]);
        }
        __syncthreads();
    }
    if (threadIdx.y == 0) {
#pragma unroll 1
        for (int k = 0; k < WIDTH; ++k)
            if (column + k < columns) finish(op, out, partial, column + k, mine[k * apart]);
    }
}

template <typename T, template <typename> class Gather>
__global__ void reduce_columns(const T* x, void* out, void* partial, const __grid_constant__ Axes kept,
                               const __grid_constant__ Axes reduced, long long columns, long long length, int vectors,
                               double setting, int flavour) {
    typedef typename Gather<T>::A A;
    DYN_SHARED(A, shared);
    const Gather<T> op{setting, flavour};
    if (vectors)
        columns_of_thread<Pack<T>::WIDTH>(op, x, out, partial, kept, reduced, columns, length, shared);
    else
        columns_of_thread<1>(op, x, out, partial, kept, reduced, columns, length, shared);
}

// Block and grid as for reduce_rows without chunks.
template <typename T, template <typename> class Gather>
__global__ void reduce_partials(const void* partial, void* out, long long rows, long long chunks, double setting,
                                int flavour) {
    typedef typename Gather<T>::A A;
    const Gather<T> op{setting, flavour};
    const long long row = (long long)blockIdx.x * blockDim.y + threadIdx.y;
    A a = op.identity();
    if (row < rows)
        a = gathered<1, 2, 1>(op, threadIdx.x, chunks, blockDim.x, [&](A& total, long long c) {
            total = op.merge(total, ((const A*)partial)[row * chunks + c]);
        });
    a = merged(op, a, blockDim.x);
    if (row < rows && threadIdx.x == 0) op.finish(out, row, a);
}

}  // namespace lucid

#endif  // LUCID_REDUCTION_CUH
