// Matrices and vectors as the simulated cuSPARSE describes them, and the way of its calls to the stream.
#pragma once

#include <cstring>
#include <limits>

#include "libraries/calls.h"

namespace lucid_simulator {

// cusparseStatus_t
inline int answer(int status) {
    switch (status) {
        case invalid_value:
            return 3;
        case execution_failed:
            return 6;
        case not_supported:
            return 10;
        default:
            return status;
    }
}

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
    Vector<char> bytes() const { return {(char*)data, (ptrdiff_t)(count * element()), 1}; }
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
    // Where rows of CSR begin, and columns of CSC; COO has each row.
    static int64_t majors(int format, int64_t rows, int64_t columns, int64_t count) {
        return format == by_both ? count : (format == by_rows ? rows : columns) + 1;
    }
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

    bool is_valid() const { return rows >= 0 && columns >= 0 && line >= (order == row_major ? columns : rows); }
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

// Calls run with a null pointer of the type of a cudaDataType; answers what it does.
template <class Run> int with_values(int type, const Run& run) {
    switch (type) {
        case 0:
            return run((float*)nullptr);
        case 1:
            return run((double*)nullptr);
        case 4:
            return run((Complex<float>*)nullptr);
        case 5:
            return run((Complex<double>*)nullptr);
        default:
            return answer(not_supported);
    }
}
#define LUCID_VALUES(T, null) using T = std::remove_pointer_t<decltype(null)>

constexpr size_t buffer_bytes = 64;
inline int buffer_of(const Handle* handle, size_t* size) {
    Handle found{};
    if (!find_handle(handle, found)) return not_initialized;
    if (!size) return answer(invalid_value);
    return *size = buffer_bytes, success;
}

struct SparseCall : Call {
    using Call::Call;

    // Whatever lies in it is lost.
    SparseCall& buffer(void* at) {
        expect(at);
        if (!answer()) writes(Vector<char>{(char*)at, buffer_bytes, 1});
        garbage = (char*)at;
        return *this;
    }
    SparseCall& reads_indices(const Indices& x) {
        if (!answer()) reads(x.bytes());
        return *this;
    }
    SparseCall& writes_indices(const Indices& x) {
        if (!answer()) writes(x.bytes());
        return *this;
    }
    template <class T> SparseCall& reads_matrix(const SparseMatrix& x) {
        reads_indices(x.major).reads_indices(x.minor);
        if (!answer()) reads(Vector<const T>{(const T*)x.values, (ptrdiff_t)x.count, 1});
        return *this;
    }
    template <class Work> int queue(const Work& work) const {
        return lucid_simulator::answer(run([=, at = garbage] {
            if (at) std::memset(at, 0xFF, buffer_bytes);
            work();
        }));
    }
    template <class R, class Compute> int tell(R* result, const Compute& compute) {
        return lucid_simulator::answer(give(result, compute));
    }
    // Into memory of the host, whatever the pointer mode.
    template <class R, class Compute> int tell_host(R* result, const Compute& compute) {
        const int queued = run([=] { *result = compute(); });
        return lucid_simulator::answer(queued ? queued : wait());
    }

 private:
    char* garbage = nullptr;
};

}  // namespace lucid_simulator
