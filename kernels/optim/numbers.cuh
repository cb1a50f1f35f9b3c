// What a step takes beside arrays, in device memory, so that a graph finds there at each launch what has changed.
//
//     settings    of a group, in the order in which its optimizer declares them; write_settings puts them there
//     step_t      the count of each row, null for rows that count nothing
//     numbers_t   what the elements of each row are changed by: of an optimizer's own kernel, from the two above
//
// Launch: any grid and block over the rows. Axes: t = row.

#ifndef LUCID_NUMBERS_CUH
#define LUCID_NUMBERS_CUH

#include "lucid.cuh"

namespace lucid {

// Rows of one launch: so many that addresses and the rest stay below the 4 KiB of a launch's parameters.
constexpr int MOST_COUNTED = 480;

struct Steps {
    float* step_t[MOST_COUNTED];
};

// The step that a row makes: one more than it has made, which is kept, but not where `found` is set. Without a count
// it is infinity, which is what corrections for the first steps converge to.
__device__ __forceinline__ double counted(float* step, const float* found) {
    if (!step) return (double)INFINITY;
    if (found && *found != 0) return *step;
    return *step += 1;
}

}  // namespace lucid

#endif  // LUCID_NUMBERS_CUH
