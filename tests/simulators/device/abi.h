// device/abi.h -- what the simulator's engine and a module of compiled kernels know of each other; both include it, so it includes nothing.
#pragma once

struct SimIndex {
  unsigned x, y, z;
};

enum SimAccess : unsigned { SIM_READ = 0, SIM_WRITE = 1, SIM_ATOMIC = 2, SIM_ATOMIC_READ = 3, SIM_ALIGNED = 4 };

enum SimWarp : unsigned { SIM_SYNC, SIM_SHUFFLE, SIM_SHUFFLE_UP, SIM_SHUFFLE_DOWN, SIM_SHUFFLE_XOR, SIM_BALLOT };

enum SimVote : unsigned { SIM_VOTE_NONE, SIM_VOTE_COUNT, SIM_VOTE_AND, SIM_VOTE_OR };

// What kernels ask of the engine. All calls are made on the fiber of the thread that asks.
struct SimServices {
  // An access that the window does not cover. Does not return where the access is illegal.
  void (*access)(unsigned long address, unsigned long size, unsigned kind);
  // A barrier of the whole block; site tells barriers in the text apart. Returns the vote's result.
  int (*barrier)(unsigned site, unsigned vote, int value);
  // A collective of the warp's lanes in mask: what other lanes gave, by operation.
  unsigned long long (*warp)(unsigned operation, unsigned mask, unsigned long long value, unsigned argument, unsigned width);
  // One texel or filtered value, as 4 floats.
  void (*texture)(unsigned long long object, unsigned dimensions, float x, float y, float z, float* texel);
  // Ends the launch: an assertion of the kernel failed (false: it called __trap).
  void (*fail)(const char* what, bool assertion);
  long long (*clock)();
};

// Addresses that kernels may use without asking: the running thread's stack and the allocations used last.
struct SimRange {
  unsigned long start, size;
};
enum { SIM_RECENT = 4 };
struct SimWindow {
  SimRange stack;
  SimRange recent[SIM_RECENT];
  unsigned next;  // which of them is replaced next
};

struct SimKernel {
  const char* name;
  void (*launch)(void** parameters);
  const unsigned *sizes, *alignments;
  unsigned parameters;
  unsigned max_threads;  // of __launch_bounds__; 0: not given
};

// Exported by every module under the name sim_module.
struct SimModule {
  unsigned version;
  SimIndex *thread, *block, *block_size, *grid_size;
  SimServices* services;
  SimWindow* window;
  const SimKernel *kernels, *kernels_end;
  char *shared, *shared_end;          // variables declared in shared memory
  char* dynamic_shared;               // what a launch asks for on top
  unsigned long dynamic_shared_size;  // its capacity
};

enum { SIM_ABI_VERSION = 1 };
