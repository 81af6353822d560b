// main.cpp -- doctest's main function, compiled once for all test programs.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#define DOCTEST_CONFIG_NO_POSIX_SIGNALS  // the stand-in drivers catch a kernel's wild accesses by signals; a crash is seen by ctest too
#include <doctest/doctest.h>

// Options of the address sanitizer for every test program, also one that is run by hand; other builds never ask.
//
// GCC's runtime guesses where a dlopened library's thread-local variables begin: by a header before them, if their address looks like that
// of old C libraries, 16 bytes behind a page's begin. Where they are blocks of the heap, as in Debian's, they have that address now and
// then; what is taken for a header then sends the leak check to address 0x2b0. So it is not to look for them.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "intercept_tls_get_addr=0"; }
