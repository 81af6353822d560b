# level_zero.cmake -- the tests of the Level Zero backend run on its stand-in (tests/simulators), where Intel's OpenCL runtime for CPUs and
# libocloc are installed; a second time with a driver that keeps no order by itself, and with work that is late and as disordered as it may be.
set(_tack_standins "${CMAKE_CURRENT_LIST_DIR}/../../tests/simulators/standins.py")
set(_tack_ze_reason 1)
set(_tack_ze_missing "needs Linux and a build without sanitizers, which know nothing of the OpenCL runtime's threads")
if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT CMAKE_CROSSCOMPILING AND TACK_SANITIZE STREQUAL "off")
  execute_process(COMMAND "${_tack_objects_python}" "${_tack_standins}" --check level_zero
                  RESULT_VARIABLE _tack_ze_reason ERROR_VARIABLE _tack_ze_missing)
endif()
file(GLOB _tack_ze_tests CONFIGURE_DEPENDS test_ze_*.cpp)
add_custom_target(tack_ze_tests) # all of them, and nothing that they do not need
foreach(source IN LISTS _tack_ze_tests)
  cmake_path(GET source STEM name)
  add_dependencies(tack_ze_tests ${name})
  if(_tack_ze_reason EQUAL 0)
    set_property(TEST cpp/${name} APPEND PROPERTY ENVIRONMENT "TACK_SIM_DEVICES=2")
    set_property(TARGET ${name} PROPERTY CROSSCOMPILING_EMULATOR "${_tack_objects_python};${_tack_standins};level_zero")
    add_test(NAME cpp/${name}-barriers COMMAND ${name})
    set_tests_properties(cpp/${name}-barriers PROPERTIES TIMEOUT 300 ENVIRONMENT
                         "TACK_CACHE=0;TACK_SIM_DEVICES=2;TACK_SIM_DRIVER=65540;TACK_SIM_ORDER=delayed;TACK_SIM_DELAY=20")
  else()
    message(STATUS "${name} does not run: ${_tack_ze_missing}")
    set_property(TEST cpp/${name} PROPERTY DISABLED ON)
  endif()
endforeach()
