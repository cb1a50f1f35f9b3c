// Sliding windows over images of one or two dimensions, as lucid/ops/layers/windows.py has them.

#ifndef LUCID_CPU_WINDOWS_H
#define LUCID_CPU_WINDOWS_H

#include "cpu.h"

namespace lucid {

typedef long long Int;

// The windows along one dimension.
struct Axis {
    Int size, out, kernel, stride, before, dilation;

    // The element at a position of the first window.
    Int offset(Int position) const { return position * dilation - before; }
    // The first window with an element at an offset, and the first behind the last of them.
    Int first(Int offset) const { return offset >= 0 ? 0 : (-offset + stride - 1) / stride; }
    Int end(Int offset) const {
        if (size <= offset) return 0;
        const Int past = (size - 1 - offset) / stride + 1;
        return past < out ? past : out;
    }
    // The first position of a window that is not in the padding before the first element.
    Int first_position(Int window) const {
        const Int begin = window * stride - before;
        return begin >= 0 ? 0 : (-begin + dilation - 1) / dilation;
    }
};

// Calls run(at) with the function that multiplies by a step: 1 and 2 are constants there, by which loops become vectors.
template <typename Run> __forceinline__ void with_step(Int step, Run run) {
    if (step == 1)
        run([](Int i) { return i; });
    else if (step == 2)
        run([](Int i) { return 2 * i; });
    else
        run([=](Int i) { return step * i; });
}

}  // namespace lucid

#endif  // LUCID_CPU_WINDOWS_H
