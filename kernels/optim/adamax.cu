// Adamax of many parameters at once, in place.
//
//     g = ±g + weight_decay * p                      (minus: maximize)
//     m = m + (1 - beta1) * (g - m)
//     u = max(beta2 * u, |g| + eps)
//     p = p - size * m / u                           size = lr / (1 - beta1^t) at step t
//
// Rows of the table: gradient g, parameter p, m, u. Numbers come by value, or from numbers_t (of each row its own),
// which adamax_numbers makes; where `found` is set, nothing changes. Launch: one block for each chunk of the table, see
// tensors.cuh, and numbers.cuh.

#include "numbers.cuh"
#include "tensors.cuh"

namespace lucid {

struct AdamaxNumbers {
    double beta1, beta2, size, eps, weight_decay;
};

template <typename T, int DEPTH>
__global__ void adamax(Tensors<DEPTH> tensors, int rows, int chunk, const float* found, const AdamaxNumbers* numbers_t,
                       AdamaxNumbers numbers, int maximize) {
    typedef Real<T> R;
    if (found && *found != 0) return;
    if (numbers_t) numbers = numbers_t[chunk_of_block(tensors, rows, chunk).row];
    const R fresh1 = (R)(1 - numbers.beta1), kept2 = (R)numbers.beta2, size = (R)numbers.size, eps = (R)numbers.eps;
    const R weight_decay = (R)numbers.weight_decay;
    for_each_in_chunk<T, DEPTH, 1>(tensors, rows, chunk, [&](R(&value_d)[DEPTH]) {
        const R gradient = descent(value_d[0], value_d[1], weight_decay, maximize);
        const R mean = value_d[2] + fresh1 * (gradient - value_d[2]);
        const R before = kept2 * value_d[3], now = (gradient < 0 ? -gradient : gradient) + eps;
        const R largest = before > now || before != before ? before : now;  // a NaN stays, as in np.maximum
        value_d[2] = mean;
        value_d[3] = largest;
        value_d[1] -= size * (mean / largest);
    });
}

struct AdamaxSettings {
    double lr, beta1, beta2, eps, weight_decay, maximize, capturable;
};

__global__ void adamax_numbers(Scalars<1> state, int rows, const float* found, const AdamaxSettings* settings,
                               AdamaxNumbers* numbers_t) {
    const AdamaxSettings s = *settings;
    LUCID_FOR(t, rows) {
        const double step = counted(state.scalar_kt[0][t], found);
        numbers_t[t] = AdamaxNumbers{s.beta1, s.beta2, s.lr / (1 - pow(s.beta1, step)), s.eps, s.weight_decay};
    }
}

}  // namespace lucid
