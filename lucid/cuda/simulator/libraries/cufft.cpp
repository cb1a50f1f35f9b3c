// cuFFT as CuPy calls it, on one device: every transform is computed in double and rounded once.
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "libraries/numbers.h"
#include "host/queue.h"

namespace {

using namespace lucid_simulator;
using Number = Complex<double>;
using Numbers = std::vector<Number>;
using Index = long long;

// Of cufft.h.
enum Answer {
    success = 0,
    invalid_plan = 1,
    invalid_type = 3,
    invalid_value = 4,
    exec_failed = 6,
    invalid_size = 8,
    not_implemented = 14
};
enum Type { R2C = 0x2a, C2R = 0x2c, C2C = 0x29, D2Z = 0x6a, Z2D = 0x6c, Z2Z = 0x69 };
constexpr int forward = -1, inverse = 1, most_dimensions = 3;

// ---- transforms of one line ----

// Exact at quarters.
Number turn(double share) {
    const double quarters = std::nearbyint(4 * share), rest = M_PI / 2 * (4 * share - quarters);
    const Number found{std::cos(rest), std::sin(rest)}, directions[] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
    return found * directions[(long long)quarters & 3];
}

// By the definition.
Numbers directly(const Numbers& x, int sign) {
    const size_t n = x.size();
    Numbers out(n), turns(n);
    for (size_t k = 0; k < n; ++k) turns[k] = turn(sign * (double)k / n);
    for (size_t k = 0; k < n; ++k)
        for (size_t j = 0; j < n; ++j) out[k] = out[k] + x[j] * turns[j * k % n];
    return out;
}

Numbers transformed(const Numbers& x, int sign);

// Bluestein's: jk is (j^2 + k^2 - (k - j)^2) / 2, by which a transform of any size is a convolution, here of a power of 2.
Numbers by_convolution(const Numbers& x, int sign) {
    const size_t n = x.size();
    size_t wide = 1;
    while (wide < 2 * n - 1) wide *= 2;
    Numbers chirp(n), weighed(wide), kernel(wide);
    for (size_t k = 0; k < n; ++k) {
        chirp[k] = turn(sign * (double)(k * k % (2 * n)) / (2 * n));
        weighed[k] = x[k] * chirp[k];
        kernel[k] = kernel[(wide - k) % wide] = conjugate(chirp[k]);
    }
    weighed = transformed(weighed, forward), kernel = transformed(kernel, forward);
    for (size_t k = 0; k < wide; ++k) weighed[k] = weighed[k] * kernel[k];
    weighed = transformed(weighed, inverse);
    Numbers out(n);
    for (size_t k = 0; k < n; ++k) out[k] = weighed[k] * chirp[k] * Number(1.0 / wide);
    return out;
}

// Cooley's and Tukey's by the smallest factor.
Numbers transformed(const Numbers& x, int sign) {
    constexpr size_t few = 32;
    const size_t n = x.size();
    size_t factor = 2;
    while (factor * factor <= n && n % factor) ++factor;
    if (n % factor || n == factor) return n <= few ? directly(x, sign) : by_convolution(x, sign);
    const size_t rest = n / factor;
    std::vector<Numbers> parts(factor, Numbers(rest));
    for (size_t j = 0; j < n; ++j) parts[j % factor][j / factor] = x[j];
    for (Numbers& part : parts) part = transformed(part, sign);
    Numbers out(n), column(factor);
    for (size_t k = 0; k < rest; ++k) {
        for (size_t r = 0; r < factor; ++r) column[r] = parts[r][k] * turn(sign * (double)(r * k) / n);
        const Numbers mixed = directly(column, sign);
        for (size_t q = 0; q < factor; ++q) out[k + q * rest] = mixed[q];
    }
    return out;
}

// ---- plans ----

using Sizes = std::array<Index, most_dimensions>;

// Where element (i, j, k) of a transform lies, counted in elements.
struct Layout {
    Sizes embedded;
    Index stride, distance;
    Index at(Index transform, const Sizes& place) const {
        const auto [i, j, k] = place;
        return transform * distance + ((i * embedded[1] + j) * embedded[2] + k) * stride;
    }
};

struct Plan {
    void* stream = nullptr;
    char* workspace = nullptr;
    size_t workspace_bytes = 0;
    int type = 0;
    Sizes sizes{}, read{}, written{};  // of the transform, and of what is stored of it on both sides
    Layout from{}, to{};
    Index batch = 0;
};

std::mutex lock;
std::map<int, Plan> plans;

template <class Change> int with_plan(int handle, Change change) {
    std::lock_guard<std::mutex> guard(lock);
    const auto found = plans.find(handle);
    return found == plans.end() ? (int)invalid_plan : change(found->second);
}

template <class F> void each(const Sizes& sizes, F function) {
    for (Index i = 0; i < sizes[0]; ++i)
        for (Index j = 0; j < sizes[1]; ++j)
            for (Index k = 0; k < sizes[2]; ++k) function(Sizes{i, j, k});
}

Index flat(const Sizes& sizes, const Sizes& place) { return (place[0] * sizes[1] + place[1]) * sizes[2] + place[2]; }

void transform_along(int dimension, Numbers& x, const Sizes& sizes, int sign) {
    Sizes first = sizes, step{};
    first[dimension] = 1, step[dimension] = 1;
    const Index distance = flat(sizes, step);
    Numbers line(sizes[dimension]);
    each(first, [&](const Sizes& place) {
        Number* begin = &x[flat(sizes, place)];
        for (size_t k = 0; k < line.size(); ++k) line[k] = begin[k * distance];
        const Numbers out = transformed(line, sign);
        for (size_t k = 0; k < line.size(); ++k) begin[k * distance] = out[k];
    });
}

// The other half of a spectrum of real numbers is the first one's conjugate, and what is its own conjugate is real.
Numbers whole(const Numbers& half, const Sizes& read, const Sizes& sizes) {
    Numbers out(sizes[0] * sizes[1] * sizes[2]);
    each(sizes, [&](const Sizes& place) {
        const Index k = place[2], mirrored = (sizes[2] - k) % sizes[2];
        const Number found = half[flat(read, {place[0], place[1], k < read[2] ? k : mirrored})];
        out[flat(sizes, place)] = k == mirrored ? Number(found.real) : k < read[2] ? found : conjugate(found);
    });
    return out;
}

template <class R> void store(R& out, Number x) { out = (R)x.real; }
template <class R> void store(Complex<R>& out, Number x) { out = {(R)x.real, (R)x.imaginary}; }
template <class R> Number load(R x) { return {(double)x}; }
template <class R> Number load(Complex<R> x) { return {(double)x.real, (double)x.imaginary}; }

template <class In, class Out> void transform(const Plan& plan, In* in, Out* out, int sign) {
    constexpr bool to_real = !is_complex<Out>;
    for (Index b = 0; b < plan.batch; ++b) {
        Numbers x(plan.read[0] * plan.read[1] * plan.read[2]);
        each(plan.read, [&](const Sizes& place) { x[flat(plan.read, place)] = load(in[plan.from.at(b, place)]); });
        for (int dimension : {0, 1}) transform_along(dimension, x, plan.read, sign);
        if (to_real) x = whole(x, plan.read, plan.sizes);
        transform_along(2, x, plan.sizes, sign);
        each(plan.written, [&](const Sizes& place) { store(out[plan.to.at(b, place)], x[flat(plan.sizes, place)]); });
    }
}

template <class T> Touched span(T* data, const Layout& layout, const Sizes& sizes, Index batch, bool stores) {
    const Index last = layout.at(batch - 1, {sizes[0] - 1, sizes[1] - 1, sizes[2] - 1});
    return {(uintptr_t)data, (last + 1) * sizeof(T), stores};
}

template <class In, class Out> int execute(const char* name, int handle, int type, In* in, Out* out, int sign) {
    return with_plan(handle, [&](const Plan& plan) -> int {
        if (!plan.type) return invalid_plan;
        if (plan.type != type) return invalid_type;
        if (sign != forward && sign != inverse) return invalid_value;
        // cuFFT may overwrite what a transform to real numbers reads
        const bool spoils = !is_complex<Out> && (const void*)in != (const void*)out;
        const std::vector<Touched> touched{span(in, plan.from, plan.read, plan.batch, spoils),
                                           span(out, plan.to, plan.written, plan.batch, true),
                                           {(uintptr_t)plan.workspace, plan.workspace_bytes, true}};
        const auto work = [plan, in, out, sign, spoils] {
            transform(plan, in, out, sign);
            std::memset(plan.workspace, 0xff, plan.workspace_bytes);
            if (!spoils) return;
            for (Index b = 0; b < plan.batch; ++b)
                each(plan.read, [&](const Sizes& place) { store(in[plan.from.at(b, place)], Number(NAN)); });
        };
        return queue_work(plan.stream, name, touched, work) ? exec_failed : success;
    });
}

Layout layout_of(int rank, const int* embedded, int stride, int distance, const Sizes& stored) {
    if (!embedded) return {stored, 1, stored[0] * stored[1] * stored[2]};
    Layout made{{1, 1, 1}, stride, distance};
    for (int d = 0; d < rank; ++d) made.embedded[most_dimensions - rank + d] = embedded[d];
    return made;
}

}  // namespace

LUCID_CUDA int cufftGetVersion(int* out) { return *out = LUCID_VERSION, success; }
LUCID_CUDA int cufftCreate(int* out) {
    static int last = 0;
    std::lock_guard<std::mutex> guard(lock);
    plans[*out = ++last] = {};
    return success;
}
LUCID_CUDA int cufftDestroy(int handle) {
    std::lock_guard<std::mutex> guard(lock);
    return plans.erase(handle) ? success : invalid_plan;
}
// Workspaces are the caller's: CuPy always asks for that.
LUCID_CUDA int cufftSetAutoAllocation(int handle, int automatic) {
    return with_plan(handle, [&](Plan&) { return automatic ? not_implemented : success; });
}
LUCID_CUDA int cufftSetWorkArea(int handle, void* area) {
    return with_plan(handle, [&](Plan& plan) { return plan.workspace = (char*)area, success; });
}
LUCID_CUDA int cufftSetStream(int handle, void* stream) {
    return with_plan(handle, [&](Plan& plan) { return plan.stream = stream, success; });
}

LUCID_CUDA int cufftMakePlanMany(int handle, int rank, const int* n, const int* from, int from_stride,
                                 int from_distance, const int* to, int to_stride, int to_distance, int type, int batch,
                                 size_t* workspace_bytes) {
    return with_plan(handle, [&](Plan& plan) -> int {
        if (plan.type) return invalid_plan;
        if (rank < 1 || rank > most_dimensions || batch < 1) return invalid_value;
        plan.sizes = {1, 1, 1};
        for (int d = 0; d < rank; ++d) {
            if (n[d] < 1) return invalid_size;
            plan.sizes[most_dimensions - rank + d] = n[d];
        }
        Sizes half = plan.sizes;
        half[2] = half[2] / 2 + 1;
        plan.read = type == C2R || type == Z2D ? half : plan.sizes;
        plan.written = type == R2C || type == D2Z ? half : plan.sizes;
        plan.from = layout_of(rank, from, from_stride, from_distance, plan.read);
        plan.to = layout_of(rank, to, to_stride, to_distance, plan.written);
        plan.batch = batch, plan.type = type;
        const bool twice = type == D2Z || type == Z2D || type == Z2Z;
        plan.workspace_bytes = batch * plan.sizes[0] * plan.sizes[1] * plan.sizes[2] * (twice ? 16 : 8);
        return *workspace_bytes = plan.workspace_bytes, success;
    });
}
LUCID_CUDA int cufftMakePlan1d(int handle, int n, int type, int batch, size_t* workspace_bytes) {
    return cufftMakePlanMany(handle, 1, &n, nullptr, 1, 0, nullptr, 1, 0, type, batch, workspace_bytes);
}

#define LUCID_COMPLEX(NAME, R)                                                                   \
    LUCID_CUDA int cufftExec##NAME(int handle, Complex<R>* in, Complex<R>* out, int direction) { \
        return execute("cufftExec" #NAME, handle, NAME, in, out, direction);                     \
    }
LUCID_COMPLEX(C2C, float)
LUCID_COMPLEX(Z2Z, double)
#define LUCID_REAL(NAME, IN, OUT, DIRECTION)                                 \
    LUCID_CUDA int cufftExec##NAME(int handle, IN* in, OUT* out) {           \
        return execute("cufftExec" #NAME, handle, NAME, in, out, DIRECTION); \
    }
LUCID_REAL(R2C, float, Complex<float>, forward)
LUCID_REAL(C2R, Complex<float>, float, inverse)
LUCID_REAL(D2Z, double, Complex<double>, forward)
LUCID_REAL(Z2D, Complex<double>, double, inverse)

// Of several devices, and of half types.
#define LUCID_ABSENT(NAME) \
    LUCID_CUDA int NAME() { return not_implemented; }
LUCID_ABSENT(cufftXtSetGPUs)
LUCID_ABSENT(cufftXtSetWorkArea)
LUCID_ABSENT(cufftXtMemcpy)
LUCID_ABSENT(cufftXtExecDescriptorC2C)
LUCID_ABSENT(cufftXtExecDescriptorZ2Z)
LUCID_ABSENT(cufftXtMakePlanMany)
LUCID_ABSENT(cufftXtExec)
