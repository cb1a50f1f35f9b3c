// Images, sequences and volumes of another size: for three dimensions what of one of them
// lucid/ops/resampling/interpolation.py says.
//
//     interpolate        out_pijk = sum over taps (z, y, x) of weight_iz weight_jy weight_kx x_pzyx
//     interpolate_grad   dx_pzyx = sum over i, j, k of weight_iz weight_jy weight_kx g_pijk
//
// p: plane, an image's channel. A weight that is zero is skipped with what it weighs, so that NaN and infinity stay
// where they are; a dimension of one element, in front where there are fewer than three, costs nothing.
// The gradient gathers: a thread adds up what its element has given, in the order of the result, without atomics.
//
// KIND: what one element of the result is made of, in one dimension:
//     KIND(axis, i)   first, the first element, and COUNT or count(), how many there are; those beyond the ends are the
//                     elements at the ends
//     weight(k)       of element first + k
//     reach(axis)     by how many elements, rounded up, the position of i and an element that it is made of may differ
// Positions are computed in the type of the sum, of nearest ones in float, as on the CPU.
// Launch: for_each_pixel over out_pijk, or dx_pzyx; see windows.cuh.

#include "windows.cuh"

namespace lucid {

constexpr int AREA = 0;
constexpr int LINEAR_FILTER = 1;
constexpr int CUBIC_FILTER = 2;

// One dimension; lucid/ops/resampling/interpolation.py gives the members in this order. inverse = 1 / scale,
// or 0 where all elements of the result are made of the same.
struct Resized {
    double scale, inverse, shift;
    int size, out, filter;

    __device__ __forceinline__ int inside(int element) const {
        return element < 0 ? 0 : element < size ? element : size - 1;
    }
};

// Keys' cubic convolution.
template <typename R> __device__ __forceinline__ R cubic_weight(R distance, R a) {
    const R x = distance < 0 ? -distance : distance;
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : (R)0;
}

template <typename R> __device__ __forceinline__ R clipped(R fraction) {
    return fraction < 0 ? (R)0 : fraction < 1 ? fraction : (R)1;
}

template <typename R> struct Nearest {
    int first;

    __device__ __forceinline__ Nearest(const Resized& axis, int i)
        : first(axis.inside((int)floorf(((float)i + (float)axis.shift) * (float)axis.scale))) {}
    __device__ __forceinline__ int count() const { return 1; }
    __device__ __forceinline__ R weight(int) const { return 1; }
    __device__ __forceinline__ static float reach(const Resized&) { return 1; }
};

template <typename R> struct Linear {
    int first;
    R beyond;

    __device__ __forceinline__ Linear(const Resized& axis, int i) {
        R position = (R)axis.scale * (i + (R)axis.shift) - (R)axis.shift;
        if (position < 0) position = 0;
        first = axis.inside((int)position);
        beyond = clipped(position - first);
    }
    __device__ __forceinline__ int count() const { return 2; }
    __device__ __forceinline__ R weight(int k) const { return k ? beyond : 1 - beyond; }
    __device__ __forceinline__ static float reach(const Resized&) { return 1; }
};

template <typename R> struct Cubic {
    int first;
    R beyond;

    __device__ __forceinline__ Cubic(const Resized& axis, int i) {
        const R position = (R)axis.scale * (i + (R)axis.shift) - (R)axis.shift;
        const int last = min((int)floor(position), axis.size - 1);
        first = last - 1;
        beyond = clipped(position - last);
    }
    __device__ __forceinline__ int count() const { return 4; }
    __device__ __forceinline__ R weight(int k) const { return cubic_weight(beyond - (k - 1), (R)-0.75); }
    __device__ __forceinline__ static float reach(const Resized&) { return 2; }
};

template <typename R> struct Filtered {
    int first, end, filter;
    R offset, narrow, factor;

    __device__ __forceinline__ Filtered(const Resized& axis, int i) : filter(axis.filter), offset(0), narrow(1) {
        if (filter == AREA) {
            first = (int)((long long)i * axis.size / axis.out);
            end = (int)(((long long)(i + 1) * axis.size + axis.out - 1) / axis.out);
            factor = (R)1 / (end - first);
            return;
        }
        const R wide = axis.scale > 1 ? (R)axis.scale : (R)1, half = (filter == LINEAR_FILTER ? 1 : 2) * wide;
        const R centre = (R)axis.scale * (i + (R)0.5);
        first = max((int)(centre - half + (R)0.5), 0);
        end = min((int)(centre + half + (R)0.5), axis.size);
        offset = first - centre + (R)0.5;
        narrow = 1 / wide;
        factor = 1;
        R sum = 0;
        for (int k = 0; k < count(); ++k) sum += weight(k);
        factor = 1 / sum;
    }
    __device__ __forceinline__ int count() const { return end - first; }
    __device__ __forceinline__ R weight(int k) const {
        if (filter == AREA) return factor;
        const R distance = (k + offset) * narrow;
        if (filter == CUBIC_FILTER) return factor * cubic_weight(distance, (R)-0.5);
        const R height = 1 - (distance < 0 ? -distance : distance);
        return height > 0 ? factor * height : (R)0;
    }
    __device__ __forceinline__ static float reach(const Resized& axis) {
        const float wide = axis.scale > 1 ? (float)axis.scale : 1.0f;
        return (axis.filter == CUBIC_FILTER ? 2 : 1) * wide + 1;
    }
};

template <typename T, template <typename> class KIND>
__global__ void interpolate(const T* x_pzyx, T* out_pijk, long long planes, Resized z, Resized y, Resized x) {
    typedef Real<T> R;
    for_each_pixel(planes, z.out * y.out, x.out, [&](long long plane, int row, int column) {
        const T* x_zyx = x_pzyx + plane * z.size * y.size * x.size;
        const KIND<R> at_z(z, row / y.out), at_y(y, row % y.out), at_x(x, column);
        R sum = 0;
        for (int i = 0; i < at_z.count(); ++i) {
            const R weight_z = at_z.weight(i);
            if (weight_z == 0) continue;
            const T* x_yx = x_zyx + z.inside(at_z.first + i) * y.size * x.size;
            for (int j = 0; j < at_y.count(); ++j) {
                const R weight_y = weight_z * at_y.weight(j);
                if (weight_y == 0) continue;
                const T* x_x = x_yx + y.inside(at_y.first + j) * x.size;
                R line = 0;
                for (int k = 0; k < at_x.count(); ++k) {
                    const R weight_x = at_x.weight(k);
                    if (weight_x != 0) line += weight_x * to_real(x_x[x.inside(at_x.first + k)]);
                }
                sum += weight_y * line;
            }
        }
        out_pijk[(plane * z.out * y.out + row) * x.out + column] = from_real<T>(sum);
    });
}

// The weight with which an element is in element i of the result.
template <typename R, template <typename> class KIND>
__device__ __forceinline__ R weight_in(const Resized& axis, int i, int element) {
    const KIND<R> at(axis, i);
    R sum = 0;
    for (int k = 0; k < at.count(); ++k)
        if (axis.inside(at.first + k) == element) sum += at.weight(k);
    return sum;
}

// The elements of the result that an element is in: from first to last, without those outside whose weight is zero.
template <typename R, template <typename> class KIND> struct Receivers {
    int first, last;

    __device__ __forceinline__ Receivers(const Resized& axis, int element) : first(0), last(axis.out - 1) {
        const float reach = KIND<R>::reach(axis), shift = (float)axis.shift, inverse = (float)axis.inverse;
        if (inverse == 0) return;
        // those that lie beyond an end are made of the element there
        if (element > 0) {
            const float least = floorf((element - reach) * inverse) - 2;
            if (least > first) first = (int)least;
        }
        if (element < axis.size - 1) {
            const float most = ceilf((element + reach + 2 * shift) * inverse) + 1;
            if (most < last) last = (int)most;
        }
        while (first <= last && weight_in<R, KIND>(axis, first, element) == 0) ++first;
        while (first <= last && weight_in<R, KIND>(axis, last, element) == 0) --last;
    }
};

template <typename T, template <typename> class KIND>
__global__ void interpolate_grad(const T* g_pijk, T* dx_pzyx, long long planes, Resized z, Resized y, Resized x) {
    typedef Real<T> R;
    for_each_pixel(planes, z.size * y.size, x.size, [&](long long plane, int row, int column) {
        const T* g_ijk = g_pijk + plane * z.out * y.out * x.out;
        const int deep = row / y.size, high = row % y.size;
        const Receivers<R, KIND> of_z(z, deep), of_y(y, high), of_x(x, column);
        R sum = 0;
        for (int i = of_z.first; i <= of_z.last; ++i) {
            const R weight_z = weight_in<R, KIND>(z, i, deep);
            if (weight_z == 0) continue;
            for (int j = of_y.first; j <= of_y.last; ++j) {
                const R weight_y = weight_z * weight_in<R, KIND>(y, j, high);
                if (weight_y == 0) continue;
                const T* g_k = g_ijk + (i * y.out + j) * x.out;
                R line = 0;
                for (int k = of_x.first; k <= of_x.last; ++k) {
                    const R weight_x = weight_in<R, KIND>(x, k, column);
                    if (weight_x != 0) line += weight_x * to_real(g_k[k]);
                }
                sum += weight_y * line;
            }
        }
        dx_pzyx[(plane * z.size * y.size + row) * x.size + column] = from_real<T>(sum);
    });
}

}  // namespace lucid
