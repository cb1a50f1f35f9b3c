// Rows of a table that are in use, shortened to a norm:
//
//     row_c = row_c * max_norm / (norm + 1e-7)   where used_r and norm = (sum_c |row_c|^order)^(1 / order) > max_norm
//
// order = infinity stands for the largest |row_c|, -infinity for the smallest, 0 for how many are not zero.
// Axes: r = row, c = column, each with a stride.
// Launch: any one-dimensional grid; block of whole warps, which share a row.

#include "lucid.cuh"

namespace lucid {

template <typename T>
__device__ __forceinline__ void shorten(T* row, long long columns, long long stride_c, double max_norm, double order) {
    typedef Real<T> R;
    const bool most = order == (double)INFINITY, least = order == -(double)INFINITY;
    R mine = least ? (R)INFINITY : (R)0;
    for (long long c = threadIdx.x; c < columns; c += blockDim.x) {
        const R value = to_real(row[c * stride_c]), size = value < 0 ? -value : value;
        if (most)
            mine = Max()(mine, size);
        else if (least)
            mine = Min()(mine, size);
        else
            mine += order == 2 ? size * size : order == 1 ? size : order == 0 ? (R)(size != 0) : pow(size, (R)order);
    }
    R norm = most ? block_reduce(mine, (R)0, Max()) : least ? block_reduce(mine, (R)INFINITY, Min()) : block_sum(mine);
    if (order == 2) norm = sqrt(norm);
    if (!most && !least && order != 0 && order != 1 && order != 2) norm = pow(norm, (R)(1 / order));
    if (!(norm > (R)max_norm)) return;
    const R factor = (R)max_norm / (norm + (R)1e-7);
    for (long long c = threadIdx.x; c < columns; c += blockDim.x)
        row[c * stride_c] = from_real<T>(to_real(row[c * stride_c]) * factor);
}

template <typename T>
__global__ void shorten_rows(T* table, const unsigned char* used_r, long long rows, long long columns,
                             long long stride_r, long long stride_c, double max_norm, double order) {
    for (long long r = blockIdx.x; r < rows; r += gridDim.x)
        if (used_r[r]) shorten(table + r * stride_r, columns, stride_c, max_norm, order);
}

}  // namespace lucid
