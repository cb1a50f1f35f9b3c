// What a step takes beside arrays, in device memory, so that a graph finds there at each launch what has changed.
//
//     settings    of a group, in the order in which its optimizer declares them; write_settings puts them there
//     scalar_kt   the numbers of each row's state, the first of which counts steps; null for rows that have none
//     numbers_t   what the elements of each row are changed by: of an optimizer's own kernel, from the two above
//
// Launch: any grid and block over the rows. Axes: k = number of the state, t = row.

#ifndef LUCID_NUMBERS_CUH
#define LUCID_NUMBERS_CUH

#include "lucid.cuh"

namespace lucid {

// Rows of one launch: so many that addresses and the rest stay below the 4 KiB of a launch's parameters.
__host__ __device__ constexpr int most_counted(int scalars) { return 480 / scalars; }

template <int SCALARS> struct Scalars {
    static constexpr int CAPACITY = most_counted(SCALARS);
    float* scalar_kt[SCALARS][CAPACITY];
};

// The step that a row makes: one more than it has made, which is kept, but not where `found` is set. Without a count
// it is infinity, which is what corrections for the first steps converge to.
__device__ __forceinline__ double counted(float* step, const float* found) {
    if (!step) return (double)INFINITY;
    if (found && *found != 0) return *step;
    return *step += 1;
}

// Keeps what another number of a row's state becomes, but not where `found` is set.
__device__ __forceinline__ void keep(float* scalar, float value, const float* found) {
    if (!(found && *found != 0)) *scalar = value;
}

}  // namespace lucid

#endif  // LUCID_NUMBERS_CUH
