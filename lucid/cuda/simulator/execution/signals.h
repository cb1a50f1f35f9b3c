#pragma once

#include <signal.h>

namespace lucid_simulator {

// While it lives, what would stop the process does as on a GPU: the least integer divided by -1 gives itself again, and
// the remainder 0; a thread that has used up its stack is an error of the launch.
class Signals {
    struct sigaction before_division;
    stack_t before_stack;

 public:
    Signals();
    ~Signals();
    Signals(const Signals&) = delete;
};

}  // namespace lucid_simulator
