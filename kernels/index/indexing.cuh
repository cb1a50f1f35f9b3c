// Where elements that are named by an index lie.
//
// Elements e are counted over at most MAX_DIMS dimensions d; each array that takes part has a stride, in elements of its
// own, for each of them. An index of `size` places, `along` elements apart in the table, moves on from there:
//     table offset = sum_d e_d * table_d + place * along,   place = index[sum_d e_d * index_d]
// With `wrap`, places from -size on count from the end. No other place exists: what lies there reads as zero, and nothing
// is written to it.
//
// Device functions only. lucid/cuda/launch/indexing.py builds these structs.

#ifndef LUCID_INDEXING_CUH
#define LUCID_INDEXING_CUH

#include "lucid.cuh"

namespace lucid {

constexpr int MAX_DIMS = 8;

// Offsets of one element in the three arrays.
struct Offsets {
    long long table, index, other;
};

struct Walk {
    long long count;  // of dimensions
    long long size_d[MAX_DIMS], table_d[MAX_DIMS], index_d[MAX_DIMS], other_d[MAX_DIMS];

    __device__ __forceinline__ Offsets operator()(long long e) const {
        Offsets at = {0, 0, 0};
#pragma unroll 1
        for (int d = (int)count - 1; d >= 0; --d) {
            const long long before = d ? quotient(e, size_d[d]) : 0, place = e - before * size_d[d];
            at.table += place * table_d[d];
            at.index += place * index_d[d];
            at.other += place * other_d[d];
            e = before;
        }
        return at;
    }
};

struct Places {
    long long size, along, wrap;

    // The place that an index means, -1 for none.
    __device__ __forceinline__ long long operator()(long long index) const {
        if (wrap && index < 0) index += size;
        return index >= 0 && index < size ? index : -1;
    }
};

// 16 bytes that stand for an element of any smaller type.
struct Bits {
    unsigned long long low, high;

    template <typename U> __device__ __forceinline__ U as() const {
        static_assert(sizeof(U) <= sizeof(Bits), "an element has at most 16 bytes");
        union Overlay {
            Bits bits;
            U value;
            __device__ __forceinline__ Overlay(Bits bits) : bits(bits) {}
        };
        return Overlay(*this).value;
    }
};

}  // namespace lucid

#endif
