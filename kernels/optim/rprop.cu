// Rprop of many parameters at once, in place.
//
//     g = ±g                                         (minus: maximize)
//     s = s * (plus where g * before > 0, minus where it is below 0, or 1), from smallest to largest
//     g = 0 where g * before < 0
//     p = p - s * sign(g)                            sign(NaN) = 0
//     before = g
//
// Rows of the table: gradient g, parameter p, before, s. Numbers come by value, or from numbers_t (of each row its
// own), which rprop_numbers makes; where `found` is set, nothing changes. Launch: one block for each chunk of the table,
// see tensors.cuh, and numbers.cuh.

#include "numbers.cuh"
#include "tensors.cuh"

namespace lucid {

struct RpropNumbers {
    double minus, plus, smallest, largest;
};

template <typename T, int DEPTH>
__global__ void rprop(Tensors<DEPTH> tensors, int rows, int chunk, const float* found, const RpropNumbers* numbers_t,
                      RpropNumbers numbers, int maximize) {
    typedef Real<T> R;
    if (found && *found != 0) return;
    if (numbers_t) numbers = numbers_t[chunk_of_block(tensors, rows, chunk).row];
    const R minus = (R)numbers.minus, plus = (R)numbers.plus;
    const R smallest = (R)numbers.smallest, largest = (R)numbers.largest;
    for_each_in_chunk<T, DEPTH, 1>(tensors, rows, chunk, [&](R(&value_d)[DEPTH]) {
        R gradient = maximize ? -value_d[0] : value_d[0];
        const R product = gradient * value_d[2];
        R size = value_d[3] * (product > 0 ? plus : product < 0 ? minus : (R)1);
        size = size < smallest ? smallest : size;  // a NaN stays
        size = size > largest ? largest : size;
        if (product < 0) gradient = 0;
        value_d[2] = gradient;
        value_d[3] = size;
        value_d[1] -= size * (R)((gradient > 0) - (gradient < 0));
    });
}

struct RpropSettings {
    double lr, minus, plus, smallest, largest, maximize, capturable;
};

__global__ void rprop_numbers(Scalars<1> state, int rows, const float* found, const RpropSettings* settings,
                              RpropNumbers* numbers_t) {
    const RpropSettings s = *settings;
    LUCID_FOR(t, rows) {
        counted(state.scalar_kt[0][t], found);
        numbers_t[t] = RpropNumbers{s.minus, s.plus, s.smallest, s.largest};
    }
}

}  // namespace lucid
