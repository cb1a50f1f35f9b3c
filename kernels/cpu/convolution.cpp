// Convolutions on the CPU without columns: a few output channels times a few vectors of windows stay in registers while
// all input channels and positions are gone through, in this order.
//
// Images are read into padded rows first. Sums differ from those of BLAS in their order alone.

// a product and a sum round once, as in BLAS
#pragma GCC optimize("fp-contract=fast")

#include "windows.h"

namespace lucid {

// Output channels, and vectors of windows or positions beside them, that fit the registers.
#if defined(__AVX512F__)
constexpr int MOST_CHANNELS = 8;
constexpr int beside(int channels) { return channels == 1 ? 9 : channels == 2 ? 8 : 24 / channels; }
#else
constexpr int MOST_CHANNELS = 4;
constexpr int beside(int channels) { return 12 / channels < 6 ? 12 / channels : 6; }
#endif
// What stays in a second-level cache.
constexpr Int BLOCK_BYTES = 1 << 19;

// Calls run(channel, constant) for blocks of output channels, of constant sizes.
template <typename Run> static void each_block(Int channels, Run run) {
    Int channel = 0;
    for (; channels - channel >= 8 && MOST_CHANNELS >= 8; channel += 8) run(channel, std::integral_constant<int, 8>());
    for (; channels - channel >= 6 && MOST_CHANNELS >= 6; channel += 6) run(channel, std::integral_constant<int, 6>());
    for (; channels - channel >= 4; channel += 4) run(channel, std::integral_constant<int, 4>());
    for (; channels - channel >= 2; channel += 2) run(channel, std::integral_constant<int, 2>());
    for (; channels - channel >= 1; channel += 1) run(channel, std::integral_constant<int, 1>());
}

// How images are gone through: some whole ones at a time, or some rows of windows of one.
//
// The vectors of windows are those of one row after the other, or, where strides are 1 and it takes fewer vectors, of
// all rows as one, with the elements between.
template <typename T> struct Blocks {
    static constexpr Int LANES = VectorOf<T>::LANES;
    Axis axis_d[2];  // the windows of a block
    bool dense;
    Int pitch, images;  // from one row of windows to the next; whole images of a block

    // `planes`: of images and of results that are held for an image, in so many bytes; `most`: vectors of a block.
    Blocks(const Axis* whole_d, Int count, Int planes, Int bytes, Int most) : axis_d{whole_d[0], whole_d[1]} {
        Axis &v = axis_d[0], &h = axis_d[1];
        const Int width = h.out + (h.kernel - 1) * h.dilation, whole = rounded_up(h.out, LANES);
        dense = v.stride == 1 && h.stride == 1 && rounded_up((v.out - 1) * width + h.out, LANES) < v.out * whole;
        pitch = dense ? width : whole;
        const Int row_bytes = sizeof(T) * pitch * h.stride * v.stride * planes;
        const Int rows = std::max(1LL, std::min(bytes / row_bytes, most * LANES / pitch));
        images = std::max(1LL, std::min(count, rows / v.out));
        const Int parts = (v.out + rows - 1) / rows;
        v.out = (v.out + parts - 1) / parts;
    }
    // Calls run(first image, images, first row of windows, first behind the last row) for each block.
    template <typename Run> void each(Int count, Int rows, Run run) const {
        for (Int from = 0; from < count; from += images)
            for (Int top = 0; top < rows; top += axis_d[0].out)
                run(from, std::min(images, count - from), top, std::min(top + axis_d[0].out, rows));
    }
    // Vectors of so many rows of windows.
    Int vectors(Int rows) const { return ((rows - 1) * pitch + axis_d[1].out + LANES - 1) / LANES; }
    // Where in rows of the block the elements at the first position of each vector are.
    std::vector<Int> starts(const Rows<T>& rows) const {
        std::vector<Int> start_v;
        const Int each = pitch / LANES;
        for (Int i = 0; i < vectors(axis_d[0].out); ++i)
            start_v.push_back(dense ? i * LANES : i / each * rows.v.stride * rows.width + i % each * LANES);
        return start_v;
    }
};

// Where in rows the elements at each position of each channel are, behind those at the first.
template <typename T> static std::vector<Int> offsets(const Rows<T>& rows, Int channels) {
    std::vector<Int> offset_k;
    for (Int c = 0; c < channels; ++c)
        for (Int p = 0; p < rows.v.kernel; ++p)
            for (Int q = 0; q < rows.h.kernel; ++q)
                offset_k.push_back(c * rows.plane + p * rows.v.dilation * rows.width + rows.start_q[q]);
    return offset_k;
}

// Sums of CHANNELS output channels over COUNT vectors of windows. A function of its own, whose sums stay in registers.
template <int CHANNELS, int COUNT, typename T>
__attribute__((noinline)) static void sum_tile(const T* x, const Int* start_v, const Int* offset_k, Int positions,
                                               const T* weight, T* sum, Int sum_step) {
    typedef typename VectorOf<T>::type Vector;
    Vector total[CHANNELS][COUNT] = {};
    const T* at_v[COUNT];
    for (int i = 0; i < COUNT; ++i) at_v[i] = x + start_v[i];
    for (Int k = 0; k < positions; ++k, weight += CHANNELS) {
        const Int offset = offset_k[k];
        Vector value[COUNT];
#pragma GCC unroll 16
        for (int i = 0; i < COUNT; ++i) value[i] = load(at_v[i] + offset);
#pragma GCC unroll 16
        for (int o = 0; o < CHANNELS; ++o)
#pragma GCC unroll 16
            for (int i = 0; i < COUNT; ++i) total[o][i] += weight[o] * value[i];
    }
#pragma GCC unroll 16
    for (int o = 0; o < CHANNELS; ++o)
#pragma GCC unroll 16
        for (int i = 0; i < COUNT; ++i)
            std::memcpy(sum + o * sum_step + i * VectorOf<T>::LANES, &total[o][i], VECTOR_BYTES);
}

// The same of `count` vectors, most of them in tiles of COUNT.
template <int CHANNELS, int COUNT, typename T>
static void sum_tiles(const T* x, const Int* start_v, Int count, const Int* offset_k, Int positions, const T* weight,
                      T* sum, Int sum_step) {
    for (; count >= COUNT; count -= COUNT, start_v += COUNT, sum += COUNT * VectorOf<T>::LANES)
        sum_tile<CHANNELS, COUNT>(x, start_v, offset_k, positions, weight, sum, sum_step);
    if constexpr (COUNT > 1)
        if (count) sum_tiles<CHANNELS, COUNT / 2>(x, start_v, count, offset_k, positions, weight, sum, sum_step);
}

template <int STEP, typename T>
static void write_row(T* __restrict__ target, Int step, const T* __restrict__ row, const T* offset, Int count) {
    if (offset)
        for (Int i = 0; i < count; ++i) target[times<STEP>(i, step)] = row[i] + *offset;
    else
        for (Int i = 0; i < count; ++i) target[times<STEP>(i, step)] = row[i];
}

// The convolution of images with kernels; with steps that turn these round, the elements of its input's gradient that
// have the same remainders of the stride.
template <typename T>
__global__ void convolve(const T* x, const T* weight, const T* bias, T* y, long long images, long long groups,
                         long long inputs, long long outputs, long long step_n, long long step_c, long long step_y,
                         long long step_x, long long step_group, long long step_out, long long step_in,
                         long long step_p, long long step_q, long long to_step_c, long long to_step_y,
                         long long to_step_x, const Axis* axis_d) {
    const Axis v = axis_d[0], h = axis_d[1];
    const Int positions = inputs * v.kernel * h.kernel;
    const Blocks<T> blocks(axis_d, images, inputs, BLOCK_BYTES, 128);
    Rows<T> rows(blocks.axis_d, blocks.images * inputs, 0, blocks.dense);
    const std::vector<Int> offset_k = offsets(rows, inputs), start_v = blocks.starts(rows);
    const Int length = start_v.size() * VectorOf<T>::LANES;
    Buffer<T> packed(outputs * positions), sum(MOST_CHANNELS * length);
    for (Int g = 0; g < groups; ++g) {
        const T* kernels = weight + g * step_group;
        for (Int c = 0; c < inputs; ++c)
            each_block(outputs, [&](Int first, auto count) {
                T* next = packed.data() + first * positions + c * v.kernel * h.kernel * count;
                const T* from = kernels + first * step_out + c * step_in;
                for (Int p = 0; p < v.kernel; ++p)
                    for (Int q = 0; q < h.kernel; ++q)
                        for (Int o = 0; o < count; ++o) *next++ = from[o * step_out + p * step_p + q * step_q];
            });
        blocks.each(images, v.out, [&](Int from, Int some, Int top, Int bottom) {
            for (Int n = 0; n < some; ++n)
                for (Int c = 0; c < inputs; ++c)
                    rows.read(n * inputs + c, x + (from + n) * step_n + (g * inputs + c) * step_c, step_y, step_x, top);
            each_block(outputs, [&](Int first, auto count) {
                constexpr int CHANNELS = decltype(count)::value;
                for (Int n = 0; n < some; ++n) {
                    sum_tiles<CHANNELS, beside(CHANNELS)>(
                        rows.element_n.data() + n * inputs * rows.plane, start_v.data(), blocks.vectors(bottom - top),
                        offset_k.data(), positions, packed.data() + first * positions, sum.data(), length);
                    for (Int o = 0; o < CHANNELS; ++o) {
                        const Int channel = g * outputs + first + o;
                        T* target = y + ((from + n) * groups * outputs + channel) * to_step_c + top * to_step_y;
                        for (Int i = 0; i < bottom - top; ++i)
                            LUCID_WITH_STEP(to_step_x, write_row, target + i * to_step_y, to_step_x,
                                            sum.data() + o * length + i * blocks.pitch, bias ? bias + channel : nullptr,
                                            h.out);
                    }
                }
            });
        });
    }
}

// Makes one vector of the sums of the elements of each of 2 * HALF vectors.
template <int HALF, typename T> __forceinline__ void fold(typename VectorOf<T>::type* sum_l) {
    constexpr int LANES = VectorOf<T>::LANES;
    typename VectorOf<T>::wide lower, upper;
    for (int l = 0; l < LANES; ++l) {
        lower[l] = l % (2 * HALF) < HALF ? l : l - HALF + LANES;
        upper[l] = lower[l] + HALF;
    }
#pragma GCC unroll 16
    for (int i = 0; i < HALF; ++i)
        sum_l[i] =
            __builtin_shuffle(sum_l[i], sum_l[i + HALF], lower) + __builtin_shuffle(sum_l[i], sum_l[i + HALF], upper);
    if constexpr (HALF > 1) fold<HALF / 2, T>(sum_l);
}

// Sums of products of CHANNELS output channels and COUNT positions of input channels, over all windows of some images.
template <int CHANNELS, int COUNT, typename T>
__attribute__((noinline)) static void product_tile(const T* g, Int g_image, Int g_step, const T* x, Int x_image,
                                                   const Int* start_v, Int vectors, Int images, const Int* offset_k,
                                                   T* sum_n) {
    typedef typename VectorOf<T>::type Vector;
    constexpr Int LANES = VectorOf<T>::LANES;
    Vector total[CHANNELS][COUNT] = {};
    for (Int n = 0; n < images; ++n) {
        const T* at_o = g + n * g_image;
        for (Int v = 0; v < vectors; ++v, at_o += LANES) {
            const T* at = x + n * x_image + start_v[v];
            Vector value[COUNT];
#pragma GCC unroll 16
            for (int k = 0; k < COUNT; ++k) value[k] = load(at + offset_k[k]);
#pragma GCC unroll 16
            for (int o = 0; o < CHANNELS; ++o) {
                const Vector factor = load(at_o + o * g_step);
#pragma GCC unroll 16
                for (int k = 0; k < COUNT; ++k) total[o][k] += factor * value[k];
            }
        }
    }
#pragma GCC unroll 16
    for (int first = 0; first < CHANNELS * COUNT; first += LANES) {
        Vector sum_l[LANES];
#pragma GCC unroll 16
        for (int l = 0; l < LANES; ++l)
            sum_l[l] = first + l < CHANNELS * COUNT ? total[(first + l) / COUNT][(first + l) % COUNT] : Vector{};
        fold<LANES / 2, T>(sum_l);
        const Vector sum = load(sum_n + first) + sum_l[0];
        std::memcpy(sum_n + first, &sum, VECTOR_BYTES);
    }
}

// Calls run(first position, constant) for tiles of positions.
template <int COUNT, typename Run> static void each_tile(Int first, Int positions, Run run) {
    for (; positions - first >= COUNT; first += COUNT) run(first, std::integral_constant<int, COUNT>());
    if constexpr (COUNT > 1)
        if (first < positions) each_tile<COUNT / 2>(first, positions, run);
}

// For each position the products of `g` and the elements there, summed over all windows. Between rows of windows zeros
// are multiplied, so that more is NaN than should be where not all elements are finite.
template <typename T>
__global__ void convolve_weights(const T* g, const T* x, T* dw, long long images, long long groups, long long inputs,
                                 long long outputs, long long g_step_n, long long g_step_c, long long g_step_y,
                                 long long g_step_x, long long x_step_n, long long x_step_c, long long x_step_y,
                                 long long x_step_x, const Axis* axis_d) {
    const Axis v = axis_d[0], h = axis_d[1];
    const Int positions = inputs * v.kernel * h.kernel;
    const Blocks<T> blocks(axis_d, images, inputs + outputs, 4 * BLOCK_BYTES, 96);
    Rows<T> rows(blocks.axis_d, blocks.images * inputs, 0, blocks.dense);
    const std::vector<Int> offset_k = offsets(rows, inputs), start_v = blocks.starts(rows);
    const Int length = start_v.size() * VectorOf<T>::LANES, planes = blocks.images * outputs;
    // calls run(first channel, first position, constants of how many, where their sums are)
    const auto each = [&](auto run) {
        Int at = 0;
        each_block(outputs, [&](Int first, auto channels) {
            each_tile<beside(channels)>(0, positions, [&](Int k, auto count) {
                run(first, k, channels, count, at);
                at += rounded_up(channels * count, VectorOf<T>::LANES);
            });
        });
        return at;
    };
    const Int sums = each([](Int, Int, auto, auto, Int) {});
    Buffer<T> g_n(planes * length), sum_n(sums);
    for (Int group = 0; group < groups; ++group, dw += outputs * positions) {
        std::memset(sum_n.data(), 0, sizeof(T) * sums);
        blocks.each(images, v.out, [&](Int from, Int some, Int top, Int bottom) {
            if (bottom - top < blocks.axis_d[0].out) std::memset(g_n.data(), 0, sizeof(T) * planes * length);
            for (Int n = 0; n < some; ++n) {
                for (Int c = 0; c < inputs; ++c)
                    rows.read(n * inputs + c, x + (from + n) * x_step_n + (group * inputs + c) * x_step_c, x_step_y,
                              x_step_x, top);
                for (Int o = 0; o < outputs; ++o) {
                    const T* row = g + (from + n) * g_step_n + (group * outputs + o) * g_step_c + top * g_step_y;
                    T* target = g_n.data() + (n * outputs + o) * length;
                    for (Int y = 0; y < bottom - top; ++y)
                        LUCID_WITH_STEP(g_step_x, copy_row, target + y * blocks.pitch, row + y * g_step_y, g_step_x,
                                        h.out);
                }
            }
            each([&](Int first, Int k, auto channels, auto count, Int at) {
                product_tile<decltype(channels)::value, decltype(count)::value>(
                    g_n.data() + first * length, outputs * length, length, rows.element_n.data(), inputs * rows.plane,
                    start_v.data(), blocks.vectors(bottom - top), some, offset_k.data() + k, sum_n.data() + at);
            });
        });
        each([&](Int first, Int k, auto channels, auto count, Int at) {
            for (Int o = 0; o < channels; ++o)
                for (Int i = 0; i < count; ++i) dw[(first + o) * positions + k + i] = sum_n.data()[at + o * count + i];
        });
    }
}

}  // namespace lucid
