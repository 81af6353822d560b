# objects.cmake -- makes the object files of the loader's tests with llvmlite, and tells those tests where they lie.
set(TACK_TEST_PYTHON "" CACHE FILEPATH "A Python with llvmlite, which makes the objects of the loader's tests; empty: the one that CMake finds")
if(TACK_TEST_PYTHON)
  set(_tack_objects_python "${TACK_TEST_PYTHON}")
else()
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(_tack_objects_python "${Python3_EXECUTABLE}")
endif()
execute_process(COMMAND "${_tack_objects_python}" -c "import llvmlite" RESULT_VARIABLE _tack_objects_failed OUTPUT_QUIET ERROR_QUIET)
if(_tack_objects_failed)
  message(FATAL_ERROR "The tests of the object loader need llvmlite, which ${_tack_objects_python} lacks: pip install llvmlite, "
                      "or name another Python with -DTACK_TEST_PYTHON=...; -DTACK_BUILD_TESTS=OFF leaves the C++ tests out")
endif()

set(_tack_objects_folder "${CMAKE_CURRENT_BINARY_DIR}/objects")
add_custom_command(
  OUTPUT "${_tack_objects_folder}/made"
  COMMAND "${_tack_objects_python}" "${CMAKE_CURRENT_LIST_DIR}/make_objects.py" "${_tack_objects_folder}"
  COMMAND "${CMAKE_COMMAND}" -E touch "${_tack_objects_folder}/made"
  DEPENDS "${CMAKE_CURRENT_LIST_DIR}/make_objects.py"
  COMMENT "Making object files for the loader's tests"
  VERBATIM)
add_custom_target(tack_test_objects DEPENDS "${_tack_objects_folder}/made")

foreach(name IN ITEMS test_object_loader test_object_damage)
  add_dependencies(${name} tack_test_objects)
  target_compile_definitions(${name} PRIVATE "TACK_TEST_OBJECTS=\"${_tack_objects_folder}\"")
endforeach()
