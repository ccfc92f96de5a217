# Writes one add_test for each suite of a GoogleTest program. Run by the build, after the linking of PROGRAM; see sluice_tests in Modules.cmake.
# To start a program for each test would take longer than most tests: 0.3 s with LibTorch.

include(${CMAKE_CURRENT_LIST_DIR}/TestLabels.cmake)
execute_process(COMMAND ${PROGRAM} --gtest_list_tests WORKING_DIRECTORY ${FOLDER} OUTPUT_VARIABLE list RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "${PROGRAM} does not list its tests: ${failed}")
endif()
string(REGEX MATCHALL "[^\n]+" lines "${list}")
set(text "")

macro(add_as name filter)
  sluice_label(${PREFIX}${name} label)
  string(APPEND text "add_test([[${PREFIX}${name}]] ${PROGRAM} [[--gtest_filter=${filter}]])\n"
                     "set_tests_properties([[${PREFIX}${name}]] PROPERTIES WORKING_DIRECTORY ${FOLDER} TIMEOUT 1500 LABELS ${label})\n")
endmacro()

# A suite over seeds is long: with a sanitizer it would take one core for minutes while the other waits.
foreach(line IN LISTS lines)
  if(line MATCHES "^([A-Za-z0-9_/]+)\\.")
    set(suite ${CMAKE_MATCH_1})
    if(NOT suite MATCHES "^Seeds/")
      add_as(${suite} ${suite}.*)
    endif()
  elseif(suite MATCHES "^Seeds/" AND line MATCHES "^  ([A-Za-z0-9_/]+)")
    add_as(${suite}.${CMAKE_MATCH_1} ${suite}.${CMAKE_MATCH_1})
  endif()
endforeach()
file(WRITE ${OUTPUT} "${text}")
