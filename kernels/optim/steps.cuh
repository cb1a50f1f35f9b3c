// What the kernels of optimizers' steps begin with; each is made of its optimizer's formula, in lucid/optim.
//
// A kernel changes rows of gradient, parameter and arrays of the state in place. Numbers come by value, or from numbers_t
// (of each row its own), which the kernel NAME_numbers makes; where `found` is set, nothing changes. Launch: one block
// for each chunk of the table, see tensors.cuh, and numbers.cuh.

#ifndef LUCID_STEPS_CUH
#define LUCID_STEPS_CUH

#include "elementwise.cuh"
#include "numbers.cuh"
#include "tensors.cuh"

namespace lucid {

// Whether this block's row makes a step; then its numbers are those of the row.
template <int DEPTH, typename Numbers>
__device__ __forceinline__ bool begins(const Tensors<DEPTH>& tensors, int rows, int chunk, const float* found,
                                       const Numbers* numbers_t, Numbers& numbers) {
    if (found && *found != 0) return false;
    if (numbers_t) numbers = numbers_t[chunk_of_block(tensors, rows, chunk).row];
    return true;
}

}  // namespace lucid

#endif  // LUCID_STEPS_CUH
