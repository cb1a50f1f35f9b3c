// Bags of rows of a table, one after the other, each from its start to that of the next:
//
//     sum_bc = sum_n share_n * table_rc   over the n of bag b, r = row_n
//     most_bc = the row r = row_n of bag b whose table_rc is the greatest, the first of equals, of NaN before all; or -1
//
// The row `padding`, and numbers that name no row, count for nothing. Sums are in float for the half types.
// Axes: b = bag, n = place in all bags, r = row, c = column, the last two with strides.
// Launch: any one-dimensional grid and block; neighbouring threads have neighbouring columns.

#include "lucid.cuh"

namespace lucid {

// Where bag b begins; after the last one where it ends.
__device__ __forceinline__ long long start_of(const long long* start_b, long long b, long long bags, long long places) {
    const long long start = b < bags ? start_b[b] : places;
    return start < 0 ? 0 : start < places ? start : places;
}

template <typename T>
__global__ void bag_sums(const T* __restrict__ table, const long long* __restrict__ row_n,
                         const long long* __restrict__ start_b, const Real<T>* __restrict__ share_n,
                         T* __restrict__ sum_bc, long long bags, long long places, long long rows, long long columns,
                         long long stride_r, long long stride_c, long long padding) {
    LUCID_FOR(i, bags * columns) {
        const long long b = quotient(i, columns), c = i - b * columns, end = start_of(start_b, b + 1, bags, places);
        const auto add = [&](Real<T>& sum, long long n) {
            const long long r = row_n[n];
            if (r == padding || r < 0 || r >= rows) return;
            const Real<T> value = to_real(table[r * stride_r + c * stride_c]);
            sum += share_n ? share_n[n] * value : value;
        };
        sum_bc[i] = from_real<T>(gathered(Adding<Real<T>>(), start_of(start_b, b, bags, places), end, 1, add));
    }
}

template <typename T>
__global__ void bag_most(const T* __restrict__ table, const long long* __restrict__ row_n,
                         const long long* __restrict__ start_b, long long* __restrict__ most_bc, long long bags,
                         long long places, long long rows, long long columns, long long stride_r, long long stride_c,
                         long long padding) {
    LUCID_FOR(i, bags * columns) {
        const long long b = quotient(i, columns), c = i - b * columns, end = start_of(start_b, b + 1, bags, places);
        long long most = -1;
        Real<T> greatest = 0;
        for (long long n = start_of(start_b, b, bags, places); n < end; ++n) {
            const long long r = row_n[n];
            if (r == padding || r < 0 || r >= rows) continue;
            const Real<T> value = to_real(table[r * stride_r + c * stride_c]);
            if (most >= 0 && !(value > greatest) && !(value != value && greatest == greatest)) continue;
            most = r;
            greatest = value;
        }
        most_bc[i] = most;
    }
}

// The last bag that begins at place n or before it: those without places begin where the next one does.
__global__ void bag_numbers(const long long* __restrict__ start_b, long long* __restrict__ bag_n, long long bags,
                            long long places) {
    LUCID_FOR(n, places) {
        long long low = 0, high = bags;
        while (low + 1 < high) {
            const long long middle = (low + high) / 2;
            if (start_b[middle] <= n)
                low = middle;
            else
                high = middle;
        }
        bag_n[n] = low;
    }
}

}  // namespace lucid
