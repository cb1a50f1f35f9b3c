// Many tensors in one launch: their addresses and sizes travel by value in a table, so that no copy precedes the launch.
//
// A row of the table is a list of DEPTH arrays of one size, such as gradient, parameter and state; rows differ in size.
// Every row is cut into chunks of `chunk` elements, a multiple of a 16-byte vector, and block b works on chunk b:
//     launch: grid = end_t[count - 1] blocks, any block of whole warps
// Axes: t = row of the table (CAPACITY), d = array of a row (DEPTH).

#ifndef LUCID_TENSORS_CUH
#define LUCID_TENSORS_CUH

#include "lucid.cuh"

namespace lucid {

// Rows that a table holds: even, and so many that table and settings stay below the 4 KiB of a launch's parameters.
__host__ __device__ constexpr int table_capacity(int depth) { return 3840 / (8 * depth + 12) / 2 * 2; }

template <int DEPTH> struct Tensors {
    static constexpr int CAPACITY = table_capacity(DEPTH);
    void* address_dt[DEPTH][CAPACITY];
    long long size_t[CAPACITY];
    int end_t[CAPACITY];  // chunks of the rows up to and with t
};

// Where a block works: a row, and elements `first` to `first + count` of it.
struct Chunk {
    int row;
    long long first;
    int count;
};

template <int DEPTH>
__device__ __forceinline__ Chunk chunk_of_block(const Tensors<DEPTH>& tensors, int rows, int chunk) {
    const int block = (int)blockIdx.x;
    int low = 0, high = rows - 1;  // the first row whose end is beyond this block
    while (low < high) {
        const int middle = (low + high) / 2;
        if (tensors.end_t[middle] > block)
            high = middle;
        else
            low = middle + 1;
    }
    const int before = low ? tensors.end_t[low - 1] : 0;
    const long long first = (long long)(block - before) * chunk;
    const long long left = tensors.size_t[low] - first;
    return Chunk{low, first, left < chunk ? (int)left : chunk};
}

// Calls change(value_d) for every element of this block's chunk, value_d being the DEPTH numbers at its place in the
// precision that T is worked on in, and writes arrays WRITTEN and above back.
template <typename T, int DEPTH, int WRITTEN, typename Change>
__device__ __forceinline__ void for_each_in_chunk(const Tensors<DEPTH>& tensors, int rows, int chunk, Change change) {
    const Chunk here = chunk_of_block(tensors, rows, chunk);
    T* array_d[DEPTH];
    bool aligned = true;
#pragma unroll
    for (int d = 0; d < DEPTH; ++d) {
        array_d[d] = (T*)tensors.address_dt[d][here.row] + here.first;
        aligned = aligned && (unsigned long long)array_d[d] % sizeof(Pack<T>) == 0;
    }
    constexpr int WIDTH = Pack<T>::WIDTH;
    const int vectors = aligned ? here.count / WIDTH : 0;
    for (int v = threadIdx.x; v < vectors; v += blockDim.x) {
        Pack<T> packed_d[DEPTH];
#pragma unroll
        for (int d = 0; d < DEPTH; ++d) packed_d[d] = ((const Pack<T>*)array_d[d])[v];
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) {
            Real<T> value_d[DEPTH];
#pragma unroll
            for (int d = 0; d < DEPTH; ++d) value_d[d] = to_real(packed_d[d].value_k[k]);
            change(value_d);
#pragma unroll
            for (int d = WRITTEN; d < DEPTH; ++d) packed_d[d].value_k[k] = from_real<T>(value_d[d]);
        }
#pragma unroll
        for (int d = WRITTEN; d < DEPTH; ++d) ((Pack<T>*)array_d[d])[v] = packed_d[d];
    }
    for (int i = vectors * WIDTH + threadIdx.x; i < here.count; i += blockDim.x) {
        Real<T> value_d[DEPTH];
#pragma unroll
        for (int d = 0; d < DEPTH; ++d) value_d[d] = to_real(array_d[d][i]);
        change(value_d);
#pragma unroll
        for (int d = WRITTEN; d < DEPTH; ++d) array_d[d][i] = from_real<T>(value_d[d]);
    }
}

}  // namespace lucid

#endif  // LUCID_TENSORS_CUH
