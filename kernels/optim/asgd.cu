// Averaged stochastic gradient descent of many parameters at once, in place.
//
//     g = ±g + weight_decay * p                      (minus: maximize)
//     p = shrink * p - size * g                      shrink = 1 - lambd * size
//     ax = ax + share * (p - ax)                     (share = 1: p)
//
// size and share are the numbers eta and mu of the state, which behind step t become lr / (1 + lambd * lr * t)^alpha
// and 1 / max(1, t - t0). Rows of the table: gradient g, parameter p, ax. Numbers come by value, or from numbers_t (of
// each row its own), which asgd_numbers makes; where `found` is set, nothing changes. Launch: one block for each chunk
// of the table, see tensors.cuh, and numbers.cuh.

#include "numbers.cuh"
#include "tensors.cuh"

namespace lucid {

struct AsgdNumbers {
    double shrink, size, share, weight_decay;
};

template <typename T, int DEPTH>
__global__ void asgd(Tensors<DEPTH> tensors, int rows, int chunk, const float* found, const AsgdNumbers* numbers_t,
                     AsgdNumbers numbers, int maximize) {
    typedef Real<T> R;
    if (found && *found != 0) return;
    if (numbers_t) numbers = numbers_t[chunk_of_block(tensors, rows, chunk).row];
    const R shrink = (R)numbers.shrink, size = (R)numbers.size, share = (R)numbers.share;
    const R weight_decay = (R)numbers.weight_decay;
    for_each_in_chunk<T, DEPTH, 1>(tensors, rows, chunk, [&](R(&value_d)[DEPTH]) {
        const R gradient = descent(value_d[0], value_d[1], weight_decay, maximize);
        const R param = shrink * value_d[1] - size * gradient;
        value_d[1] = param;
        value_d[2] = share == 1 ? param : value_d[2] + share * (param - value_d[2]);
    });
}

struct AsgdSettings {
    double lr, lambd, alpha, t0, weight_decay, maximize, capturable;
};

__global__ void asgd_numbers(Scalars<3> state, int rows, const float* found, const AsgdSettings* settings,
                             AsgdNumbers* numbers_t) {
    const AsgdSettings s = *settings;
    LUCID_FOR(t, rows) {
        const double step = counted(state.scalar_kt[0][t], found);
        const double size = *state.scalar_kt[1][t], share = *state.scalar_kt[2][t];
        const double behind = step - s.t0;
        numbers_t[t] = AsgdNumbers{1 - s.lambd * size, size, share, s.weight_decay};
        keep(state.scalar_kt[1][t], (float)(s.lr / pow(1 + s.lambd * s.lr * step, s.alpha)), found);
        keep(state.scalar_kt[2][t], (float)(1 / (behind > 1 ? behind : 1.0)), found);
    }
}

}  // namespace lucid
