// In the place of CuPy's header of this name, which takes these from cuda::std: g++ has them in std.
#pragma once
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

namespace cuda {
namespace std = ::std;
}
