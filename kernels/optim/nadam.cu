// NAdam of many parameters at once, in place.
//
//     g = ±g + weight_decay * p                      (minus: maximize)
//     p = shrink * p                                 (decoupled: 1 - lr * decay)
//     m = m + (1 - beta1) * (g - m)
//     v = beta2 * v + (1 - beta2) * g^2
//     p = p - (of_grad * g + of_mean * m) / (sqrt(v) + eps)
//
// At step t: of_grad = lr * root * (1 - mu_t) / (1 - product), of_mean = lr * root * mu_t+1 / (1 - product * mu_t+1),
// and eps times root, with root = sqrt(1 - beta2^t), mu_t = beta1 * (1 - 0.96^(t * momentum_decay) / 2), and the product
// of all mu so far, which is kept. Rows of the table: gradient g, parameter p, m, v. Numbers come by value, or from
// numbers_t (of each row its own), which nadam_numbers makes; where `found` is set, nothing changes. Launch: one block
// for each chunk of the table, see tensors.cuh, and numbers.cuh.

#include "numbers.cuh"
#include "tensors.cuh"

namespace lucid {

struct NadamNumbers {
    double beta1, beta2, of_grad, of_mean, eps, shrink, weight_decay;
};

template <typename T, int DEPTH>
__global__ void nadam(Tensors<DEPTH> tensors, int rows, int chunk, const float* found, const NadamNumbers* numbers_t,
                      NadamNumbers numbers, int maximize) {
    typedef Real<T> R;
    if (found && *found != 0) return;
    if (numbers_t) numbers = numbers_t[chunk_of_block(tensors, rows, chunk).row];
    const R fresh1 = (R)(1 - numbers.beta1), kept2 = (R)numbers.beta2, fresh2 = (R)(1 - numbers.beta2);
    const R of_grad = (R)numbers.of_grad, of_mean = (R)numbers.of_mean, eps = (R)numbers.eps;
    const R shrink = (R)numbers.shrink, weight_decay = (R)numbers.weight_decay;
    for_each_in_chunk<T, DEPTH, 1>(tensors, rows, chunk, [&](R(&value_d)[DEPTH]) {
        const R gradient = descent(value_d[0], value_d[1], weight_decay, maximize);
        const R mean = value_d[2] + fresh1 * (gradient - value_d[2]);
        const R square = kept2 * value_d[3] + fresh2 * gradient * gradient;
        value_d[2] = mean;
        value_d[3] = square;
        value_d[1] = shrink * value_d[1] - (of_grad * gradient + of_mean * mean) / (sqrt(square) + eps);
    });
}

struct NadamSettings {
    double lr, beta1, beta2, eps, weight_decay, momentum_decay, decoupled_weight_decay, maximize, capturable;
};

__global__ void nadam_numbers(Scalars<2> state, int rows, const float* found, const NadamSettings* settings,
                              NadamNumbers* numbers_t) {
    const NadamSettings s = *settings;
    const bool apart = s.decoupled_weight_decay != 0;
    LUCID_FOR(t, rows) {
        const double step = counted(state.scalar_kt[0][t], found);
        const double momentum = s.beta1 * (1 - 0.5 * pow(0.96, step * s.momentum_decay));
        const double following = s.beta1 * (1 - 0.5 * pow(0.96, (step + 1) * s.momentum_decay));
        const float product = *state.scalar_kt[1][t] * (float)momentum;
        const double root = sqrt(1 - pow(s.beta2, step));
        keep(state.scalar_kt[1][t], product, found);
        numbers_t[t] = NadamNumbers{s.beta1,
                                    s.beta2,
                                    s.lr * root * (1 - momentum) / (1 - (double)product),
                                    s.lr * root * following / (1 - product * following),
                                    s.eps * root,
                                    apart ? 1 - s.lr * s.weight_decay : 1,
                                    apart ? 0 : s.weight_decay};
    }
}

}  // namespace lucid
