// main.cpp -- doctest's main function, compiled once for all test programs.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#define DOCTEST_CONFIG_NO_POSIX_SIGNALS  // the stand-in drivers catch a kernel's wild accesses by signals; a crash is seen by ctest too
#include <doctest/doctest.h>
