// RMSprop of many parameters at once, in place.
//
//     g = ±g + weight_decay * p                      (minus: maximize)
//     v = alpha * v + (1 - alpha) * g^2
//     a = a + (1 - alpha) * (g - a)                  (centered)
//     d = g / (sqrt(v) + eps)                        (centered: v - a^2 stands in for v)
//     b = momentum * b + d;  b stands in for d       (with a buffer)
//     p = p - lr * d
//
// Rows of the table: gradient g, parameter p, v, the buffer b of momentum if there is one, and a if centered: DEPTH is
// 3, 4 or 5. Numbers come by value, or from numbers_t (of each row its own), which rmsprop_numbers makes; where `found`
// is set, nothing changes. Launch: one block for each chunk of the table, see tensors.cuh, and numbers.cuh.

#include "numbers.cuh"
#include "tensors.cuh"

namespace lucid {

struct RmspropNumbers {
    double lr, alpha, eps, weight_decay, momentum;
};

template <typename T, int DEPTH>
__global__ void rmsprop(Tensors<DEPTH> tensors, int rows, int chunk, const float* found,
                        const RmspropNumbers* numbers_t, RmspropNumbers numbers, int centered, int maximize) {
    typedef Real<T> R;
    if (found && *found != 0) return;
    if (numbers_t) numbers = numbers_t[chunk_of_block(tensors, rows, chunk).row];
    const R lr = (R)numbers.lr, alpha = (R)numbers.alpha, fresh = (R)(1 - numbers.alpha), eps = (R)numbers.eps;
    const R weight_decay = (R)numbers.weight_decay, momentum = (R)numbers.momentum;
    for_each_in_chunk<T, DEPTH, 1>(tensors, rows, chunk, [&](R(&value_d)[DEPTH]) {
        const R gradient = descent(value_d[0], value_d[1], weight_decay, maximize);
        R square = alpha * value_d[2] + fresh * gradient * gradient;
        value_d[2] = square;
        if (DEPTH == 5 || (DEPTH == 4 && centered)) {
            R& mean = value_d[DEPTH - 1];
            mean += fresh * (gradient - mean);
            square -= mean * mean;
        }
        R step = gradient / (sqrt(square) + eps);
        if (DEPTH == 5 || (DEPTH == 4 && !centered)) {
            step = momentum * value_d[3 % DEPTH] + step;
            value_d[3 % DEPTH] = step;
        }
        value_d[1] -= lr * step;
    });
}

struct RmspropSettings {
    double lr, alpha, eps, weight_decay, momentum, centered, maximize, capturable;
};

__global__ void rmsprop_numbers(Scalars<1> state, int rows, const float* found, const RmspropSettings* settings,
                                RmspropNumbers* numbers_t) {
    const RmspropSettings s = *settings;
    LUCID_FOR(t, rows) {
        counted(state.scalar_kt[0][t], found);
        numbers_t[t] = RmspropNumbers{s.lr, s.alpha, s.eps, s.weight_decay, s.momentum};
    }
}

}  // namespace lucid
