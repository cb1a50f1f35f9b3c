// What turns convolutions into matrix products, and convolutions of one channel a group, where there is no product.
//
// With k = (i, j) the place in the window, p = (y, x) the window, and columns_cknp = x_nc[h(y, i), w(x, j)], 0 outside:
//     forward                 out_nop = sum over c, k of weight_ock columns_cknp + bias_o
//     gradient of the input   dx_nchw = sum over k, p that meet (h, w) of (sum over o of weight_ock g_onp)
//     gradient of the weight  dw_ock = sum over n, p of g_onp columns_cknp
//
//     im2col            columns_cknp from x_nchw
//     col2im            dx_nchw from columns_cknp: each element gathers what it receives, without atomics
//     rearrange         out_abhw = x_abhw + bias_b, from any strides: exchanges images and channels
//     depthwise, depthwise_input_grad, depthwise_weight_grad: the three formulas where each output channel o sees only
//                       input channel c = o / multiplier; the last is one block for each (o, k)
//
// Launch: see windows.cuh. Planes are (c, n) for im2col, (n, c) or (n, o) elsewhere.

#include "windows.cuh"

namespace lucid {

template <typename T>
__global__ void im2col(const T* x_nchw, T* columns_cknp, int images, int channels, Steps steps, Windows windows) {
    const int area = windows.y.out * windows.x.out;
    const long long next_place = (long long)images * area;
    for_each_pixel((long long)channels * images, windows.y.out, windows.x.out, [&](long long plane, int y, int x) {
        const long long c = plane / images, n = plane % images;
        const T* image_hw = x_nchw + n * steps.n + c * steps.c;
        T* column_k = columns_cknp + (c * windows.places() * images + n) * area + y * windows.x.out + x;
        const int top = windows.y.begin(y), left = windows.x.begin(x);
        for (int i = 0; i < windows.y.kernel; ++i) {
            const int h = top + i * windows.y.dilation;
            const bool row = h >= 0 && h < windows.y.size;
            for (int j = 0; j < windows.x.kernel; ++j, column_k += next_place) {
                const int w = left + j * windows.x.dilation;
                *column_k = row && w >= 0 && w < windows.x.size ? image_hw[h * steps.h + w * steps.w] : from_real<T>(0);
            }
        }
    });
}

template <typename T>
__global__ void col2im(const T* columns_cknp, T* dx_nchw, int images, int channels, Windows windows) {
    typedef Real<T> R;
    const int area = windows.y.out * windows.x.out;
    const long long next_place = (long long)images * area;
    for_each_pixel((long long)images * channels, windows.y.size, windows.x.size, [&](long long plane, int h, int w) {
        const long long n = plane / channels, c = plane % channels;
        const T* column_kp = columns_cknp + (c * windows.places() * images + n) * area;
        R sum = 0;
        for_each_window(windows, h, w, [&](int y, int x, int place) {
            sum += to_real(column_kp[place * next_place + y * windows.x.out + x]);
        });
        dx_nchw[(plane * windows.y.size + h) * windows.x.size + w] = from_real<T>(sum);
    });
}

template <typename T>
__global__ void rearrange(const T* x_abhw, const T* bias_b, T* out_abhw, long long planes, int inner, int rows,
                          int columns, Steps steps) {
    for_each_pixel(planes, rows, columns, [&](long long plane, int h, int w) {
        const long long a = plane / inner, b = plane % inner;
        const T value = x_abhw[a * steps.n + b * steps.c + h * steps.h + w * steps.w];
        out_abhw[(plane * rows + h) * columns + w] = bias_b ? from_real<T>(to_real(value) + to_real(bias_b[b])) : value;
    });
}

template <typename T>
__global__ void depthwise(const T* x_nchw, const T* weight_ok, const T* bias_o, T* out_nop, int images, int channels,
                          int multiplier, Steps steps, Windows windows) {
    typedef Real<T> R;
    const int made = channels * multiplier;
    for_each_pixel((long long)images * made, windows.y.out, windows.x.out, [&](long long plane, int y, int x) {
        const long long n = plane / made, o = plane % made;
        const T* image_hw = x_nchw + n * steps.n + o / multiplier * steps.c;
        const T* weight_k = weight_ok + o * windows.places();
        R sum = bias_o ? to_real(bias_o[o]) : (R)0;
        for_each_element(windows, y, x, [&](int h, int w, int place) {
            sum += to_real(weight_k[place]) * to_real(image_hw[h * steps.h + w * steps.w]);
        });
        out_nop[(plane * windows.y.out + y) * windows.x.out + x] = from_real<T>(sum);
    });
}

// steps are those of g_nop.
template <typename T>
__global__ void depthwise_input_grad(const T* g_nop, const T* weight_ok, T* dx_nchw, int images, int channels,
                                     int multiplier, Steps steps, Windows windows) {
    typedef Real<T> R;
    for_each_pixel((long long)images * channels, windows.y.size, windows.x.size, [&](long long plane, int h, int w) {
        const long long n = plane / channels, c = plane % channels;
        R sum = 0;
        for (int m = 0; m < multiplier; ++m) {
            const long long o = c * multiplier + m;
            const T* g_p = g_nop + n * steps.n + o * steps.c;
            const T* weight_k = weight_ok + o * windows.places();
            for_each_window(windows, h, w, [&](int y, int x, int place) {
                sum += to_real(weight_k[place]) * to_real(g_p[y * steps.h + x * steps.w]);
            });
        }
        dx_nchw[(plane * windows.y.size + h) * windows.x.size + w] = from_real<T>(sum);
    });
}

template <typename T>
__global__ void depthwise_weight_grad(const T* g_nop, const T* x_nchw, T* dw_ok, int images, int multiplier,
                                      Steps g_steps, Steps x_steps, Windows windows) {
    typedef Real<T> R;
    const int place = (int)blockIdx.x, o = (int)blockIdx.y;
    const int i = place / windows.x.kernel, j = place % windows.x.kernel, area = windows.y.out * windows.x.out;
    const T* g_np = g_nop + o * g_steps.c;
    const T* x_nhw = x_nchw + o / multiplier * x_steps.c;
    const auto add = [&](R& sum, long long at) {
        const long long n = at / area;
        const int p = (int)(at % area), y = p / windows.x.out, x = p % windows.x.out;
        const int h = windows.y.begin(y) + i * windows.y.dilation, w = windows.x.begin(x) + j * windows.x.dilation;
        if (h >= 0 && h < windows.y.size && w >= 0 && w < windows.x.size)
            sum += to_real(g_np[n * g_steps.n + y * g_steps.h + x * g_steps.w]) *
                   to_real(x_nhw[n * x_steps.n + h * x_steps.h + w * x_steps.w]);
    };
    const R sum = block_sum(gathered(Adding<R>(), threadIdx.x, (long long)images * area, blockDim.x, add));
    if (threadIdx.x == 0) dw_ok[(long long)o * windows.places() + place] = from_real<T>(sum);
}

}  // namespace lucid
