#pragma once

#include <signal.h>

namespace lucid_simulator {

// While it lives, the least integer divided by -1 gives itself again, and the remainder 0, as on a GPU: the host's
// processor would stop the process.
class Dividing {
    struct sigaction before;

   public:
    Dividing();
    ~Dividing();
    Dividing(const Dividing&) = delete;
};

}  // namespace lucid_simulator
