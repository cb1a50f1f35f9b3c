// What a wheel of CuPy's names of a library and the simulated one does not have: each is refused by name. Who includes this
// has a function `refuse`, which tells the words and gives the library's code.
#pragma once

#include <string>

#include "host/queue.h"

static int refuse(const std::string& words);

// The assertion takes the semicolon behind a use.
#define REFUSE(NAME)                                                    \
    LUCID_CUDA int NAME() {                                             \
        return refuse("lucid's simulated CUDA devices have no " #NAME   \
                      "; docs/users/simulator.md lists what there is"); \
    }                                                                   \
    static_assert(true)
#define REFUSE_SIZED(NAME) \
    REFUSE(NAME);          \
    REFUSE(NAME##_bufferSize)
