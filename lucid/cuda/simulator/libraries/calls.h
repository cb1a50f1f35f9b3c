// What the functions of the simulated cuBLAS and cuSOLVER share: handles, where vectors and matrices lie, and the way of a call from
// its parameters to the stream.
#pragma once

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "libraries/numbers.h"
#include "host/queue.h"

// Each function in float, double and their complex types.
#define LUCID_REAL_TYPES(DEFINE) DEFINE(S, float) DEFINE(D, double)
#define LUCID_COMPLEX_TYPES(DEFINE) DEFINE(C, Complex<float>) DEFINE(Z, Complex<double>)
#define LUCID_ALL_TYPES(DEFINE) LUCID_REAL_TYPES(DEFINE) LUCID_COMPLEX_TYPES(DEFINE)

namespace lucid_simulator {

// Of cublasStatus_t, cusolverStatus_t and cusparseStatus_t; those that differ are defined by each library.
constexpr int success = 0, not_initialized = 1;
extern const int invalid_value, execution_failed, not_supported;
// Enumerations of cublas_api.h.
enum Operation { plain = 0, transposed = 1, adjoint = 2 };
enum Fill { lower = 0, upper = 1 };
enum Side { at_left = 0, at_right = 1 };

struct Handle {
    void* stream;
    int pointer_mode, math_mode;
    char* workspace;
    size_t workspace_bytes;
};

int make_handle(Handle** handle);
int drop_handle(Handle* handle);
// What the change answers, to which nobody else changes handles; not_initialized for one that there is not.
int with_handle(Handle* handle, const std::function<int()>& change);
// Changes a setting of a handle, or gives it.
template <class T> int set(Handle* handle, T Handle::*setting, T value, bool valid = true) {
    return with_handle(handle, [&] { return valid ? (handle->*setting = value, success) : invalid_value; });
}
template <class T> int get(Handle* handle, T Handle::*setting, T* out) {
    return with_handle(handle, [&] { return out ? (*out = handle->*setting, success) : invalid_value; });
}

// Of cudaDataType.
enum Type { R_32F = 0, R_64F = 1, R_16F = 2, C_32F = 4, C_64F = 5, R_16BF = 14 };
// Calls run with a zero of the type; answers what it does.
template <class Run> int with_type(int type, const Run& run) {
    if (type == R_32F) return run(float());
    if (type == R_64F) return run(double());
    if (type == C_32F) return run(Complex<float>());
    if (type == C_64F) return run(Complex<double>());
    return not_supported;
}

// BLAS begins with the last element where the step is negative.
template <class T> struct Vector {
    T* data;
    ptrdiff_t size;
    int step = 1;
    T& operator[](ptrdiff_t i) const { return data[(step < 0 ? i - size + 1 : i) * step]; }
};
template <class T> Vector(T*, ptrdiff_t) -> Vector<T>;
template <class T> Vector(T*, ptrdiff_t, int) -> Vector<T>;

// Column by column; step: from one matrix of a stack to the next.
template <class T> struct Matrix {
    T* data;
    int rows, columns, line;
    long long step = 0;
    T& operator()(ptrdiff_t i, ptrdiff_t j) const { return data[i + j * line]; }
    Matrix at(ptrdiff_t place) const { return {data + place * step, rows, columns, line, step}; }
};
template <class T> Matrix(T*, int, int, int) -> Matrix<T>;
template <class T> Matrix(T*, int, int, int, long long) -> Matrix<T>;

// Each element, of its row and column.
template <class T, class At> void assign(const Matrix<T>& x, const At& at) {
    for (int j = 0; j < x.columns; ++j)
        for (int i = 0; i < x.rows; ++i) x(i, j) = at(i, j);
}

// Of which op() of BLAS has that many rows and columns.
template <class T> Matrix<T> stored(T* data, int operation, int rows, int columns, int line, long long step = 0) {
    if (operation) std::swap(rows, columns);
    return {data, rows, columns, line, step};
}

// A matrix as op() of BLAS shows it to a product, in the type of the sums.
template <class T> struct Operand {
    const T* data;
    ptrdiff_t down, along;
    bool conjugated;

    Operand(const Matrix<const T>& x, int operation)
        : data(x.data),
          down(operation == plain ? 1 : x.line),
          along(operation == plain ? x.line : 1),
          conjugated(operation == adjoint) {}
    auto operator()(ptrdiff_t i, ptrdiff_t j) const {
        const auto value = widen(data[i * down + j * along]);
        return conjugated ? conjugate(value) : value;
    }
};

// Bytes of the operands of a call: of each the fewest ranges, so that what lies between columns is not among them.
class Ranges {
 public:
    template <class T> Ranges& reads(const Vector<T>& x) { return add(x, false); }
    template <class T> Ranges& reads(const Matrix<T>& x, int count = 1) { return add(x, count, false); }
    template <class T> Ranges& writes(const Vector<T>& x) { return add(x, true); }
    template <class T> Ranges& writes(const Matrix<T>& x, int count = 1) { return add(x, count, true); }

    // Parts of columns: in column j the rows from first(j) to before last(j).
    template <class T, class First, class Last>
    Ranges& columns(const Matrix<T>& x, bool stores, const First& first, const Last& last) {
        std::vector<Touched> found;
        for (int j = 0; j < x.columns; ++j) put(found, &x(first(j), j), last(j) - first(j), stores);
        return merge(found);
    }
    template <class T> Ranges& triangle(const Matrix<T>& x, int fill, bool stores, bool without_diagonal = false) {
        return columns(
            x, stores, [&](int j) { return fill == lower ? j + without_diagonal : 0; },
            [&](int j) { return fill == lower ? x.rows : j + !without_diagonal; });
    }

    const std::vector<Touched>& list() const { return touched; }
    // Whether no operand has a byte that is written twice.
    bool writes_once() const { return once; }

 private:
    template <class T> static void put(std::vector<Touched>& found, T* data, ptrdiff_t size, bool stores) {
        if (size > 0) found.push_back({(uintptr_t)data, size * sizeof(T), stores});
    }
    template <class T> Ranges& add(const Vector<T>& x, bool stores) {
        std::vector<Touched> found;
        if (x.step == 1 || x.step == -1)
            put(found, x.data, x.size, stores);
        else
            for (ptrdiff_t i = 0; i < x.size; ++i) put(found, &x[i], 1, stores);
        return merge(found);
    }
    template <class T> Ranges& add(const Matrix<T>& x, int count, bool stores) {
        std::vector<Touched> found;
        for (int place = 0; place < (x.step || stores ? count : std::min(count, 1)); ++place) {
            const Matrix<T> one = x.at(place);
            if (x.line == x.rows)
                put(found, one.data, (ptrdiff_t)x.rows * x.columns, stores);
            else
                for (int j = 0; j < x.columns; ++j) put(found, &one(0, j), x.rows, stores);
        }
        return merge(found);
    }
    Ranges& merge(std::vector<Touched>& found);

    std::vector<Touched> touched;
    bool once = true;
};
// As `touch` of a list.
inline bool touch(const Ranges& found) { return touch(found.list()); }

// The numbers from 0 on, stably sorted by `less` of two of them.
template <class Less> std::vector<int> order_of(int64_t count, const Less& less) {
    std::vector<int> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), less);
    return order;
}

// A factor in memory of the host is read when the call is made, one in memory of the device when the work runs.
template <class T> struct Factor {
    const T* place;
    T value;

    T get() const { return place ? *place : value; }
    bool surely(T other) const { return !place && value == other; }
};

// One call: its parameters are checked, what it touches is collected, and its work is queued.
class Call : public Ranges {
 public:
    Call(std::string name, Handle* handle);

    // What cuBLAS refuses with CUBLAS_STATUS_INVALID_VALUE.
    Call& expect(bool valid);
    Call& expect_operation(int operation) { return expect(operation >= plain && operation <= adjoint); }
    template <class T> Call& expect(const Matrix<T>& x) {
        return expect(x.rows >= 0 && x.columns >= 0 && x.line >= std::max(1, x.rows));
    }
    bool on_device() const { return settings.pointer_mode == 1; }

    template <class T> Factor<T> factor(const T* place) {
        expect(place);
        if (status) return {};
        if (!on_device()) return {nullptr, *place};
        reads(Vector{place, 1});
        return {place, {}};
    }

    // Scratch memory, of which at least so many elements are needed: it is garbage when the work runs.
    template <class T> Call& scratch(T* at, long long needed, long long given) {
        expect(at && given >= needed);
        garbage = {(char*)at, (ptrdiff_t)(needed * sizeof(T))};
        writes(garbage);
        return *this;
    }
    // The handle's workspace, if it has one.
    void works();
    // Codes of how it went, one for each matrix.
    Call& tells(int* info, int count = 1) {
        expect(info && count >= 0).writes(Vector{info, count});
        return *this;
    }
    // What has become of the call so far: an answer for one that has nothing to do.
    int answer() const { return status; }
    int run(const std::function<void()>& work) const;
    // Of what goes to the host: the call returns when it is there.
    template <class R, class Compute> int give_host(R* result, const Compute& compute) {
        expect(result);
        const int queued = run([=] { *result = compute(); });
        return queued ? queued : wait();
    }
    template <class R, class Compute> int give(R* result, const Compute& compute) {
        if (!on_device()) return give_host(result, compute);
        expect(result).writes(Vector{result, 1});
        return run([=] { *result = compute(); });
    }

 private:
    int wait() const;

    std::string name;
    Handle settings{};
    Vector<char> garbage{};
    int status = success;
};

}  // namespace lucid_simulator
