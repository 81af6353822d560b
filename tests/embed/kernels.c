/* kernels.c -- kernels of the embedding host in the form that libtack calls: words of parameters, and a piece of the index range. */
#include <stdint.h>

/* words: address of x, address of out, bits of the f64 factor. out[i] = x[i] * factor */
void scale(const uint64_t* words, int64_t begin, int64_t end) {
  const double* x = (const double*)(uintptr_t)words[0];
  double* out = (double*)(uintptr_t)words[1];
  union {
    uint64_t bits;
    double value;
  } factor;
  factor.bits = words[2];
  for (int64_t i = begin; i < end; ++i) out[i] = x[i] * factor.value;
}

/* words: address of out. A few microseconds of integer work for each element. */
void churn(const uint64_t* words, int64_t begin, int64_t end) {
  uint64_t* out = (uint64_t*)(uintptr_t)words[0];
  for (int64_t i = begin; i < end; ++i) {
    uint64_t state = (uint64_t)i + 1;
    for (int step = 0; step < 2000; ++step) state = state * 6364136223846793005u + 1442695040888963407u;
    out[i] = state;
  }
}
