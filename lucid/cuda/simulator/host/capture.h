// Work that streams record between cudaStreamBeginCapture and cudaStreamEndCapture, and the graphs that run it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lucid_simulator {

struct Block;

// A piece of work: runs on the stream that it is given, and returns a Status.
using Run = std::function<int(void* stream)>;

// What a capture has recorded, to be run any number of times.
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

// Runs work, or lets the stream record it if it captures.
int submit(void* stream, const std::string& name, const Run& run);
// Whether the thread is in a capture.
bool is_captured_by_thread();
// A block of memory was given to the thread, or given back: a graph does both again, the first by the function.
void record_given_out(const Block& block, void (*give_out_again)(const Block& block));
void record_given_back(const Block& block);

// The place in a capture that an event was recorded at.
struct Mark;
// Sets `out` to such a place if the stream captures, else to null.
int mark_place(void* stream, std::shared_ptr<Mark>* out);
// Lets a stream wait for an event: for its mark, if it was recorded in a capture.
int wait_for(void* stream, const void* event, const std::shared_ptr<Mark>& mark, bool recorded);

// 0, or CUDA's error for a call that a capture forbids, which ends that capture:
// of what asks for a stream or waits for it, for an event or its mark, for a device,
int check_asked(void* stream, const std::string& call);
int check_asked(const std::shared_ptr<Mark>& mark, const std::string& call);
int check_device_asked(int device, const std::string& call);
// of what may wait for the device (cudaMalloc and its like), unless the capture is relaxed,
int check_unsafe(const std::string& call);
// and of what no graph can hold.
int check_uncapturable(void* stream, const std::string& call);
// The stream goes.
void leave_capture(void* stream);
// Ends the capture that began at the stream, and gives what it has recorded; or CUDA's error.
int end_capture(void* stream, Graph* out);

}  // namespace lucid_simulator
