// Matrices and vectors as the simulated cuSPARSE describes them, and the way of its calls to the stream.
#pragma once

#include <limits>

#include "libraries/calls.h"

namespace lucid_simulator {

enum Format { by_rows = 1, by_columns = 2, by_both = 3 };  // CSR, CSC and COO
enum Order { column_major = 1, row_major = 2 };

// Places of elements, of either size.
struct Indices {
    void* data;
    int64_t count;
    int type;  // cusparseIndexType_t

    static bool is_known(int type) { return type == 2 || type == 3; }
    size_t element() const { return type == 3 ? sizeof(int64_t) : sizeof(int32_t); }
    int64_t operator[](int64_t i) const { return type == 3 ? ((int64_t*)data)[i] : ((int32_t*)data)[i]; }
    void set(int64_t i, int64_t value) const {
        if (type == 3)
            ((int64_t*)data)[i] = value;
        else
            ((int32_t*)data)[i] = (int32_t)value;
    }
    Vector<char> bytes() const { return {(char*)data, (ptrdiff_t)(count * element())}; }
};
inline Indices indices_of(const int* data, int64_t count) { return {(void*)data, count, 2}; }

// What an index leads to. One that leads out of it is reported as the access that it makes, and not used.
struct Target {
    const void* data;
    size_t element;
    int64_t count;

    bool has(int64_t i) const {
        if (i >= 0 && i < count) return true;
        const uintptr_t begin = (uintptr_t)data;
        touch({{i < 0 ? begin + i * element : begin, (i < 0 ? -i : i + 1) * element, false}});
        return false;
    }
};

struct SparseMatrix {
    int format;
    int64_t rows, columns, count;
    Indices major, minor;  // offsets of rows or columns, or rows; columns, or rows
    void* values;
    int base, type;
    int fill = lower, diagonal = 0;  // of a triangle: 1 if ones stand on it

    bool is_transposed() const { return format == by_columns; }
    // Calls run(row, column, place) for each element whose place and index lie within `minors`; false if one did not.
    template <class Run> bool each(const Target& minors, const Target& majors, const Run& run) const {
        const Target places{minor.data, minor.element(), count};
        auto element = [&](int64_t outer, int64_t place) {
            const int64_t inner = minor[place] - base;
            if (!minors.has(inner) || !majors.has(outer)) return false;
            is_transposed() ? run(inner, outer, place) : run(outer, inner, place);
            return true;
        };
        if (format == by_both) {
            for (int64_t place = 0; place < count; ++place)
                if (!element(major[place] - base, place)) return false;
            return true;
        }
        for (int64_t outer = 0; outer + 1 < major.count; ++outer)
            for (int64_t place = major[outer] - base; place < major[outer + 1] - base; ++place)
                if (!places.has(place) || !element(outer, place)) return false;
        return true;
    }
};

struct Description {  // cusparseMatDescr
    int type = 0, fill = 0, diagonal = 0, base = 0;
};

struct SparseVector {
    int64_t size, count;
    Indices indices;
    void* values;
    int base, type;
};
struct DenseVector {
    int64_t size;
    void* values;
    int type;
};
struct DenseMatrix {
    int64_t rows, columns, line;
    void* values;
    int type, order;

    // As a matrix of cuBLAS, by columns: transposed if it is by rows.
    template <class T> Matrix<T> stored() const {
        const bool turned = order == row_major;
        return {(T*)values, (int)(turned ? columns : rows), (int)(turned ? rows : columns), (int)line};
    }
};

// Where op() of a dense matrix has its elements.
template <class T> struct Seen {
    T* data;
    int64_t down, along;

    Seen(const DenseMatrix& x, int operation) : data((T*)x.values), down(1), along(x.line) {
        if ((x.order == row_major) != (operation != plain)) std::swap(down, along);
    }
    T& operator()(int64_t i, int64_t j) const { return data[i * down + j * along]; }
};

constexpr size_t buffer_bytes = 64;
inline int buffer_of(Handle* handle, size_t* size) {
    return with_handle(handle, [&] { return size ? (*size = buffer_bytes, success) : invalid_value; });
}
// A function that tells the size of the buffer of another, of whose parameters the types are given.
#define LUCID_BUFFER(NAME, ...) \
    LUCID_CUDA int NAME(Handle* handle, __VA_ARGS__, size_t* size) { return buffer_of(handle, size); }

// Whatever lies in the buffer is lost.
inline Call& with_buffer(Call& call, void* at) { return call.scratch((char*)at, buffer_bytes, buffer_bytes); }
template <class T> Ranges& reads_matrix(Call& call, const SparseMatrix& x) {
    return call.reads(x.major.bytes()).reads(x.minor.bytes()).reads(Vector{(const T*)x.values, x.count});
}

}  // namespace lucid_simulator
