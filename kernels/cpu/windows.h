// Sliding windows over images of one or two dimensions, as lucid/ops/layers/windows.py has them.

#ifndef LUCID_CPU_WINDOWS_H
#define LUCID_CPU_WINDOWS_H

#include <algorithm>
#include <vector>

#include "cpu.h"

namespace lucid {

typedef long long Int;

// The windows along one dimension.
struct Axis {
    Int size, out, kernel, stride, before, dilation;

    // The first position of a window that is not in the padding before the first element.
    Int first_position(Int window) const {
        const Int begin = window * stride - before;
        return begin >= 0 ? 0 : (-begin + dilation - 1) / dilation;
    }
};

// A position of windows along one dimension: the windows that have an element there, and the element of window 0.
struct Tap {
    Int position, first, end, offset;
};

// The positions that have an element in any window.
inline std::vector<Tap> taps_along(const Axis& axis) {
    std::vector<Tap> tap_k;
    for (Int position = 0; position < axis.kernel; ++position) {
        const Int offset = position * axis.dilation - axis.before;
        if (offset >= axis.size) break;
        const Int first = offset >= 0 ? 0 : (-offset + axis.stride - 1) / axis.stride;
        const Int past = (axis.size - 1 - offset) / axis.stride + 1, end = past < axis.out ? past : axis.out;
        if (first < end) tap_k.push_back({position, first, end, offset});
    }
    return tap_k;
}

// Multiplies by a step: 1 and 2 are constants, by which loops become vectors; -1 is any other.
template <int STEP> __forceinline__ Int times(Int i, Int step) { return STEP > 0 ? STEP * i : step * i; }

// A function whose template has the step as such a constant.
#define LUCID_WITH_STEP(step, function, ...) \
    ((step) == 1 ? function<1>(__VA_ARGS__) : (step) == 2 ? function<2>(__VA_ARGS__) : function<-1>(__VA_ARGS__))

template <int STEP, typename T> void copy_row(T* __restrict__ target, const T* __restrict__ row, Int step, Int count) {
    if (STEP == 1)
        std::memcpy(target, row, sizeof(T) * count);
    else
        for (Int i = 0; i < count; ++i) target[i] = row[times<STEP>(i, step)];
}

// An integer as wide as a number, and vectors of both.
template <typename T> struct WideOf {
    typedef int type;
};
template <> struct WideOf<double> {
    typedef long long type;
};
#if defined(__AVX512F__)
constexpr int VECTOR_BYTES = 64;
#elif defined(__AVX__)
constexpr int VECTOR_BYTES = 32;
#else
constexpr int VECTOR_BYTES = 16;
#endif
template <typename T> struct VectorOf {
    static constexpr Int LANES = VECTOR_BYTES / sizeof(T);
    typedef T type __attribute__((vector_size(VECTOR_BYTES)));
    typedef typename WideOf<T>::type wide __attribute__((vector_size(VECTOR_BYTES)));
};
template <typename T> __forceinline__ typename VectorOf<T>::type load(const T* x) {
    typename VectorOf<T>::type value;
    std::memcpy(&value, x, VECTOR_BYTES);
    return value;
}
// Elements in memory that begins where vectors do.
template <typename T> struct Buffer {
    std::vector<typename VectorOf<T>::type> vector_n;

    explicit Buffer(Int count, T value = 0)
        : vector_n((count + VectorOf<T>::LANES - 1) / VectorOf<T>::LANES, value - typename VectorOf<T>::type{}) {}
    T* data() { return (T*)vector_n.data(); }
    const T* data() const { return (const T*)vector_n.data(); }
};

inline Int rounded_up(Int count, Int to) { return (count + to - 1) / to * to; }

// Planes of images with padding, and their columns apart by their remainders of the stride: the elements at a position
// of neighbouring windows are neighbours, and all vectors of windows are whole.
template <typename T> struct Rows {
    // Elements of a row of a plane, from `first` on with steps of the stride, and where in a row here they go.
    struct Part {
        Int remainder, first, start, count;
    };
    const Axis v, h;
    Int height, width, plane;  // rows, the elements of one, and of all
    std::vector<Int> start_q;  // where in a row the elements at a position begin
    std::vector<Part> part_r;
    Buffer<T> element_n, padding_n;

    // If `dense`, rows end where the last window does, and vectors go on in the next row.
    Rows(const Axis* axis_d, Int planes, T padding, bool dense = false)
        : v(axis_d[0]), h(axis_d[1]), width(0), element_n(0), padding_n(0) {
        const Int whole = dense ? h.out : rounded_up(h.out, VectorOf<T>::LANES);
        const Int each = whole + (h.kernel - 1) * h.dilation / h.stride;
        for (Int q = 0; q < h.kernel; ++q) {
            const Int remainder = q * h.dilation % h.stride;
            const auto same = [=](const Part& part) { return part.remainder == remainder; };
            const auto known = std::find_if(part_r.begin(), part_r.end(), same);
            start_q.push_back((known - part_r.begin()) * each + q * h.dilation / h.stride);
            if (known != part_r.end()) continue;
            const Int before = h.before > remainder ? (h.before - remainder + h.stride - 1) / h.stride : 0;
            const Int first = before * h.stride + remainder - h.before;
            const Int count = first < h.size ? (h.size - first + h.stride - 1) / h.stride : 0;
            part_r.push_back({remainder, first, width + before, std::min(count, each - before)});
            width += each;
        }
        height = (v.out - 1) * v.stride + (v.kernel - 1) * v.dilation + 1;
        plane = height * width;
        element_n = Buffer<T>(planes * plane + VectorOf<T>::LANES, padding);
        padding_n = Buffer<T>(width, padding);
    }
    // The row of a plane that has the elements at a position of a row of windows.
    const T* row(Int index, Int y, Int position) const {
        return element_n.data() + index * plane + (y * v.stride + position * v.dilation) * width;
    }

    // Reads a plane in, from a row of windows on. Columns of padding stay as they are.
    void read(Int index, const T* x, Int step_y, Int step_x, Int top = 0) {
        const Int step = h.stride * step_x, begin = top * v.stride - v.before;
        for (Int y = 0; y < height; ++y) {
            T* target = element_n.data() + index * plane + y * width;
            const T* row = x + (begin + y) * step_y;
            if (begin + y < 0 || begin + y >= v.size)
                std::memcpy(target, padding_n.data(), sizeof(T) * width);
            else
                for (const Part& part : part_r)
                    if (part.count > 0)
                        LUCID_WITH_STEP(step, copy_row, target + part.start, row + part.first * step_x, step,
                                        part.count);
        }
    }
};

}  // namespace lucid

#endif  // LUCID_CPU_WINDOWS_H
