// What a capture has recorded, to be run any number of times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/capture.h"

namespace lucid_simulator {

struct Item {
    std::string name, where;  // and the lines of Python that queued it; without a name it is no work
    int device;
    size_t branch;
    Run run;
};

struct Graph {
    std::vector<Item> items;
    std::vector<int> devices;  // of the branches
    uint64_t newest;           // memory that there was at the end of the capture
};

// Gives the handle of a graph.
void* new_graph(Graph graph);

}  // namespace lucid_simulator
