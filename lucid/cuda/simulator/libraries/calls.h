// What the functions of the simulated cuBLAS and cuSOLVER share: handles, where vectors and matrices lie, and the way of a call from
// its parameters to the stream.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "libraries/numbers.h"
#include "host/queue.h"

// Each function in float, double and their complex types.
#define LUCID_REAL_TYPES(DEFINE) DEFINE(S, float) DEFINE(D, double)
#define LUCID_COMPLEX_TYPES(DEFINE) DEFINE(C, Complex<float>) DEFINE(Z, Complex<double>)
#define LUCID_ALL_TYPES(DEFINE) LUCID_REAL_TYPES(DEFINE) LUCID_COMPLEX_TYPES(DEFINE)

namespace lucid_simulator {

// Enumerations of cublas_api.h.
enum Answer { success = 0, not_initialized = 1, invalid_value = 7, execution_failed = 13, not_supported = 15 };
enum Operation { plain = 0, transposed = 1, adjoint = 2 };
enum Fill { lower = 0, upper = 1 };
enum Side { at_left = 0, at_right = 1 };

struct Handle {
    void* stream;
    int pointer_mode, math_mode;
    char* workspace;
    size_t workspace_bytes;
};

// Whether the handle was made and not destroyed; if so, what is set on it is copied.
bool find_handle(const Handle* handle, Handle& settings);

int make_handle(Handle** handle);
int drop_handle(Handle* handle);
// What the change answers, to which nobody else changes handles; not_initialized for one that there is not.
int with_handle(Handle* handle, const std::function<int()>& change);

// Of a workspace, as a product leaves it.
constexpr size_t garbage_bytes = 256;

// BLAS begins with the last element where the step is negative.
template <class T> struct Vector {
    T* data;
    ptrdiff_t size;
    int step;
    T& operator[](ptrdiff_t i) const { return data[(step < 0 ? i - size + 1 : i) * step]; }
};

// Column by column; step: from one matrix of a stack to the next.
template <class T> struct Matrix {
    T* data;
    int rows, columns, line;
    long long step = 0;
    T& operator()(ptrdiff_t i, ptrdiff_t j) const { return data[i + j * line]; }
    Matrix at(ptrdiff_t place) const { return {data + place * step, rows, columns, line, step}; }
};

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
    template <class T> void reads(const Vector<T>& x) { add(x, false); }
    template <class T> void reads(const Matrix<T>& x, int count = 1) { add(x, count, false); }
    // These answer whether no byte is written twice.
    template <class T> bool writes(const Vector<T>& x) { return add(x, true); }
    template <class T> bool writes(const Matrix<T>& x, int count = 1) { return add(x, count, true); }

    // Parts of columns: in column j the rows from first(j) to before last(j).
    template <class T, class First, class Last>
    void columns(const Matrix<T>& x, bool stores, const First& first, const Last& last) {
        std::vector<Touched> found;
        for (int j = 0; j < x.columns; ++j) put(found, &x(first(j), j), last(j) - first(j), stores);
        merge(found);
    }
    template <class T> void triangle(const Matrix<T>& x, int fill, bool stores, bool without_diagonal = false) {
        columns(
            x, stores, [&](int j) { return fill == lower ? j + without_diagonal : 0; },
            [&](int j) { return fill == lower ? x.rows : j + !without_diagonal; });
    }

    const std::vector<Touched>& list() const { return touched; }

 private:
    template <class T> static void put(std::vector<Touched>& found, T* data, ptrdiff_t size, bool stores) {
        if (size > 0) found.push_back({(uintptr_t)data, size * sizeof(T), stores});
    }
    template <class T> bool add(const Vector<T>& x, bool stores) {
        std::vector<Touched> found;
        if (x.step == 1 || x.step == -1)
            put(found, x.data, x.size, stores);
        else
            for (ptrdiff_t i = 0; i < x.size; ++i) put(found, &x[i], 1, stores);
        return merge(found);
    }
    template <class T> bool add(const Matrix<T>& x, int count, bool stores) {
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
    bool merge(std::vector<Touched>& found);

    std::vector<Touched> touched;
};

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
    Call(std::string name, const Handle* handle);

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
        reads(Vector<const T>{place, 1, 1});
        return {place, {}};
    }

    // Whatever lies in the workspace, if the handle has one, is lost.
    void works();
    // What has become of the call so far: an answer for one that has nothing to do.
    int answer() const { return status; }
    int run(const std::function<void()>& work) const;
    // Of what goes to the host: the call returns when it is there.
    template <class R, class Compute> int give(R* result, const Compute& compute) {
        expect(result);
        if (!status && on_device()) writes(Vector<R>{result, 1, 1});
        const int queued = run([=] { *result = compute(); });
        return queued || on_device() ? queued : wait();
    }

 protected:
    int wait() const;

 private:
    std::string name;
    Handle settings{};
    int status = success;
};

}  // namespace lucid_simulator
