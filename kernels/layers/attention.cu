// Attention for sequences whose scores can be stored: what lies between matrix products. Formulas: attention.cuh.
//
//     attention_weights        weights kept_rs weight_rs from q k, and total_r
//     attention_weights_grad   kept_rs weight_rs and scale * ds_rs from q k and g v
//     attention_delta          delta_r
//
// r = (b, h, t) counted from `first_row`. A result may take the place of the products that it is made of.
// Launch: one block of whole warps for each row; attention_delta: one warp for each row.
//
// Milakov, Gimelshein: Online normalizer calculation for softmax. 2018. arXiv:1805.02867

#include "attention.cuh"

namespace lucid {

template <typename T>
__global__ void attention_weights(const Real<T>* dots_rs, T* weight_rs, Real<T>* total_r, long long first_row,
                                  Problem problem) {
    typedef Real<T> R;
    const long long row = first_row + blockIdx.x, at = (long long)blockIdx.x * problem.keys;
    const Row<T> mask(problem, row / problem.queries, (int)(row % problem.queries));
    R best = -(R)INFINITY, sum = 0;
    for (int s = (int)threadIdx.x; s < problem.keys; s += (int)blockDim.x) {
        const R score = mask.score(dots_rs[at + s], s);
        if (score > best) {
            sum *= exp(best - score);
            best = score;
        }
        sum += exp(score - reference_of(best));
    }
    const R reference = reference_of(block_max(best));
    sum = block_sum(best == -(R)INFINITY ? sum : sum * exp(best - reference));
    sum = sum == 0 ? (R)1 : sum;
    for (int s = (int)threadIdx.x; s < problem.keys; s += (int)blockDim.x)
        weight_rs[at + s] = from_real<T>(exp(mask.score(dots_rs[at + s], s) - reference) / sum * mask.kept(s));
    if (threadIdx.x == 0) total_r[row] = reference + log(sum);
}

template <typename T>
__global__ void attention_weights_grad(const Real<T>* dots_rs, const Real<T>* grad_dots_rs, const Real<T>* total_r,
                                       const Real<T>* delta_r, T* weight_rs, T* ds_rs, long long first_row,
                                       Problem problem) {
    typedef Real<T> R;
    const long long row = first_row + blockIdx.x, at = (long long)blockIdx.x * problem.keys;
    const Row<T> mask(problem, row / problem.queries, (int)(row % problem.queries));
    const R total = total_r[row], delta = delta_r[row];
    for (int s = (int)threadIdx.x; s < problem.keys; s += (int)blockDim.x) {
        const R weight = exp(mask.score(dots_rs[at + s], s) - total), kept = mask.kept(s), grad = grad_dots_rs[at + s];
        weight_rs[at + s] = from_real<T>(weight * kept);
        ds_rs[at + s] = from_real<T>(weight * (grad * kept - delta) * (R)problem.scale);
    }
}

// delta_r, one warp for each row; out_rg is dense.
template <typename T>
__global__ void attention_delta(const T* g, const T* out_rg, Real<T>* delta_r, long long rows, HeadSteps g_steps,
                                Problem problem) {
    typedef Real<T> R;
    const int lane = (int)(threadIdx.x % 32);
    const long long row = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= rows) return;
    const long long head = row / problem.queries, t = row % problem.queries;
    const T* g_g = g + head / problem.heads * g_steps.b + head % problem.heads * g_steps.h + t * g_steps.t;
    R sum = 0;
    for (int f = lane; f < problem.out_features; f += 32)
        sum += to_real(g_g[f * g_steps.f]) * to_real(out_rg[row * problem.out_features + f]);
    sum = warp_sum(sum);
    if (lane == 0) delta_r[row] = sum;
}

}  // namespace lucid
