// Random draws on the CPU, bit for bit those of lucid/base/random/draws.py: value i of a draw depends on seed, offset and
// i alone. The words of a few hundred blocks are made, then the values of these, so that each loop is one of vectors.

#include "cpu.h"
#include "philox.cuh"

namespace lucid {

constexpr int BLOCKS = 256, WORDS = 4 * BLOCKS;

// The words of `count` blocks from `offset` on.
static void fill_words(Word* word_n, int count, Word64 seed, Word64 offset) {
    Word lane_lb[4][BLOCKS];
    for (int b = 0; b < count; ++b) {
        const PhiloxBlock block = philox_block(seed, offset + (Word64)b);
        for (int l = 0; l < 4; ++l) lane_lb[l][b] = block.lane_l[l];
    }
    for (int b = 0; b < count; ++b)
        for (int l = 0; l < 4; ++l) word_n[4 * b + l] = lane_lb[l][b];
}

// Calls make(out_n, word_n, count) for a few hundred values of the draw at a time, each of one word of this size.
template <typename AnyWord, typename T, typename Make>
static void draw(T* out_n, long long n, Word64 seed, Word64 offset, Make make) {
    constexpr int EACH = sizeof(AnyWord) / sizeof(Word);
    alignas(64) Word word_n[WORDS];
    alignas(64) AnyWord value_n[WORDS / EACH];
    for (long long first = 0; first < n; first += WORDS / EACH, offset += BLOCKS) {
        const int count = (int)(n - first < WORDS / EACH ? n - first : WORDS / EACH);
        fill_words(word_n, (count * EACH + 3) / 4, seed, offset);
        for (int i = 0; i < count; ++i)
            value_n[i] =
                EACH == 1 ? word_n[i] : (AnyWord)word_n[EACH * i + EACH - 1] << (EACH - 1) * 32 | word_n[EACH * i];
        make(out_n + first, value_n, count);
    }
}

template <typename T> struct WordOf {
    typedef Word type;
};
template <> struct WordOf<double> {
    typedef Word64 type;
};

template <typename T>
__global__ void fill_uniform(T* out_n, long long n, Word64 seed, Word64 offset, double start, double span, double last,
                             int bits) {
    typedef typename WordOf<T>::type AnyWord;
    draw<AnyWord>(out_n, n, seed, offset, [=](T* __restrict__ value_n, const AnyWord* word_n, int count) {
        for (int i = 0; i < count; ++i) {
            if constexpr (sizeof(T) == 8)
                value_n[i] = uniform_double(word_n[i], start, span, last);
            else
                value_n[i] = uniform_float(word_n[i], bits, (float)start, (float)span, (float)last);
        }
    });
}

// One of seven values is in a tail, which takes a logarithm and a root: these are done together, behind the others.
template <typename T>
__global__ void fill_normal(T* out_n, long long n, Word64 seed, Word64 offset, double mean, double std) {
    typedef typename WordOf<T>::type AnyWord;
    draw<AnyWord>(out_n, n, seed, offset, [=](T* __restrict__ value_n, const AnyWord* word_n, int count) {
        alignas(64) double tail_t[WORDS];
        int place_t[WORDS], tails = 0;
        bool tail_n[WORDS];
        for (int i = 0; i < count; ++i) value_n[i] = (T)(inverse_normal_central(centred(word_n[i])) * std + mean);
        for (int i = 0; i < count; ++i) tail_n[i] = !is_central(centred(word_n[i]));
        for (int i = 0; i < count; ++i) {
            place_t[tails] = i;
            tails += tail_n[i];
        }
        for (int t = 0; t < tails; ++t)
            tail_t[t] = inverse_normal_tail<sizeof(T) == 8>(centred(word_n[place_t[t]])) * std + mean;
        for (int t = 0; t < tails; ++t) value_n[place_t[t]] = (T)tail_t[t];
    });
}

template <typename T> __global__ void fill_exponential(T* out_n, long long n, Word64 seed, Word64 offset, double rate) {
    typedef typename WordOf<T>::type AnyWord;
    draw<AnyWord>(out_n, n, seed, offset, [=](T* __restrict__ value_n, const AnyWord* word_n, int count) {
        for (int i = 0; i < count; ++i) value_n[i] = (T)exponential(word_n[i], rate);
    });
}

// low + floor(word * count / 2^64), count 0 standing for 2^64: two words for each value of any type.
template <typename T>
__global__ void fill_integers(T* out_n, long long n, Word64 seed, Word64 offset, long long low, Word64 range) {
    draw<Word64>(out_n, n, seed, offset, [=](T* __restrict__ value_n, const Word64* word_n, int count) {
        for (int i = 0; i < count; ++i) value_n[i] = (T)random_integer(word_n[i], low, range);
    });
}

// True with probability threshold / 2^32.
__global__ void fill_bernoulli(bool* out_n, long long n, Word64 seed, Word64 offset, Word64 threshold) {
    draw<Word>(out_n, n, seed, offset, [=](bool* __restrict__ value_n, const Word* word_n, int count) {
        for (int i = 0; i < count; ++i) value_n[i] = bernoulli(word_n[i], threshold);
    });
}

// The indices that sort random keys of 64 bits, equal ones in order: each goes to the bucket of its upper bits, which holds
// about four, and there to its place. `end_b` has room for 2^bits buckets, `sorted_n` for the keys.
__global__ void order_of_keys(long long* __restrict__ index_n, const Word64* __restrict__ key_n, long long n, int bits,
                              long long* __restrict__ end_b, Word64* __restrict__ sorted_n) {
    const int shift = 64 - bits;
    const long long buckets = 1LL << bits;
    for (long long b = 0; b < buckets; ++b) end_b[b] = 0;
    for (long long i = 0; i < n; ++i) ++end_b[key_n[i] >> shift];
    for (long long b = 0, total = 0; b < buckets; ++b) {
        const long long count = end_b[b];
        end_b[b] = total;
        total += count;
    }
    for (long long i = 0; i < n; ++i) {
        const Word64 key = key_n[i];
        const long long place = end_b[key >> shift]++;
        sorted_n[place] = key;
        index_n[place] = i;
    }
    for (long long b = 0, first = 0; b < buckets; first = end_b[b++])
        for (long long i = first + 1; i < end_b[b]; ++i) {
            const Word64 key = sorted_n[i];
            const long long index = index_n[i];
            long long place = i;
            for (; place > first && sorted_n[place - 1] > key; --place) {
                sorted_n[place] = sorted_n[place - 1];
                index_n[place] = index_n[place - 1];
            }
            sorted_n[place] = key;
            index_n[place] = index;
        }
}

}  // namespace lucid
