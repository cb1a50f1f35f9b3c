// RAdam of many parameters at once, in place.
//
//     g = ±g + weight_decay * p                      (minus: maximize)
//     p = shrink * p                                 (decoupled: 1 - lr * decay)
//     m = m + (1 - beta1) * (g - m)
//     v = beta2 * v + (1 - beta2) * g^2
//     p = p - size * m / (sqrt(v) + eps)             (without the divisor unless `divides`)
//
// At step t, with rho = longest - 2 t beta2^t / (1 - beta2^t) and longest = 2 / (1 - beta2) - 1: size is
// lr / (1 - beta1^t), and where rho > 5, which is when v divides, that times sqrt(1 - beta2^t) and the root of
// (rho - 4) (rho - 2) longest / ((longest - 4) (longest - 2) rho). Rows of the table: gradient g, parameter p, m, v.
// Numbers come by value, or from numbers_t (of each row its own), which radam_numbers makes; where `found` is set,
// nothing changes. Launch: one block for each chunk of the table, see tensors.cuh, and numbers.cuh.

#include "numbers.cuh"
#include "tensors.cuh"

namespace lucid {

struct RadamNumbers {
    double beta1, beta2, size, divides, eps, shrink, weight_decay;
};

template <typename T, int DEPTH>
__global__ void radam(Tensors<DEPTH> tensors, int rows, int chunk, const float* found, const RadamNumbers* numbers_t,
                      RadamNumbers numbers, int maximize) {
    typedef Real<T> R;
    if (found && *found != 0) return;
    if (numbers_t) numbers = numbers_t[chunk_of_block(tensors, rows, chunk).row];
    const R fresh1 = (R)(1 - numbers.beta1), kept2 = (R)numbers.beta2, fresh2 = (R)(1 - numbers.beta2);
    const R size = (R)numbers.size, eps = (R)numbers.eps, shrink = (R)numbers.shrink;
    const R weight_decay = (R)numbers.weight_decay;
    const bool divides = numbers.divides != 0;
    for_each_in_chunk<T, DEPTH, 1>(tensors, rows, chunk, [&](R(&value_d)[DEPTH]) {
        const R gradient = descent(value_d[0], value_d[1], weight_decay, maximize);
        const R mean = value_d[2] + fresh1 * (gradient - value_d[2]);
        const R square = kept2 * value_d[3] + fresh2 * gradient * gradient;
        value_d[2] = mean;
        value_d[3] = square;
        value_d[1] = shrink * value_d[1] - size * (divides ? mean / (sqrt(square) + eps) : mean);
    });
}

struct RadamSettings {
    double lr, beta1, beta2, eps, weight_decay, maximize, decoupled_weight_decay, capturable;
};

__global__ void radam_numbers(Scalars<1> state, int rows, const float* found, const RadamSettings* settings,
                              RadamNumbers* numbers_t) {
    const RadamSettings s = *settings;
    const bool apart = s.decoupled_weight_decay != 0;
    const double longest = 2 / (1 - s.beta2) - 1;
    LUCID_FOR(t, rows) {
        const double step = counted(state.scalar_kt[0][t], found);
        const double left = pow(s.beta2, step);
        const double length = longest - 2 * step * left / (1 - left);
        const bool divides = length > 5;
        double size = s.lr / (1 - pow(s.beta1, step));
        if (divides) {
            const double ratio = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length);
            size *= sqrt(ratio * (1 - left));
        }
        numbers_t[t] = RadamNumbers{s.beta1,
                                    s.beta2,
                                    size,
                                    divides ? 1.0 : 0.0,
                                    s.eps,
                                    apart ? 1 - s.lr * s.weight_decay : 1,
                                    apart ? 0 : s.weight_decay};
    }
}

}  // namespace lucid
