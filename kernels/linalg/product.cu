// Products of stacks of matrices that lie anyhow, as heads of attention do: neither rows nor columns need to be dense,
// and the stack has two steps, as of (batch, head) in a tensor that is (batch, time, head, size).
//
//     out_strc = alpha * sum over k of a_strk * b_stkc + beta * out_strc
//
// Axes: s, t = the stack, r = rows, k = what is summed over, c = columns; out is dense but for its stack.
// A block works on a tile of 32 x 32 of one product, a thread on 4 x 4 of it, each 8 apart from the next.
//     launch: grid = s * t * tiles, block (8, 8)

#include "lucid.cuh"

namespace lucid {

constexpr int TILE = 32, SIDE = 8, EACH = TILE / SIDE;

struct Matrix {
    long long outer_step, inner_step, row_step, column_step;  // of s, t, rows and columns
};

// Copies a tile to shared memory, with zeros beyond the matrix: `line` is r of a or c of b, and neighbouring threads
// read along the shorter step.
template <typename T>
__device__ __forceinline__ void load_tile(Real<T> (&tile_kl)[TILE][TILE + 1], const T* matrix, long long line_step,
                                          long long k_step, int lines, int depth) {
    const bool along = abs(k_step) < abs(line_step);
    for (int i = (int)(threadIdx.y * SIDE + threadIdx.x); i < TILE * TILE; i += SIDE * SIDE) {
        const int line = along ? i / TILE : i % TILE, k = along ? i % TILE : i / TILE;
        tile_kl[k][line] = line < lines && k < depth ? to_real(matrix[line * line_step + k * k_step]) : (Real<T>)0;
    }
}

template <typename T, typename Out>
__global__ void product_of_stacks(const T* a, const T* b, Out* out, Matrix a_steps, Matrix b_steps,
                                  long long outer_step, long long inner_step, int inner_count, int rows, int depth,
                                  int columns, double alpha, double beta) {
    __shared__ Real<T> a_kr[TILE][TILE + 1], b_kc[TILE][TILE + 1];
    const int across = (columns + TILE - 1) / TILE, down = (rows + TILE - 1) / TILE;
    const int tile = (int)(blockIdx.x % (unsigned)(across * down)),
              place = (int)(blockIdx.x / (unsigned)(across * down));
    const int s = place / inner_count, t = place % inner_count;
    const int first_r = tile / across * TILE, first_c = tile % across * TILE;
    a += s * a_steps.outer_step + t * a_steps.inner_step + first_r * a_steps.row_step;
    b += s * b_steps.outer_step + t * b_steps.inner_step + first_c * b_steps.column_step;
    out += s * outer_step + t * inner_step + (long long)first_r * columns + first_c;
    Real<T> sum_rc[EACH][EACH] = {};
    for (int first_k = 0; first_k < depth; first_k += TILE) {
        const int here = min(TILE, depth - first_k);
        load_tile(a_kr, a + first_k * a_steps.column_step, a_steps.row_step, a_steps.column_step, rows - first_r, here);
        load_tile(b_kc, b + first_k * b_steps.row_step, b_steps.column_step, b_steps.row_step, columns - first_c, here);
        __syncthreads();
        for (int k = 0; k < here; ++k) {
            Real<T> a_r[EACH], b_c[EACH];
#pragma unroll
            for (int i = 0; i < EACH; ++i) {
                a_r[i] = a_kr[k][threadIdx.y + i * SIDE];
                b_c[i] = b_kc[k][threadIdx.x + i * SIDE];
            }
#pragma unroll
            for (int r = 0; r < EACH; ++r) {
#pragma unroll
                for (int c = 0; c < EACH; ++c) sum_rc[r][c] += a_r[r] * b_c[c];
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
#pragma unroll
        for (int j = 0; j < EACH; ++j) {
            const int r = (int)threadIdx.y + i * SIDE, c = (int)threadIdx.x + j * SIDE;
            if (r >= rows - first_r || c >= columns - first_c) continue;
            Out* to = out + (long long)r * columns + c;
            const Real<T> old = beta ? (Real<T>)beta * (Real<T>)to_real(*to) : (Real<T>)0;
            *to = from_real<Out>((Real<T>)alpha * sum_rc[i][j] + old);
        }
    }
}

}  // namespace lucid
