// Attention for long sequences: no array of queries by keys exists. Formulas: attention.cuh.
//
// A block owns ROWS rows of the result and passes over the others in tiles of COLUMNS:
//     attention_forward, attention_query_grad: rows of queries, tiles of keys;  attention_key_grad: the other way round
// Scores are computed anew in backward; nothing is added by two blocks, so that results are the same in every run.
// Launch: grid = blocks of rows * heads, block = 4 * ROWS threads, shared memory as lucid/ops/layers/attention_cuda.py computes.
// Thread (row group, lane) of these holds 4 rows by every 16th column of a tile of scores, and 4 rows of the result.
// FEATURES: 64 or 128, what features and out_features are filled up to with zeros.
//
// Dao: FlashAttention-2: faster attention with better parallelism and work partitioning. 2023. arXiv:2307.08691

#include "attention.cuh"

namespace lucid {

// ---- tiles ----

// Rows of a tile begin 16 bytes or more apart from a multiple of 128: threads that read neighbouring rows meet no bank
// conflict.
__device__ constexpr int pitch(int columns) { return columns + 4; }

template <typename T>
__device__ __forceinline__ const T* head_of(const T* x, const HeadSteps& steps, const Problem& problem,
                                            long long head) {
    return x + head / problem.heads * steps.b + head % problem.heads * steps.h;
}

// Rows `first` and on of one head; zero beyond its rows and features.
template <int ROWS, int FEATURES, typename T>
__device__ __forceinline__ void load_tile(Real<T>* tile, const T* x_tf, const HeadSteps& steps, int first, int rows,
                                          int features) {
    for (int at = (int)threadIdx.x; at < ROWS * FEATURES; at += (int)blockDim.x) {
        const int row = at / FEATURES, f = at % FEATURES;
        const bool inside = first + row < rows && f < features;
        tile[row * pitch(FEATURES) + f] =
            inside ? to_real(x_tf[(long long)(first + row) * steps.t + f * steps.f]) : (Real<T>)0;
    }
}

// dots_ij = sum over f of a[4 group + i, f] b[lane + 16 j, f]
template <int FEATURES, int WIDTH, typename R>
__device__ __forceinline__ void dot_tiles(R (&dots_ij)[4][WIDTH], const R* a_tile, const R* b_tile) {
    const R* a = a_tile + threadIdx.x / 16 * 4 * pitch(FEATURES);
    const R* b = b_tile + threadIdx.x % 16 * pitch(FEATURES);
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) dots_ij[i][j] = 0;
#pragma unroll 4
    for (int f = 0; f < FEATURES; f += 4) {
        Pack<R, 4> b_j[WIDTH];
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) b_j[j] = *(const Pack<R, 4>*)(b + 16 * j * pitch(FEATURES) + f);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const Pack<R, 4> a_i = *(const Pack<R, 4>*)(a + i * pitch(FEATURES) + f);
#pragma unroll
            for (int j = 0; j < WIDTH; ++j)
#pragma unroll
                for (int e = 0; e < 4; ++e) dots_ij[i][j] += a_i.value_k[e] * b_j[j].value_k[e];
        }
    }
}

// sum_if += sum over columns c of weight[4 group + i, c] x[c, f], f = 4 lane + e + 64 k at place 4 k + e
template <int COLUMNS, int FEATURES, typename R>
__device__ __forceinline__ void add_product(R (&sum_if)[4][FEATURES / 16], const R* weight_tile, const R* x_tile) {
    const R* weight = weight_tile + threadIdx.x / 16 * 4 * pitch(COLUMNS);
    const R* x = x_tile + threadIdx.x % 16 * 4;
#pragma unroll 2
    for (int c = 0; c < COLUMNS; c += 4) {
        Pack<R, 4> weight_i[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) weight_i[i] = *(const Pack<R, 4>*)(weight + i * pitch(COLUMNS) + c);
#pragma unroll
        for (int d = 0; d < 4; ++d)
#pragma unroll
            for (int k = 0; k < FEATURES / 64; ++k) {
                const Pack<R, 4> x_e = *(const Pack<R, 4>*)(x + (c + d) * pitch(FEATURES) + 64 * k);
#pragma unroll
                for (int i = 0; i < 4; ++i)
#pragma unroll
                    for (int e = 0; e < 4; ++e) sum_if[i][4 * k + e] += weight_i[i].value_k[d] * x_e.value_k[e];
            }
    }
}

// Rows of a result of shape (heads, rows, features), times `factor` of the row.
template <int FEATURES, typename T, typename R>
__device__ __forceinline__ void store_rows(T* out_hrf, const R (&sum_if)[4][FEATURES / 16], const R (&factor_i)[4],
                                           long long head, int first, int rows, int features) {
    const int row = first + (int)(threadIdx.x / 16) * 4, lane = (int)(threadIdx.x % 16);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        if (row + i >= rows) continue;
        T* out_f = out_hrf + (head * rows + row + i) * features;
#pragma unroll
        for (int k = 0; k < FEATURES / 64; ++k)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int f = 64 * k + 4 * lane + e;
                if (f < features) out_f[f] = from_real<T>(sum_if[i][4 * k + e] * factor_i[i]);
            }
    }
}

// Over the 16 lanes that share rows.
template <typename R, typename Op> __device__ __forceinline__ R lanes_reduce(R value, Op op) {
#pragma unroll
    for (int step = 8; step; step /= 2) value = op(value, shuffle_xor(value, step));
    return value;
}

// ---- over tiles ----

template <typename T, int FEATURES, int ROWS, int COLUMNS>
__global__ void __launch_bounds__(4 * ROWS, 2)
    attention_forward(const T* q, const T* k, const T* v, T* out, Real<T>* total, int blocks, HeadSteps q_steps,
                      HeadSteps k_steps, HeadSteps v_steps, Problem problem) {
    typedef Real<T> R;
    constexpr int WIDTH = COLUMNS / 16;
    DYN_SHARED(R, shared);
    R* q_tile = shared;
    R* kv_tile = q_tile + ROWS * pitch(FEATURES);  // keys, and when their scores are known, values
    R* weight_tile = kv_tile + COLUMNS * pitch(FEATURES);
    const long long head = blockIdx.x / blocks;
    const int first = (int)(blockIdx.x % blocks) * ROWS, group = (int)(threadIdx.x / 16),
              lane = (int)(threadIdx.x % 16);
    const T* k_sf = head_of(k, k_steps, problem, head);
    const T* v_sg = head_of(v, v_steps, problem, head);
    load_tile<ROWS, FEATURES>(q_tile, head_of(q, q_steps, problem, head), q_steps, first, problem.queries,
                              problem.features);
    R best_i[4], sum_i[4], out_if[4][FEATURES / 16] = {};
#pragma unroll
    for (int i = 0; i < 4; ++i) best_i[i] = -(R)INFINITY, sum_i[i] = 0;
    const int end = problem.causal && first + ROWS < problem.keys ? first + ROWS : problem.keys;
    for (int tile = 0; tile < end; tile += COLUMNS) {
        load_tile<COLUMNS, FEATURES>(kv_tile, k_sf, k_steps, tile, problem.keys, problem.features);
        __syncthreads();
        R dots_ij[4][WIDTH];
        dot_tiles<FEATURES, WIDTH>(dots_ij, q_tile, kv_tile);
        __syncthreads();
        load_tile<COLUMNS, FEATURES>(kv_tile, v_sg, v_steps, tile, problem.keys, problem.out_features);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = group * 4 + i;
            const Row<T> mask(problem, head, first + row);
            R best = best_i[i];
#pragma unroll
            for (int j = 0; j < WIDTH; ++j) {
                dots_ij[i][j] = mask.score(dots_ij[i][j], tile + lane + 16 * j);
                best = dots_ij[i][j] > best ? dots_ij[i][j] : best;
            }
            best = lanes_reduce(best, [](R a, R b) { return b > a ? b : a; });
            const R reference = reference_of(best), shrink = exp(best_i[i] - reference);
            R sum = 0;
#pragma unroll
            for (int j = 0; j < WIDTH; ++j) {
                const R weight = exp(dots_ij[i][j] - reference);
                sum += weight;
                weight_tile[row * pitch(COLUMNS) + lane + 16 * j] = weight * mask.kept(tile + lane + 16 * j);
            }
            sum_i[i] = sum_i[i] * shrink + lanes_reduce(sum, Sum());
            best_i[i] = best;
#pragma unroll
            for (int f = 0; f < FEATURES / 16; ++f) out_if[i][f] *= shrink;
        }
        __syncthreads();
        add_product<COLUMNS, FEATURES>(out_if, weight_tile, kv_tile);
        __syncthreads();
    }
    R factor_i[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int row = first + group * 4 + i;
        const R sum = sum_i[i] == 0 ? (R)1 : sum_i[i];
        factor_i[i] = 1 / sum;
        if (lane == 0 && row < problem.queries)
            total[head * problem.queries + row] = reference_of(best_i[i]) + log(sum);
    }
    store_rows<FEATURES>(out, out_if, factor_i, head, first, problem.queries, problem.out_features);
}

template <typename T, int FEATURES, int ROWS, int COLUMNS>
__global__ void __launch_bounds__(4 * ROWS, 2)
    attention_query_grad(const T* q, const T* k, const T* v, const T* g, const Real<T>* total, const Real<T>* delta,
                         T* dq, int blocks, HeadSteps q_steps, HeadSteps k_steps, HeadSteps v_steps, HeadSteps g_steps,
                         Problem problem) {
    typedef Real<T> R;
    constexpr int WIDTH = COLUMNS / 16;
    DYN_SHARED(R, shared);
    R* q_tile = shared;
    R* g_tile = q_tile + ROWS * pitch(FEATURES);
    R* k_tile = g_tile + ROWS * pitch(FEATURES);
    R* v_tile = k_tile + COLUMNS * pitch(FEATURES);
    R* ds_tile = v_tile + COLUMNS * pitch(FEATURES);
    const long long head = blockIdx.x / blocks;
    const int first = (int)(blockIdx.x % blocks) * ROWS, group = (int)(threadIdx.x / 16),
              lane = (int)(threadIdx.x % 16);
    const T* k_sf = head_of(k, k_steps, problem, head);
    const T* v_sg = head_of(v, v_steps, problem, head);
    load_tile<ROWS, FEATURES>(q_tile, head_of(q, q_steps, problem, head), q_steps, first, problem.queries,
                              problem.features);
    load_tile<ROWS, FEATURES>(g_tile, head_of(g, g_steps, problem, head), g_steps, first, problem.queries,
                              problem.out_features);
    R total_i[4], delta_i[4], factor_i[4], dq_if[4][FEATURES / 16] = {};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int row = first + group * 4 + i;
        total_i[i] = row < problem.queries ? total[head * problem.queries + row] : (R)0;
        delta_i[i] = row < problem.queries ? delta[head * problem.queries + row] : (R)0;
        factor_i[i] = (R)problem.scale;
    }
    const int end = problem.causal && first + ROWS < problem.keys ? first + ROWS : problem.keys;
    for (int tile = 0; tile < end; tile += COLUMNS) {
        load_tile<COLUMNS, FEATURES>(k_tile, k_sf, k_steps, tile, problem.keys, problem.features);
        load_tile<COLUMNS, FEATURES>(v_tile, v_sg, v_steps, tile, problem.keys, problem.out_features);
        __syncthreads();
        R dots_ij[4][WIDTH], grads_ij[4][WIDTH];
        dot_tiles<FEATURES, WIDTH>(dots_ij, q_tile, k_tile);
        dot_tiles<FEATURES, WIDTH>(grads_ij, g_tile, v_tile);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = group * 4 + i;
            const Row<T> mask(problem, head, first + row);
#pragma unroll
            for (int j = 0; j < WIDTH; ++j) {
                const int column = lane + 16 * j, key = tile + column;
                const R weight = exp(mask.score(dots_ij[i][j], key) - total_i[i]);
                ds_tile[row * pitch(COLUMNS) + column] = weight * (grads_ij[i][j] * mask.kept(key) - delta_i[i]);
            }
        }
        __syncthreads();
        add_product<COLUMNS, FEATURES>(dq_if, ds_tile, k_tile);
        __syncthreads();
    }
    store_rows<FEATURES>(dq, dq_if, factor_i, head, first, problem.queries, problem.features);
}

template <typename T, int FEATURES, int ROWS, int COLUMNS>
__global__ void __launch_bounds__(4 * ROWS, 2)
    attention_key_grad(const T* q, const T* k, const T* v, const T* g, const Real<T>* total, const Real<T>* delta,
                       T* dk, T* dv, int blocks, HeadSteps q_steps, HeadSteps k_steps, HeadSteps v_steps,
                       HeadSteps g_steps, Problem problem) {
    typedef Real<T> R;
    constexpr int WIDTH = COLUMNS / 16;
    DYN_SHARED(R, shared);
    R* k_tile = shared;
    R* v_tile = k_tile + ROWS * pitch(FEATURES);
    R* q_tile = v_tile + ROWS * pitch(FEATURES);
    R* g_tile = q_tile + COLUMNS * pitch(FEATURES);
    R* weight_tile = g_tile + COLUMNS * pitch(FEATURES);  // weights for dv, then ds for dk
    const long long head = blockIdx.x / blocks;
    const int first = (int)(blockIdx.x % blocks) * ROWS, group = (int)(threadIdx.x / 16),
              lane = (int)(threadIdx.x % 16);
    const T* q_tf = head_of(q, q_steps, problem, head);
    const T* g_tg = head_of(g, g_steps, problem, head);
    load_tile<ROWS, FEATURES>(k_tile, head_of(k, k_steps, problem, head), k_steps, first, problem.keys,
                              problem.features);
    load_tile<ROWS, FEATURES>(v_tile, head_of(v, v_steps, problem, head), v_steps, first, problem.keys,
                              problem.out_features);
    R dk_if[4][FEATURES / 16] = {}, dv_if[4][FEATURES / 16] = {};
    for (int tile = problem.causal ? first / COLUMNS * COLUMNS : 0; tile < problem.queries; tile += COLUMNS) {
        load_tile<COLUMNS, FEATURES>(q_tile, q_tf, q_steps, tile, problem.queries, problem.features);
        load_tile<COLUMNS, FEATURES>(g_tile, g_tg, g_steps, tile, problem.queries, problem.out_features);
        __syncthreads();
        R dots_ij[4][WIDTH], grads_ij[4][WIDTH];
        dot_tiles<FEATURES, WIDTH>(dots_ij, k_tile, q_tile);
        dot_tiles<FEATURES, WIDTH>(grads_ij, v_tile, g_tile);
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) {
            const int column = lane + 16 * j, query = tile + column;
            const Row<T> mask(problem, head, query);
            const bool inside = query < problem.queries;
            const R total_t = inside ? total[head * problem.queries + query] : (R)0;
            const R delta_t = inside ? delta[head * problem.queries + query] : (R)0;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int row = group * 4 + i;
                const R weight = exp(mask.score(dots_ij[i][j], first + row) - total_t), kept = mask.kept(first + row);
                weight_tile[row * pitch(COLUMNS) + column] = weight * kept;
                grads_ij[i][j] = weight * (grads_ij[i][j] * kept - delta_t);
            }
        }
        __syncthreads();
        add_product<COLUMNS, FEATURES>(dv_if, weight_tile, g_tile);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
            for (int j = 0; j < WIDTH; ++j)
                weight_tile[(group * 4 + i) * pitch(COLUMNS) + lane + 16 * j] = grads_ij[i][j];
        __syncthreads();
        add_product<COLUMNS, FEATURES>(dk_if, weight_tile, q_tile);
        __syncthreads();
    }
    const R one_i[4] = {1, 1, 1, 1}, scale = (R)problem.scale, scale_i[4] = {scale, scale, scale, scale};
    store_rows<FEATURES>(dv, dv_if, one_i, head, first, problem.keys, problem.out_features);
    store_rows<FEATURES>(dk, dk_if, scale_i, head, first, problem.keys, problem.features);
}

}  // namespace lucid
