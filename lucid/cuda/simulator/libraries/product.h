// The product of two matrices, in blocks that stay in the cache: what all functions of the simulated cuBLAS that
// multiply matrices are made of.
#pragma once

#include <algorithm>
#include <vector>

#include "libraries/numbers.h"

namespace lucid_simulator {

constexpr int block = 256;                               // rows, columns and terms that are multiplied at a time
constexpr int wide = 4;                                  // columns of a tile, the sums of which stay in registers
template <class R> constexpr int tall = 32 / sizeof(R);  // its rows

// Adds the product of the rows and columns of a tile to the sums, whose columns lie a line apart.
template <class R> void add_tile(int terms, const R* left, const R* right, R* sums, int line) {
    typedef R Column __attribute__((vector_size(32)));
    Column made[wide] = {};
    for (int p = 0; p < terms; ++p) {
        Column factor;
        std::memcpy(&factor, left + p * tall<R>, sizeof factor);
        for (int j = 0; j < wide; ++j) made[j] += factor * right[p * wide + j];
    }
    for (int j = 0; j < wide; ++j)
        for (int i = 0; i < tall<R>; ++i) sums[j * line + i] += made[j][i];
}

// Sums of a block of the product. Complex numbers are multiplied as twice as many real ones, for each part of the sum:
// (a + bi)(c + di) = (ac - bd) + (ad + bc)i.
template <class A> class Block {
    using R = Real<A>;
    static constexpr int parts = Parts<A>::count;

 public:
    template <class Left, class Right>
    void multiply(int first_row, int rows, int first_column, int columns, int depth, const Left& left,
                  const Right& right, bool in_half) {
        line = up(rows, tall<R>);
        const int across = up(columns, wide), step = in_half ? 16 : block / parts;
        for (auto& sum : sums) sum.assign((size_t)line * across, 0);
        for (int p = 0; p < depth; p += step) {
            const int terms = std::min(step, depth - p);
            pack_left(first_row, rows, p, terms, left);
            pack_right(first_column, columns, p, terms, right);
            for (int part = 0; part < parts; ++part)
                for (int j = 0; j < across; j += wide)
                    for (int i = 0; i < line; i += tall<R>)
                        add_tile(terms * parts, &lefts[(size_t)i * terms * parts],
                                 &rights[part][(size_t)j * terms * parts], &sums[part][(size_t)j * line + i], line);
            if (in_half)
                for (auto& sum : sums)
                    for (R& x : sum) x = (R)(Half)x;
        }
    }

    A sum(int i, int j) const {
        const size_t place = (size_t)j * line + i;
        if constexpr (parts == 2)
            return {sums[0][place], sums[1][place]};
        else
            return sums[0][place];
    }

 private:
    static int up(int size, int unit) { return (size + unit - 1) / unit * unit; }

    template <class Left> void pack_left(int first, int rows, int begin, int terms, const Left& left) {
        lefts.resize((size_t)line * terms * parts);
        R* out = lefts.data();
        for (int i = 0; i < line; i += tall<R>)
            for (int p = 0; p < terms; ++p, out += tall<R> * parts)
                for (int r = 0; r < tall<R>; ++r) {
                    const A x = i + r < rows ? left(first + i + r, begin + p) : A(0);
                    if constexpr (parts == 2)
                        out[r] = x.real, out[tall<R> + r] = x.imaginary;
                    else
                        out[r] = x;
                }
    }

    template <class Right> void pack_right(int first, int columns, int begin, int terms, const Right& right) {
        const int across = up(columns, wide);
        size_t place = 0;
        for (auto& packed : rights) packed.resize((size_t)across * terms * parts);
        for (int j = 0; j < across; j += wide)
            for (int p = 0; p < terms; ++p, place += wide * parts)
                for (int c = 0; c < wide; ++c) {
                    const A x = j + c < columns ? right(begin + p, first + j + c) : A(0);
                    R* out = &rights[0][place + c];
                    if constexpr (parts == 2) {
                        R* other = &rights[1][place + c];
                        out[0] = x.real, out[wide] = -x.imaginary;
                        other[0] = x.imaginary, other[wide] = x.real;
                    } else {
                        out[0] = x;
                    }
                }
    }

    int line = 0;
    std::vector<R> lefts, rights[parts], sums[parts];
};

// Calls store(i, j, sum) with the sum of left(i, p) * right(p, j) over all p, for each i and j. In half: the sums are
// rounded to float16 after each 16 terms, about as by tensor cores.
template <class A, class Left, class Right, class Store>
void product(int rows, int columns, int depth, const Left& left, const Right& right, const Store& store,
             bool in_half = false) {
    Block<A> sums;
    for (int j = 0; j < columns; j += block)
        for (int i = 0; i < rows; i += block) {
            const int height = std::min(block, rows - i), width = std::min(block, columns - j);
            sums.multiply(i, height, j, width, depth, left, right, in_half);
            for (int c = 0; c < width; ++c)
                for (int r = 0; r < height; ++r) store(i + r, j + c, sums.sum(r, c));
        }
}

// Of any number of terms, by halves: its error hardly grows with the number.
template <class A, class Term> A pairwise_sum(ptrdiff_t first, ptrdiff_t count, const Term& term) {
    if (count > 64) {
        const ptrdiff_t half = count / 2;
        return pairwise_sum<A>(first, half, term) + pairwise_sum<A>(first + half, count - half, term);
    }
    A sum = 0;
    for (ptrdiff_t i = first; i < first + count; ++i) sum = sum + term(i);
    return sum;
}

}  // namespace lucid_simulator
