// Numbers that the host writes to device memory without a copy: they travel by value in a launch's parameters.
//
// Launch: one block.

#include "numbers.cuh"

namespace lucid {

constexpr int MOST_SETTINGS = 32;

struct Settings {
    double value_n[MOST_SETTINGS];
};

__global__ void write_settings(Settings settings, int count, double* out) {
    for (int n = threadIdx.x; n < count; n += blockDim.x) out[n] = settings.value_n[n];
}

}  // namespace lucid
