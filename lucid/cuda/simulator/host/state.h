// What the parts of the simulated driver and runtime share: errors, devices, threads, and Python's part of the work.
#pragma once

#include <functional>
#include <string>

#include "host/queue.h"

namespace lucid_simulator {

// Of cudaError_t; the driver's CUresult has the same numbers.
enum Status : int {
    success = 0,
    invalid_value = 1,
    no_memory = 2,
    no_device = 100,
    invalid_device = 101,
    invalid_image = 200,
    no_context = 201,
    file_not_found = 301,
    invalid_handle = 400,
    illegal_state = 401,
    not_found = 500,
    not_ready = 600,
    illegal_address = 700,
    timed_out = 702,
    peer_enabled = 704,
    peer_not_enabled = 705,
    assertion = 710,
    misaligned = 716,
    launch_failed = 719,
    not_supported = 801,
    stream_capture_unsupported = 900,
    stream_capture_invalidated = 901,
    stream_capture_merge = 902,
    stream_capture_unmatched = 903,
    stream_capture_unjoined = 904,
    stream_capture_isolation = 905,
    stream_capture_implicit = 906,
    captured_event = 907,
    stream_capture_wrong_thread = 908,
    unknown_error = 999,
};

// Keeps the code for cudaGetLastError, and the words for the text of the error; returns the code.
int fail(int code, const std::string& words = "");
// The words are CUDA's, and what they are about.
int fail_with(int code, const std::string& what);
// Adds to the words of the failure that was told last, unless they tell the place already.
void fail_more(const std::string& words, const std::string& where);
// Answers another code for the failure that was told last, with its words.
int fail_as(int code);
// The code of a kernel that did what the report says.
int code_of_fault(const std::string& report);

int device_count();
// Of the calling thread; asking for it makes the thread known to Python.
int current_device();
int set_current_device(int device);
// Whether the thread has used a device, and so has a context; the runtime's functions make one.
bool has_context();
void make_context();
bool may_reach(int device, int other);
// Bytes of memory of each device.
size_t capacity();

// As queue_work, for the driver's own work; `everywhere`: also in memory of devices to which there is no peer access.
int queue_own(void* stream, const std::string& name, const std::vector<Touched>& touched,
              const std::function<void()>& work, bool everywhere);

// What Python does for the libraries, which call it by `ask`: what it gives comes by lucid_answer. A null one does nothing.
struct Python {
    // Gives an NVRTC error and the log, or 0 and what the source becomes. Names and options are joined by 0x1f.
    void (*compile)(const char* source, const char* names, const char* options);
    // A library of kernels was loaded; of no unit: gives how many variables it has.
    void (*load)(const char* path, const void* unit);
    // A thread uses a device, and is not known yet; gives whether it is now.
    void (*enter)();
    // Gives a report with lines of the source in it.
    void (*explain)(const char* report, const char* library);
    // Gives which lines of Python queue what is queued now.
    void (*where)();
};
extern Python python;

struct Answer {
    bool given;
    int number;
    std::string text;
};
// Gives what Python answers to a call. A Ctrl-C may come at any line of Python, also at the first: there is no answer
// then, and the Ctrl-C comes again, where Python goes on.
Answer ask(const std::function<void()>& call);

// Lets Python answer signals that have come. Whether an answer was an error, as that to a Ctrl-C is: it comes again where
// Python goes on. Only in Python's main thread.
bool signalled();

// What tests count; lucid.cuda.simulator.counting has the same fields.
struct Counts {
    uint64_t launches, library, bytes_loaded, bytes_stored, allocations, to_device, to_host, copies, synchronisations;
};
extern Counts counts;

}  // namespace lucid_simulator
