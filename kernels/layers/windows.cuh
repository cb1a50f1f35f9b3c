// Sliding windows over images, for convolutions and pooling: which elements a window meets, and which windows meet an
// element. The device twin of lucid/ops/layers/windows.py.
//
//     element = window * stride - before + place * dilation        along each dimension
//
// Arrays are (n, c, h, w) or (n, c, y, x): n = image, c = channel (together a plane), h, w = element, y, x = window,
// i, j = place in a window. Sequences are images of height 1. Nothing is padded in memory.
//
// Launch of every kernel of windows: block = (pixels, planes), grid likewise; threadIdx.x runs over the pixels of a
// plane and threadIdx.y over planes, both with strides of the grid.

#ifndef LUCID_WINDOWS_CUH
#define LUCID_WINDOWS_CUH

#include "lucid.cuh"

namespace lucid {

// The windows along one dimension; lucid/cuda/launch/windows.py gives the members in this order.
struct Axis {
    int size, out, kernel, stride, before, dilation;

    __device__ __forceinline__ int begin(int window) const { return window * stride - before; }

    // The first place of a window that is not in the padding before the first element.
    __device__ __forceinline__ int first_place(int window) const {
        const int start = begin(window);
        return start < 0 ? (dilation - 1 - start) / dilation : 0;
    }

    // The windows that can meet an element: from first_window to last_window, where place() is not negative.
    __device__ __forceinline__ int first_window(int element) const {
        const int offset = element + before - (kernel - 1) * dilation;
        return offset > 0 ? (offset + stride - 1) / stride : 0;
    }

    __device__ __forceinline__ int last_window(int element) const { return min((element + before) / stride, out - 1); }

    __device__ __forceinline__ int place(int element, int window) const {
        const int offset = element - begin(window);
        return offset % dilation ? -1 : offset / dilation;
    }

    // How many elements a window holds without dilation; those of the padding behind count as far as `before` of them.
    __device__ __forceinline__ int count(int window, bool padded) const {
        const int start = begin(window), end = start + kernel, limit = padded ? size + before : size;
        return min(end, limit) - (padded || start > 0 ? start : 0);
    }
};

struct Windows {
    Axis y, x;

    __device__ __forceinline__ int places() const { return y.kernel * x.kernel; }
};

// Steps between elements along the four dimensions, in elements.
struct Steps {
    long long n, c, h, w;
};

// Calls body(plane, row, column) for each pixel of each plane.
template <typename Body>
__device__ __forceinline__ void for_each_pixel(long long planes, int rows, int columns, Body body) {
    // unsigned, because a step beyond the last pixel may pass 2^31
    const unsigned pixels = (unsigned)rows * (unsigned)columns;
    for (long long plane = (long long)blockIdx.y * blockDim.y + threadIdx.y; plane < planes;
         plane += (long long)gridDim.y * blockDim.y)
        for (unsigned pixel = blockIdx.x * blockDim.x + threadIdx.x; pixel < pixels; pixel += gridDim.x * blockDim.x)
            body(plane, (int)(pixel / columns), (int)(pixel % columns));
}

// Calls body(y, x, number of the place) for each window that meets the element (h, w).
template <typename Body>
__device__ __forceinline__ void for_each_window(const Windows& windows, int h, int w, Body body) {
    const int y_last = windows.y.last_window(h), x_first = windows.x.first_window(w);
    const int x_last = windows.x.last_window(w);
    for (int y = windows.y.first_window(h); y <= y_last; ++y) {
        const int i = windows.y.place(h, y);
        if (i < 0) continue;
        for (int x = x_first; x <= x_last; ++x) {
            const int j = windows.x.place(w, x);
            if (j >= 0) body(y, x, i * windows.x.kernel + j);
        }
    }
}

// Calls body(h, w, number of the place) for each element that the window (y, x) meets, the last dimension fastest.
template <typename Body>
__device__ __forceinline__ void for_each_element(const Windows& windows, int y, int x, Body body) {
    const int top = windows.y.begin(y), left = windows.x.begin(x), j_first = windows.x.first_place(x);
    for (int i = windows.y.first_place(y); i < windows.y.kernel; ++i) {
        const int h = top + i * windows.y.dilation;
        if (h >= windows.y.size) break;
        for (int j = j_first; j < windows.x.kernel; ++j) {
            const int w = left + j * windows.x.dilation;
            if (w >= windows.x.size) break;
            body(h, w, i * windows.x.kernel + j);
        }
    }
}

}  // namespace lucid

#endif  // LUCID_WINDOWS_CUH
