// Distances of order p between rows of two stacks of matrices, and their derivative: lucid/ops/linalg/distances.py.
//
//     distance_nij = (sum over k of |a_nik - b_njk|^p)^(1/p)
//     da_nik = sum over j of g_nij * slope(a_nik - b_njk, distance_nij)
//
// `order` is 0, 1 or 2 for that p, 3 for infinity, 4 for any other. Halves are summed in float.
// Axes: n = the stack, i = rows of a, j = rows of b, k = what is summed over.
//
// distances: a block works on a tile of 16 x 16 pairs: grid = n * tiles, block (16, 16).
// distances_grad: one dimension, a thread an element of da. g and distance have the steps i_step, j_step of one matrix,
//     so that the derivative of b is that of a with the roles exchanged.

#include "lucid.cuh"

namespace lucid {

constexpr int DISTANCE_TILE = 16;

enum { NUMBER_OF, SUM_OF_SIZES, LENGTH, LARGEST_OF, POWER };

template <typename R> __device__ __forceinline__ R taken(R total, R difference, R p, int order) {
    const R size = fabs(difference);
    if (order == NUMBER_OF) return total + (difference != 0 ? (R)1 : (R)0);
    if (order == SUM_OF_SIZES) return total + size;
    if (order == LENGTH) return total + difference * difference;
    return order == LARGEST_OF ? Max()(total, size) : total + pow(size, p);
}

// What `taken` gathers, as an op of `gathered`.
template <typename R> struct Taking {
    typedef R A;
    int order;
    __device__ A identity() const { return 0; }
    __device__ A merge(A a, A b) const { return order == LARGEST_OF ? Max()(a, b) : a + b; }
};

template <typename T>
__global__ void distances(const T* a_nik, const T* b_njk, T* out_nij, int rows, int columns, int depth, double p,
                          int order) {
    typedef Real<T> R;
    __shared__ R a_ik[DISTANCE_TILE][DISTANCE_TILE + 1], b_jk[DISTANCE_TILE][DISTANCE_TILE + 1];
    const int across = (columns + DISTANCE_TILE - 1) / DISTANCE_TILE, down = (rows + DISTANCE_TILE - 1) / DISTANCE_TILE;
    const int tile = (int)(blockIdx.x % (unsigned)(across * down));
    const long long n = blockIdx.x / (unsigned)(across * down);
    const int x = (int)threadIdx.x, y = (int)threadIdx.y;
    const int top = tile / across * DISTANCE_TILE, left = tile % across * DISTANCE_TILE;
    const auto take = [&](R& sum, long long start) {
        const int k = (int)start + x;
        // zeros beyond the rows and the depth: their difference adds nothing
        a_ik[y][x] = top + y < rows && k < depth ? to_real(a_nik[(n * rows + top + y) * depth + k]) : (R)0;
        b_jk[y][x] = left + y < columns && k < depth ? to_real(b_njk[(n * columns + left + y) * depth + k]) : (R)0;
        __syncthreads();
        for (int inner = 0; inner < DISTANCE_TILE; ++inner)
            sum = taken(sum, a_ik[y][inner] - b_jk[x][inner], (R)p, order);
        __syncthreads();
    };
    R total = gathered<DISTANCE_TILE, 3, 1>(Taking<R>{order}, 0, depth, DISTANCE_TILE, take);
    if (top + y >= rows || left + x >= columns) return;
    if (order == LENGTH) total = sqrt(total);
    if (order == POWER) total = pow(total, (R)(1 / p));
    out_nij[(n * rows + top + y) * columns + left + x] = from_real<T>(total);
}

template <typename T, typename R> __device__ __forceinline__ R slope_of(R difference, R distance, R p, int order) {
    const R sign = difference > 0 ? (R)1 : difference < 0 ? (R)-1 : (R)0;
    if (order == SUM_OF_SIZES) return sign;
    // where the distance is 0, and in few dimensions, so is the slope
    if (distance == 0 || order == NUMBER_OF) return 0;
    if (order == LENGTH) return difference / distance;
    // the distance was rounded to T
    if (order == LARGEST_OF) return to_real(from_real<T>(fabs(difference))) == distance ? sign : (R)0;
    return difference == 0 ? (R)0 : sign * pow(fabs(difference) / distance, p - 1);
}

template <typename T>
__global__ void distances_grad(const T* g_nij, const T* distance_nij, const T* a_nik, const T* b_njk, T* out_nik,
                               long long count, int rows, int columns, int depth, long long i_step, long long j_step,
                               double p, int order) {
    typedef Real<T> R;
    LUCID_FOR(at, count) {
        const long long row = quotient(at, depth), n = quotient(row, rows);
        const long long k = at - row * depth, i = row - n * rows;
        const long long first = n * rows * columns + i * i_step;
        const R a = to_real(a_nik[at]);
        const T* b_j = b_njk + n * columns * depth + k;
        const auto add = [&](R& sum, long long j) {
            const long long pair = first + j * j_step;
            const R difference = a - to_real(b_j[j * depth]);
            sum += to_real(g_nij[pair]) * slope_of<T>(difference, to_real(distance_nij[pair]), (R)p, order);
        };
        out_nik[at] = from_real<T>(gathered<1, 3, 1>(Adding<R>(), 0, columns, 1, add));
    }
}

}  // namespace lucid
