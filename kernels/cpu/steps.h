// The steps of optimizers on the CPU: what loops that are made of formulas (lucid/optim/base/algebra.py) call.
//
// A loop passes once over the rows of a table: the addresses of gradient, parameter and state, of as many elements each.

#ifndef LUCID_STEPS_H
#define LUCID_STEPS_H

#include "cpu.h"

// The arrays of a row lie apart, as who calls has looked.
#define LUCID_APART _Pragma("GCC ivdep")

namespace lucid {

using std::fabs;
using std::sqrt;

// The first of equal ones; NaN if either is.
template <class A> inline A larger(A a, A b) { return a >= b || a != a ? a : b; }
template <class A> inline A smaller(A a, A b) { return a <= b || a != a ? a : b; }

}  // namespace lucid

#endif  // LUCID_STEPS_H
