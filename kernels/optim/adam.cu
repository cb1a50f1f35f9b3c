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
// Launch: one block for each chunk of the table, see tensors.cuh.

#include "tensors.cuh"

namespace lucid {

template <typename T, int DEPTH>
__global__ void adam(Tensors<DEPTH> tensors, int rows, int chunk, double beta1, double beta2, double size_, double eps_,
                     double shrink_, double weight_decay_, int maximize) {
    typedef Real<T> R;
    const R fresh1 = (R)(1 - beta1), kept2 = (R)beta2, fresh2 = (R)(1 - beta2);
    const R size = (R)size_, eps = (R)eps_, shrink = (R)shrink_, weight_decay = (R)weight_decay_;
    for_each_in_chunk<T, DEPTH, 1>(tensors, rows, chunk, [&](R(&value_d)[DEPTH]) {
        R gradient = maximize ? -value_d[0] : value_d[0];
        if (weight_decay != 0) gradient += weight_decay * value_d[1];  // 0 times infinity would be NaN
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

}  // namespace lucid
