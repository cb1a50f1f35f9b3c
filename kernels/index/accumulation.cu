// Sums of up to eight arrays, read once: out_i = a_i + b_i + ... + h_i, from left to right. Launched by
// lucid/cuda/launch/accumulation.py through lucid/cuda/launch/elementwise.py; shapes and launch are those of elementwise.cuh. Absent
// terms are the number -0, which changes nothing. Half types are added in float and rounded once; to go on with a sum
// of more terms unrounded, a is float.

#include "elementwise.cuh"

struct Total {
    template <class A, class... More> __device__ A operator()(A a, More... more) const { return (a + ... + more); }
};

template <class T, class F, bool PACKED, class Out, class A, class B, class C, class D, class E, class G, class H,
          class I>
__global__ void octonary(Layout<9> layout, Out* out, Operand<A> a, Operand<B> b, Operand<C> c, Operand<D> d,
                         Operand<E> e, Operand<G> f, Operand<H> g, Operand<I> h) {
    map<T, F, PACKED>(Counted<8>::type(), layout, out, a, b, c, d, e, f, g, h);
}
