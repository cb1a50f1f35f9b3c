// Attention: out_tg = sum over s of kept_ts weight_ts v_sg, where
//
//     score_ts  = scale * (sum over f of q_tf k_sf) + bias_ts        minus infinity for s > t if causal
//     weight_ts = exp(score_ts - total_t),   total_t = log(sum over s of exp(score_ts));   0 for a row that sees nothing
//     kept_ts   = keep_ts * keep_scale (dropout), or 1
//
// and with g_tg the gradient of out, delta_t = sum over g of g_tg out_tg:
//
//     dv_sg = sum over t of kept_ts weight_ts g_tg
//     ds_ts = weight_ts (kept_ts (sum over g of g_tg v_sg) - delta_t)
//     dq_tf = scale * sum over s of ds_ts k_sf,   dk_sf = scale * sum over t of ds_ts q_tf
//
// b = batch, h = head, t = query, s = key, f = feature, g = feature of values.
// Here is what the two ways share: attention.cu stores the scores, attention_tiles.cu does not.

#ifndef LUCID_ATTENTION_CUH
#define LUCID_ATTENTION_CUH

#include "lucid.cuh"

namespace lucid {

// Steps between elements, in elements; of bias and keep, t is the query and f the key.
struct HeadSteps {
    long long b, h, t, f;
};

// lucid/ops/layers/attention_cuda.py gives the members in this order.
struct Problem {
    const void* bias;  // nullptr: none; of the dtype of the scores if wide_bias, else of T
    const bool* keep;  // nullptr: none
    HeadSteps bias_steps, keep_steps;
    double scale, keep_scale;
    int heads, queries, keys, features, out_features, causal, wide_bias, unused;
};

// One row of bias and keep, and what makes scores of products.
template <typename T> struct Row {
    typedef Real<T> R;
    const Problem& problem;
    long long bias, keep;
    int query;

    __device__ __forceinline__ Row(const Problem& p, long long head, int t) : problem(p), query(t) {
        const long long b = head / p.heads, h = head % p.heads;
        bias = b * p.bias_steps.b + h * p.bias_steps.h + t * p.bias_steps.t;
        keep = b * p.keep_steps.b + h * p.keep_steps.h + t * p.keep_steps.t;
    }

    __device__ __forceinline__ R score(R dot, int key) const {
        if (key >= problem.keys || query >= problem.queries || (problem.causal && key > query)) return -(R)INFINITY;
        const R score = dot * (R)problem.scale;
        if (!problem.bias) return score;
        const long long at = bias + key * problem.bias_steps.f;
        return score + (problem.wide_bias ? ((const R*)problem.bias)[at] : to_real(((const T*)problem.bias)[at]));
    }

    __device__ __forceinline__ R kept(int key) const {
        if (!problem.keep || key >= problem.keys || query >= problem.queries) return (R)1;
        return problem.keep[keep + key * problem.keep_steps.f] ? (R)problem.keep_scale : (R)0;
    }
};

// What the scores of a row are compared with: its maximum, or 0 if it sees nothing.
template <typename R> __device__ __forceinline__ R reference_of(R best) { return best == -(R)INFINITY ? (R)0 : best; }

}  // namespace lucid

#endif  // LUCID_ATTENTION_CUH
