// Random draws, and dropout, bit for bit those of lucid/base/random/draws.py: value i of a draw depends on seed, offset and
// i alone, never on the launch.
//
//     fill_uniform, fill_normal, fill_exponential, fill_integers, fill_bernoulli: out_n, n values of a draw that begins
//         at `offset`
//     store_seed: where the draws of a captured graph begin, told at each replay
//     dropout: out_n = x_n * scale where word(n) < threshold, else 0; backward is the same on the gradient
//
// A thread makes the values of one Philox block: four of one word each, or two of two words each (float64, integers).
// Launch: ceil(n / values of a block) threads in any blocks.

#include "lucid.cuh"
#include "philox.cuh"

namespace lucid {

// Writes make(l) for l = 0 .. COUNT - 1 to out_n[first + l], as far as that is within n.
template <typename T, int COUNT, typename Make>
__device__ __forceinline__ void write_group(T* out_n, long long n, long long first, Make make) {
    Pack<T, COUNT> group;
#pragma unroll
    for (int l = 0; l < COUNT; ++l) group.value_k[l] = make(l);
    // a draw fills a fresh array, which begins at a multiple of 16 bytes
    if (first + COUNT <= n)
        *(Pack<T, COUNT>*)(out_n + first) = group;
    else
#pragma unroll
        for (int l = 0; l < COUNT; ++l)
            if (first + l < n) out_n[first + l] = group.value_k[l];
}

// The words of a block; with `start_2` of the stream whose seed and offset lie there, `offset` being counted from that.
__device__ __forceinline__ PhiloxBlock block_of(const Word64* start_2, Word64 seed, Word64 offset) {
    if (start_2) {
        seed = start_2[0];
        offset += start_2[1];
    }
    return philox_block(seed, offset);
}

template <typename T> constexpr int values_of_block = sizeof(T) == 8 ? 2 : 4;

// Word l of the COUNT words of a block: four, or two of 64 bits.
template <int COUNT> __device__ __forceinline__ auto word_of(PhiloxBlock block, int l) {
    if constexpr (COUNT == 2)
        return word64_of(block, l);
    else
        return block.lane_l[l];
}

// Calls make(word) for each value of the draw and writes what it returns.
template <typename T, int COUNT = values_of_block<T>, typename Make>
__device__ __forceinline__ void draw(T* out_n, long long n, const Word64* start_2, Word64 seed, Word64 offset,
                                     Make make) {
    const long long b = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (b * COUNT >= n) return;
    const PhiloxBlock block = block_of(start_2, seed, offset + (Word64)b);
    write_group<T, COUNT>(out_n, n, b * COUNT, [&](int l) { return make(word_of<COUNT>(block, l)); });
}

template <typename T>
__global__ void fill_uniform(T* out_n, long long n, const Word64* start_2, Word64 seed, Word64 offset, double start,
                             double span, double last, int bits) {
    draw<T>(out_n, n, start_2, seed, offset, [&](auto word) {
        if constexpr (sizeof(T) == 8)
            return (T)uniform_double(word, start, span, last);
        else
            return from_real<T>(uniform_float(word, bits, (float)start, (float)span, (float)last));
    });
}

template <typename T>
__global__ void fill_normal(T* out_n, long long n, const Word64* start_2, Word64 seed, Word64 offset, double mean,
                            double std) {
    draw<T>(out_n, n, start_2, seed, offset, [&](auto word) { return from_real<T>((Real<T>)normal(word, mean, std)); });
}

template <typename T>
__global__ void fill_exponential(T* out_n, long long n, const Word64* start_2, Word64 seed, Word64 offset,
                                 double rate) {
    draw<T>(out_n, n, start_2, seed, offset, [&](auto word) { return from_real<T>((Real<T>)exponential(word, rate)); });
}

// low + floor(word * count / 2^64), count 0 standing for 2^64: two words for each value of any type.
template <typename T>
__global__ void fill_integers(T* out_n, long long n, const Word64* start_2, Word64 seed, Word64 offset, long long low,
                              Word64 count) {
    draw<T, 2>(out_n, n, start_2, seed, offset, [&](Word64 word) { return (T)random_integer(word, low, count); });
}

// bool only: true with probability threshold / 2^32.
template <typename T>
__global__ void fill_bernoulli(T* out_n, long long n, const Word64* start_2, Word64 seed, Word64 offset,
                               Word64 threshold) {
    draw<T>(out_n, n, start_2, seed, offset, [&](Word word) { return bernoulli(word, threshold); });
}

template <typename T>
__global__ void dropout(const T* x_n, T* out_n, long long n, const Word64* start_2, Word64 seed, Word64 offset,
                        Word64 threshold, double scale_) {
    const long long b = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (b * 4 >= n) return;
    const Real<T> scale = (Real<T>)scale_;
    const PhiloxBlock block = block_of(start_2, seed, offset + (Word64)b);
    Pack<T, 4> x;
    if (b * 4 + 4 <= n && (unsigned long long)x_n % alignof(Pack<T, 4>) == 0)
        x = ((const Pack<T, 4>*)x_n)[b];
    else
#pragma unroll
        for (int l = 0; l < 4; ++l) x.value_k[l] = b * 4 + l < n ? x_n[b * 4 + l] : from_real<T>(0);
    write_group<T, 4>(out_n, n, b * 4, [&](int l) {
        return bernoulli(block.lane_l[l], threshold) ? from_real<T>(to_real(x.value_k[l]) * scale) : from_real<T>(0);
    });
}

__global__ void store_seed(Word64* start_2, Word64 seed, Word64 offset) {
    start_2[0] = seed;
    start_2[1] = offset;
}

}  // namespace lucid
