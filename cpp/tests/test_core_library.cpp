// test_core_library.cpp -- libraries opened at run time: the order of the search, and functions that are not there.
#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

#include "core/library.h"
#include "core/native_function.h"

using tack::Library;

TEST_CASE("the first name that can be opened is taken; the reason tells of all that were tried") {
  const std::array<std::string, 2> nothing{"libtack-has-no-such.so.1", "libtack-has-no-such.so.2"};
  const Library none = Library::open("", nothing);
  CHECK(!none.loaded());
  CHECK(none.find("strlen") == nullptr);
  CHECK(none.reason().find("libtack-has-no-such.so.1") != std::string::npos);
  CHECK(none.reason().find("\nlibtack-has-no-such.so.2") != std::string::npos);

  const std::array<std::string, 2> second{"libtack-has-no-such.so.1", "libc.so.6"};
  const Library found = Library::open("", second);
  REQUIRE(found.loaded());
  CHECK(found.name() == "libc.so.6");
  CHECK(found.find("strlen") != nullptr);
  CHECK(found.find("tack_has_no_such_function") == nullptr);
}

TEST_CASE("a library that is loaded already goes before one that is found first") {
  // libutil is there on every glibc system, but no program of today is linked to it.
  const std::array<std::string, 2> names{"libutil.so.1", "libc.so.6"};
  CHECK(Library::open("", names).name() == "libc.so.6");
}

TEST_CASE("folders without the library are passed over silently; a library that was asked for is the only one") {
  const std::array<std::string, 2> names{"/nowhere/libc.so.6", "libtack-has-no-such.so.1"};
  const Library none = Library::open("", names);
  CHECK(none.reason().find("/nowhere") == std::string::npos);
  const std::array<std::string, 1> usual{"libc.so.6"};
  const Library chosen = Library::open("/nowhere/libc.so.6", usual);
  CHECK(!chosen.loaded());
  CHECK(chosen.reason().find("/nowhere/libc.so.6") != std::string::npos);
}

TEST_CASE("functions: found, optional, missing") {
  const std::array<std::string, 1> names{"libc.so.6"};
  const Library library = Library::open("", names);
  std::vector<std::string> missing;
  tack::NativeFunction<std::size_t, const char*> length{"strlen"};
  tack::find_function(library, length, true, missing);
  REQUIRE(length);
  CHECK(length("four") == 4);
  CHECK(missing.empty());
  CHECK(tack::missing_text(missing).empty());
  tack::NativeFunction<int, int> absent{"tack_has_no_such"};
  tack::find_function(library, absent, false, missing);
  CHECK(!absent);
  CHECK(missing.empty());
  for (int i = 0; i < 3; ++i) tack::find_function(library, absent, true, missing);
  CHECK(tack::missing_text(missing) == "tack_has_no_such, tack_has_no_such, tack_has_no_such");
  tack::find_function(library, absent, true, missing);
  CHECK(tack::missing_text(missing) == "tack_has_no_such, tack_has_no_such, tack_has_no_such and 1 more");
}
