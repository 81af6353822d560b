// tack/export.hpp -- TACK_API: marks what libtack exports; everything else is hidden.
#pragma once

#if defined(_WIN32)
#  if defined(TACK_BUILD)
#    define TACK_API __declspec(dllexport)
#  else
#    define TACK_API __declspec(dllimport)
#  endif
#else
#  define TACK_API __attribute__((visibility("default")))
#endif
