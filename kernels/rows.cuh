// What kernels of whole rows share: peaks and masses as ops of reduction.cuh, and rows held in registers.

#ifndef LUCID_ROWS_CUH
#define LUCID_ROWS_CUH

#include "reduction.cuh"

namespace lucid {

// ---- ops without settings ----

// The largest number; NaN is passed over.
template <typename R> struct Peak {
    typedef R A;
    __device__ A identity() const { return Limits<R>::least(); }
    __device__ A merge(A a, A b) const { return max(a, b); }
};

// The largest x, and the sum of exp(x - peak).
template <typename R> struct Mass {
    R peak, mass;
};

template <typename R> struct Massing {
    typedef Mass<R> A;
    __device__ A identity() const { return A{Limits<R>::least(), 0}; }
    __device__ A merge(A a, A b) const {
        // equal peaks, which may be infinite, have a ratio of 1; NaN stays in the mass
        const R ratio = a.peak == b.peak ? (R)1 : exp(-abs(a.peak - b.peak));
        return a.peak < b.peak ? A{b.peak, a.mass * ratio + b.mass} : A{a.peak, a.mass + b.mass * ratio};
    }
};

// ---- rows in registers ----

// Elements that a thread holds, and the threads that hold a row at most. With vectors they are whole vectors of 16 bytes,
// and the length of the row is a multiple of theirs.
constexpr int HELD = 16, MAX_THREADS = 512;

// Reads a row, with `nothing` in registers beyond its end, or in all of them if it is no row.
template <typename T>
__device__ __forceinline__ void read_row(const T* row_c, bool is_row, int length, int vectors, Total<T> nothing,
                                         Total<T> (&value_k)[HELD]) {
    constexpr int V = Pack<T>::WIDTH;
#pragma unroll
    for (int k = 0; k < HELD; ++k) value_k[k] = nothing;
    if (!is_row) return;
    if (vectors) {
#pragma unroll
        for (int k = 0; k < HELD; k += V) {
            const int c = (k / V * (int)blockDim.x + (int)threadIdx.x) * V;
            if (c < length) {
                const Pack<T> v = *(const Pack<T>*)(row_c + c);
#pragma unroll
                for (int j = 0; j < V; ++j) value_k[k + j] = (Total<T>)v.value_k[j];
            }
        }
    } else {
#pragma unroll
        for (int k = 0; k < HELD; ++k) {
            const int c = k * (int)blockDim.x + (int)threadIdx.x;
            if (c < length) value_k[k] = (Total<T>)row_c[c];
        }
    }
}

// Writes what read_row has read to a row of the same length and alignment.
template <typename T>
__device__ __forceinline__ void write_row(T* row_c, int length, int vectors, const Total<T> (&value_k)[HELD]) {
    constexpr int V = Pack<T>::WIDTH;
    if (vectors) {
#pragma unroll
        for (int k = 0; k < HELD; k += V) {
            const int c = (k / V * (int)blockDim.x + (int)threadIdx.x) * V;
            if (c < length) {
                Pack<T> v;
#pragma unroll
                for (int j = 0; j < V; ++j) v.value_k[j] = (T)value_k[k + j];
                *(Pack<T>*)(row_c + c) = v;
            }
        }
    } else {
#pragma unroll
        for (int k = 0; k < HELD; ++k) {
            const int c = k * (int)blockDim.x + (int)threadIdx.x;
            if (c < length) row_c[c] = (T)value_k[k];
        }
    }
}

}  // namespace lucid

#endif  // LUCID_ROWS_CUH
