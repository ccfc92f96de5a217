# One shared library a folder of the tree: sluice_module(engine PUBLIC ... PRIVATE ...) makes libsluice_engine from engine/**.cpp.
# Shared, because a plugin must see the same type information as the program that loads it.
function(sluice_module name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${name}/*.cpp)
  add_library(sluice_${name} SHARED ${sources})
  add_library(sluice::${name} ALIAS sluice_${name})
  target_include_directories(sluice_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                   $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>  # <sluice/engine/run/run.h>
                                                   $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/sluice>)
  target_compile_features(sluice_${name} PUBLIC cxx_std_20)
  target_link_libraries(sluice_${name} ${ARGN})
  set_target_properties(sluice_${name} PROPERTIES DEFINE_SYMBOL "" EXPORT_NAME ${name} VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
endfunction()

# One test program a folder of tests/: sluice_tests(engine LIBRARIES ...) makes tests/engine/**_test.cpp into sluice_engine_test.
# EXCEPT: folders of it that are left out.
function(sluice_tests name)
  cmake_parse_arguments(arg "" "" "EXCEPT" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${name}/*.cpp)
  foreach(folder IN LISTS arg_EXCEPT)
    list(FILTER sources EXCLUDE REGEX "/tests/${name}/${folder}/")
  endforeach()
  if(NOT sources)
    return()
  endif()
  add_executable(sluice_${name}_test ${sources})
  target_include_directories(sluice_${name}_test PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(sluice_${name}_test PRIVATE ${arg_UNPARSED_ARGUMENTS} GTest::gmock GTest::gtest GTest::gtest_main)
  # What is tested is optimized; its tests take a quarter less time to compile with -O1.
  target_compile_options(sluice_${name}_test PRIVATE -O1)
  target_compile_options(sluice_${name}_test PRIVATE -Wno-dangling-else)  # in long files GCC forgets that it stands in GoogleTest's macros
  sluice_trust_arithmetic(sluice_${name}_test)
  target_link_libraries(sluice_${name}_test PRIVATE sluice_source_folder)
  if(TARGET sluice_models AND name MATCHES "^(models|nodes|devices)$")
    sluice_precompile(sluice_${name}_test tensor_test)
    target_sources(sluice_${name}_test PRIVATE ${PROJECT_SOURCE_DIR}/tests/seed.cpp)
  elseif(name STREQUAL "text")  # these read much JSON themselves
    sluice_precompile(sluice_${name}_test test)
  else()
    sluice_compile_quickly(sluice_${name}_test test)
  endif()
  sluice_compile_together(sluice_${name}_test ONLY "_test\\.cpp$")
  sluice_discover_suites(sluice_${name}_test ${name}:)
endfunction()

# A test for each suite of a program instead of one for each of its tests; see DiscoverSuites.cmake.
function(sluice_discover_suites target prefix)
  set(list ${CMAKE_CURRENT_BINARY_DIR}/${target}_suites.cmake)
  add_custom_command(TARGET ${target} POST_BUILD BYPRODUCTS ${list} VERBATIM
    COMMAND ${CMAKE_COMMAND} -D PROGRAM=$<TARGET_FILE:${target}> -D PREFIX=${prefix} -D FOLDER=${PROJECT_SOURCE_DIR} -D OUTPUT=${list}
            -P ${PROJECT_SOURCE_DIR}/cmake/DiscoverSuites.cmake)
  file(WRITE ${list}.include "if(EXISTS \"${list}\")\n  include(\"${list}\")\nelse()\n  add_test(${target}_NOT_BUILT ${target}_NOT_BUILT)\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${list}.include)
endfunction()

# A text file as a constant of a module: sluice_embed(nodes kPythonWorker nodes/scorers/python/python_worker.py) defines the
# std::string_view sluice::nodes::embedded::kPythonWorker, which a header of the module declares, and kPythonWorkerSha256, its hash in hex.
function(sluice_embed EMBEDDED_MODULE EMBEDDED_NAME EMBEDDED_PATH)
  file(READ ${PROJECT_SOURCE_DIR}/${EMBEDDED_PATH} EMBEDDED_TEXT)
  string(SHA256 EMBEDDED_SHA256 "${EMBEDDED_TEXT}")
  set(source ${PROJECT_BINARY_DIR}/embedded/${EMBEDDED_NAME}.cpp)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/embedded.cpp.in ${source} @ONLY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${EMBEDDED_PATH})
  target_sources(sluice_${EMBEDDED_MODULE} PRIVATE ${source})
endfunction()
