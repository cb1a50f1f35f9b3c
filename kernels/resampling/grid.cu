// Images at the points of a grid, and the gradients: lucid/ops/resampling/grid_primitives.py has the formulas.
//
//     grid_sample   out_ncp = sum over elements e near point p of weight_npe x_nce
//     grid_spread   dx_nce += weight_npe g_ncp, by atomics: the order of additions, and so the last bits, may change
//     grid_drift    dgrid_npd = sum over c, e of g_ncp x_nce weight_npe, with dimension d differentiated once more
//
// n: image, c: channel, e = (z, y, x): element, p: point, d: number of a point, that of x first. Images of two
// dimensions have one element along z. A weight that is zero is skipped with what it weighs.
// MODE: which elements are near. Launch: a thread for each (n, p); the channels of grid_sample and grid_spread are
// shared by the blocks along y.

#include "lucid.cuh"

namespace lucid {

constexpr int BILINEAR = 0;
constexpr int NEAREST = 1;
constexpr int BICUBIC = 2;
constexpr int ZEROS = 0;
constexpr int BORDER = 1;
constexpr int REFLECTION = 2;

// How one dimension is read; lucid/ops/resampling/grid_primitives.py gives the members in this order.
struct Read {
    int size, order;
};

// Of x, y, z; dims: how many there are.
struct Reader {
    Read x, y, z;
    int dims, padding, aligned;

    __device__ __forceinline__ long long volume() const { return (long long)x.size * y.size * z.size; }
};

// One copy of the code, as it is long and reflection reads up to eight positions a point.
template <typename R> __device__ __noinline__ R modulo(R a, R b) { return fmod(a, b); }

// Brings a position outside of the elements inside, and multiplies slope by how fast it moves then: 1, -1 or 0.
template <typename R> __device__ __forceinline__ R inside(R position, int size, int padding, int aligned, R& slope) {
    if (padding == ZEROS) return position;
    if (padding == REFLECTION) {
        const R least = aligned ? (R)0 : (R)-0.5, span = aligned ? size - 1 : size;
        if (span == 0) {
            slope = 0;
            return 0;
        }
        const R distance = position < least ? least - position : position - least;
        const R extra = modulo(distance, span), flips = floor(distance / span);
        const bool odd = flips - 2 * floor(flips / 2) == 1;
        if (odd != position < least) slope = -slope;
        position = (odd ? span - extra : extra) + least;
    }
    if (!(position > 0 && position < size - 1)) slope = 0;
    if (!(position > 0)) return 0;  // NaN, too
    return position < size - 1 ? position : (R)(size - 1);
}

// The elements near a place in one dimension, and their weights: those outside have the weight 0.
template <typename R, int MODE> struct Near {
    static constexpr int COUNT = MODE == BILINEAR ? 2 : MODE == NEAREST ? 1 : 4;
    int element_k[COUNT];
    R weight_k[COUNT];

    // The one element of a dimension that is not there.
    __device__ __forceinline__ Near() {
        for (int k = 0; k < COUNT; ++k) {
            element_k[k] = 0;
            weight_k[k] = k == 0;
        }
    }

    __device__ __forceinline__ Near(R place, int size, int order, int padding, int aligned) {
        R slope = (aligned ? size - 1 : size) / (R)2, unused = 0;
        R position = (place + 1) * slope - (aligned ? (R)0 : (R)0.5);
        if (MODE != BICUBIC) position = inside(position, size, padding, aligned, slope);
        if (!(position < (R)1e9 && position > (R)-1e9)) {
            position = position > 0 ? size + (R)100 : (R)-100;
            slope = 0;
        }
        R first = MODE == NEAREST ? rint(position) : floor(position);
        const R between = position - first;
        if (MODE == BICUBIC) first -= 1;
        R factor = 1;
        for (int k = 0; k < order; ++k) factor *= slope;
#pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            R element = first + k;
            if (MODE == BICUBIC) element = inside(element, size, padding, aligned, unused);
            const bool is_there = element >= 0 && element <= size - 1;
            element_k[k] = is_there ? (int)element : 0;
            weight_k[k] = is_there ? factor * weight(between, k, order) : (R)0;
        }
    }

    __device__ __forceinline__ static R weight(R between, int k, int order) {
        if (MODE == NEAREST) return order == 0;
        if (MODE == BILINEAR) return order > 1 ? (R)0 : order == 1 ? (R)(2 * k - 1) : k ? between : 1 - between;
        const R a = (R)-0.75;
        const bool near = k == 1 || k == 2;
        const R side = k < 2 ? 1 : -1, x = (between - (k - 1)) * side;
        const R cube = near ? a + 2 : a, square = near ? -(a + 3) : -5 * a, line = near ? (R)0 : 8 * a;
        if (order == 0) return ((cube * x + square) * x + line) * x + (near ? (R)1 : -4 * a);
        if (order == 1) return side * ((3 * cube * x + 2 * square) * x + line);
        if (order == 2) return 6 * cube * x + 2 * square;
        return order == 3 ? side * 6 * cube : (R)0;
    }
};

// The elements near point i in each dimension; `once_more` is the dimension, x first, that is differentiated once more.
template <typename T, int MODE> struct Around {
    typedef Real<T> R;
    typedef Near<R, MODE> Along;
    // cubic convolution is for images
    static constexpr int DEEP = MODE == BICUBIC ? 1 : Along::COUNT;
    Along x, y, z;

    __device__ __forceinline__ Around(const T* grid_id, long long i, const Reader& read, int once_more) {
        const T* point_d = grid_id + i * read.dims;
        x = Along(to_real(point_d[0]), read.x.size, read.x.order + (once_more == 0), read.padding, read.aligned);
        y = Along(to_real(point_d[1]), read.y.size, read.y.order + (once_more == 1), read.padding, read.aligned);
        if (read.dims == 3)
            z = Along(to_real(point_d[2]), read.z.size, read.z.order + (once_more == 2), read.padding, read.aligned);
    }

    // Calls body(place of the element in its image, weight) for each element whose weight is not 0.
    template <typename Body> __device__ __forceinline__ void for_each(const Reader& read, Body body) const {
#pragma unroll
        for (int k = 0; k < DEEP; ++k) {
            if (z.weight_k[k] == 0) continue;
#pragma unroll
            for (int j = 0; j < Along::COUNT; ++j) {
                const R weight = z.weight_k[k] * y.weight_k[j];
                if (weight == 0) continue;
                const long long row = ((long long)z.element_k[k] * read.y.size + y.element_k[j]) * read.x.size;
#pragma unroll
                for (int i = 0; i < Along::COUNT; ++i) {
                    const R all = weight * x.weight_k[i];
                    if (all != 0) body(row + x.element_k[i], all);
                }
            }
        }
    }
};

template <typename T, int MODE>
__global__ void grid_sample(const T* x_nce, const T* grid_npd, T* out_ncp, long long images, int channels,
                            long long points, Reader read) {
    typedef Real<T> R;
    LUCID_FOR(i, images * points) {
        const long long n = i / points, p = i % points;
        const Around<T, MODE> near(grid_npd, i, read, -1);
        for (long long c = blockIdx.y; c < channels; c += gridDim.y) {
            const T* x_e = x_nce + (n * channels + c) * read.volume();
            R sum = 0;
            near.for_each(read, [&](long long e, R weight) { sum += weight * to_real(x_e[e]); });
            out_ncp[(n * channels + c) * points + p] = from_real<T>(sum);
        }
    }
}

template <typename T, int MODE>
__global__ void grid_spread(const T* g_ncp, const T* grid_npd, Real<T>* dx_nce, long long images, int channels,
                            long long points, Reader read) {
    typedef Real<T> R;
    LUCID_FOR(i, images * points) {
        const long long n = i / points, p = i % points;
        const Around<T, MODE> near(grid_npd, i, read, -1);
        for (long long c = blockIdx.y; c < channels; c += gridDim.y) {
            R* dx_e = dx_nce + (n * channels + c) * read.volume();
            const R g = to_real(g_ncp[(n * channels + c) * points + p]);
            near.for_each(read, [&](long long e, R weight) { atomicAdd(dx_e + e, weight * g); });
        }
    }
}

template <typename T, int MODE>
__global__ void grid_drift(const T* g_ncp, const T* x_nce, const T* grid_npd, T* dgrid_npd, long long images,
                           int channels, long long points, Reader read) {
    typedef Real<T> R;
    LUCID_FOR(i, images * points) {
        const long long n = i / points, p = i % points;
        for (int d = 0; d < read.dims; ++d) {
            const Around<T, MODE> near(grid_npd, i, read, d);
            R sum = 0;
            for (int c = 0; c < channels; ++c) {
                const T* x_e = x_nce + (n * channels + c) * read.volume();
                const R g = to_real(g_ncp[(n * channels + c) * points + p]);
                near.for_each(read, [&](long long e, R weight) { sum += weight * to_real(x_e[e]) * g; });
            }
            dgrid_npd[i * read.dims + d] = from_real<T>(sum);
        }
    }
}

}  // namespace lucid
