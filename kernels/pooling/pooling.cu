// The largest element and the mean of each window, and their gradients.
//
//     max_pool          value_ncyx = max over elements x_nchw of the window;  which_ncyx = the number of its place, the
//                       first if several are largest; a NaN wins, the last one if there are several
//     max_pool_grad     dx_nchw = sum of g_ncyx over windows whose `which` names the element
//     max_pool_select   out_ncyx = x_nchw at the place that `which` names; 0 for a window without elements
//     avg_pool          out_ncyx = (sum over elements of the window) / divisor
//     avg_pool_grad     dx_nchw = sum of g_ncyx / divisor over windows that meet the element
//     part_means        out_ncyx = mean of the elements of the part: adaptive pooling, see lucid/ops/pooling/adaptive.py; with `spread` its
//                       gradient, the sum of g / size of the part over the parts that hold the element
// divisor: the given number, or where that is 0 the elements in the window, with those in the padding or without.
//
// Gradients gather: one thread adds what one element receives, in the order of windows, without atomics. W: the integer
// that numbers places. LANES: neighbouring threads that share a window of avg_pool, 1, or 32 for large windows.
// Launch: see windows.cuh; avg_pool has LANES times as many pixels.

#include "windows.cuh"

namespace lucid {

template <typename T, typename W>
__global__ void max_pool(const T* x_nchw, T* value_ncyx, W* which_ncyx, long long planes, int channels, Steps steps,
                         Windows windows) {
    typedef Real<T> R;
    for_each_pixel(planes, windows.y.out, windows.x.out, [&](long long plane, int y, int x) {
        const T* image_hw = x_nchw + plane / channels * steps.n + plane % channels * steps.c;
        R best = -(R)INFINITY;
        int place = windows.y.first_place(y) * windows.x.kernel + windows.x.first_place(x);
        for_each_element(windows, y, x, [&](int h, int w, int number) {
            const R value = to_real(image_hw[h * steps.h + w * steps.w]);
            if (value > best || value != value) {
                best = value;
                place = number;
            }
        });
        const long long at = (plane * windows.y.out + y) * windows.x.out + x;
        value_ncyx[at] = from_real<T>(best);
        which_ncyx[at] = (W)place;
    });
}

template <typename T, typename W>
__global__ void max_pool_grad(const T* g_ncyx, const W* which_ncyx, T* dx_nchw, long long planes, int channels,
                              Steps steps, Windows windows) {
    typedef Real<T> R;
    for_each_pixel(planes, windows.y.size, windows.x.size, [&](long long plane, int h, int w) {
        const T* g_yx = g_ncyx + plane / channels * steps.n + plane % channels * steps.c;
        const W* which_yx = which_ncyx + plane * windows.y.out * windows.x.out;
        R sum = 0;
        for_each_window(windows, h, w, [&](int y, int x, int number) {
            if (which_yx[y * windows.x.out + x] == (W)number) sum += to_real(g_yx[y * steps.h + x * steps.w]);
        });
        dx_nchw[(plane * windows.y.size + h) * windows.x.size + w] = from_real<T>(sum);
    });
}

template <typename T, typename W>
__global__ void max_pool_select(const T* x_nchw, const W* which_ncyx, T* out_ncyx, long long planes, int channels,
                                Steps steps, Windows windows) {
    for_each_pixel(planes, windows.y.out, windows.x.out, [&](long long plane, int y, int x) {
        const T* image_hw = x_nchw + plane / channels * steps.n + plane % channels * steps.c;
        const long long at = (plane * windows.y.out + y) * windows.x.out + x;
        const int place = (int)which_ncyx[at];
        const int h = windows.y.begin(y) + place / windows.x.kernel * windows.y.dilation;
        const int w = windows.x.begin(x) + place % windows.x.kernel * windows.x.dilation;
        const bool inside = h >= 0 && h < windows.y.size && w >= 0 && w < windows.x.size;
        out_ncyx[at] = inside ? image_hw[h * steps.h + w * steps.w] : from_real<T>(0);
    });
}

template <typename R>
__device__ __forceinline__ R divisor_of(const Windows& windows, int y, int x, double fixed, bool padded) {
    return fixed != 0 ? (R)fixed : (R)windows.y.count(y, padded) * (R)windows.x.count(x, padded);
}

template <typename T, int LANES>
__global__ void avg_pool(const T* x_nchw, T* out_ncyx, long long planes, int channels, Steps steps, Windows windows,
                         double fixed, int padded) {
    typedef Real<T> R;
    for_each_pixel(planes, windows.y.out, windows.x.out * LANES, [&](long long plane, int y, int column) {
        const T* image_hw = x_nchw + plane / channels * steps.n + plane % channels * steps.c;
        const int x = column / LANES, lane = column % LANES;
        R sum = 0;
        if constexpr (LANES == 1) {
            for_each_element(windows, y, x,
                             [&](int h, int w, int) { sum += to_real(image_hw[h * steps.h + w * steps.w]); });
        } else {
            const int top = windows.y.begin(y), left = windows.x.begin(x);
            sum = warp_sum(gathered<1, 4, 1>(Adding<R>(), lane, windows.places(), LANES, [&](R& part, long long place) {
                const int number = (int)place, h = top + number / windows.x.kernel;
                const int w = left + number % windows.x.kernel;
                if (h >= 0 && h < windows.y.size && w >= 0 && w < windows.x.size)
                    part += to_real(image_hw[h * steps.h + w * steps.w]);
            }));
        }
        if (lane == 0)
            out_ncyx[(plane * windows.y.out + y) * windows.x.out + x] =
                from_real<T>(sum / divisor_of<R>(windows, y, x, fixed, padded));
    });
}

template <typename T>
__global__ void avg_pool_grad(const T* g_ncyx, T* dx_nchw, long long planes, int channels, Steps steps, Windows windows,
                              double fixed, int padded) {
    typedef Real<T> R;
    for_each_pixel(planes, windows.y.size, windows.x.size, [&](long long plane, int h, int w) {
        const T* g_yx = g_ncyx + plane / channels * steps.n + plane % channels * steps.c;
        R sum = 0;
        for_each_window(windows, h, w, [&](int y, int x, int) {
            sum += to_real(g_yx[y * steps.h + x * steps.w]) / divisor_of<R>(windows, y, x, fixed, padded);
        });
        dx_nchw[(plane * windows.y.size + h) * windows.x.size + w] = from_real<T>(sum);
    });
}

// Parts of nearly the same size along one dimension, which overlap where `parts` does not divide `size`. The parts that
// hold an element are the elements of that part where size and parts change places.
struct Parts {
    int size, parts;

    __device__ __forceinline__ int begin(int part) const { return (int)((long long)part * size / parts); }

    __device__ __forceinline__ int end(int part) const {
        return (int)(((long long)(part + 1) * size + parts - 1) / parts);
    }

    __device__ __forceinline__ Parts exchanged() const { return Parts{parts, size}; }

    __device__ __forceinline__ int count(int part) const { return end(part) - begin(part); }
};

template <typename T>
__global__ void part_means(const T* x_nchw, T* out_ncyx, long long planes, int channels, Steps steps, Parts rows,
                           Parts columns, int spread) {
    typedef Real<T> R;
    for_each_pixel(planes, rows.parts, columns.parts, [&](long long plane, int y, int x) {
        const T* image_hw = x_nchw + plane / channels * steps.n + plane % channels * steps.c;
        const Adding<R> op;
        R sum = gathered<1, 2, 1>(op, rows.begin(y), rows.end(y), 1, [&](R& lines, long long h) {
            lines += gathered<1, 3, 1>(op, columns.begin(x), columns.end(x), 1, [&](R& line, long long w) {
                const R value = to_real(image_hw[(int)h * steps.h + (int)w * steps.w]);
                line +=
                    spread ? value / ((R)rows.exchanged().count((int)h) * (R)columns.exchanged().count((int)w)) : value;
            });
        });
        if (!spread) sum /= (R)rows.count(y) * (R)columns.count(x);
        out_ncyx[(plane * rows.parts + y) * columns.parts + x] = from_real<T>(sum);
    });
}

}  // namespace lucid
