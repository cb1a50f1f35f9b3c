// Adam and AdamW of many parameters at once, in place.
//
//     g = ±g + weight_decay * p                      (minus: maximize)
//     p = shrink * p                                 (AdamW: 1 - lr * decay)
//     m = m + (1 - beta1) * (g - m)
//     v = beta2 * v + (1 - beta2) * g^2;  top = max(top, v) stands in for v with amsgrad
//     p = p - size * m / (sqrt(v) + eps)
//
// size and eps hold the corrections for the first steps: size = lr * sqrt(1 - beta2^t) / (1 - beta1^t), and eps times
// sqrt(1 - beta2^t). Rows of the table: gradient g, parameter p, m, v, and top with amsgrad (DEPTH = 5) or not (4).
// Numbers come by value, or from numbers_t (of each row its own), which adam_numbers makes; where `found` is set,
// nothing changes. Launch: one block for each chunk of the table, see tensors.cuh, and numbers.cuh.

#include "numbers.cuh"
#include "tensors.cuh"

namespace lucid {

struct AdamNumbers {
    double beta1, beta2, size, eps, shrink, weight_decay;
};

template <typename T, int DEPTH>
__global__ void adam(Tensors<DEPTH> tensors, int rows, int chunk, const float* found, const AdamNumbers* numbers_t,
                     AdamNumbers numbers, int maximize) {
    typedef Real<T> R;
    if (found && *found != 0) return;
    if (numbers_t) numbers = numbers_t[chunk_of_block(tensors, rows, chunk).row];
    const R fresh1 = (R)(1 - numbers.beta1), kept2 = (R)numbers.beta2, fresh2 = (R)(1 - numbers.beta2);
    const R size = (R)numbers.size, eps = (R)numbers.eps, shrink = (R)numbers.shrink;
    const R weight_decay = (R)numbers.weight_decay;
    for_each_in_chunk<T, DEPTH, 1>(tensors, rows, chunk, [&](R(&value_d)[DEPTH]) {
        const R gradient = descent(value_d[0], value_d[1], weight_decay, maximize);
        const R mean = value_d[2] + fresh1 * (gradient - value_d[2]);
        R square = kept2 * value_d[3] + fresh2 * gradient * gradient;
        value_d[2] = mean;
        value_d[3] = square;
        if constexpr (DEPTH == 5) {
            // a NaN stays, as in np.maximum
            square = value_d[4] > square || value_d[4] != value_d[4] ? value_d[4] : square;
            value_d[4] = square;
        }
        value_d[1] = shrink * value_d[1] - size * (mean / (sqrt(square) + eps));
    });
}

struct AdamSettings {
    double lr, beta1, beta2, eps, weight_decay, amsgrad, maximize, decoupled_weight_decay;
};

__global__ void adam_numbers(Scalars<1> state, int rows, const float* found, const AdamSettings* settings,
                             AdamNumbers* numbers_t) {
    const AdamSettings s = *settings;
    const bool apart = s.decoupled_weight_decay != 0;
    LUCID_FOR(t, rows) {
        const double step = counted(state.scalar_kt[0][t], found);
        const double root = sqrt(1 - pow(s.beta2, step));
        numbers_t[t] = AdamNumbers{s.beta1,
                                   s.beta2,
                                   s.lr * root / (1 - pow(s.beta1, step)),
                                   s.eps * root,
                                   apart ? 1 - s.lr * s.weight_decay : 1,
                                   apart ? 0 : s.weight_decay};
    }
}

}  // namespace lucid
