# Writes one add_test for each suite of a GoogleTest program. Run by the build, after the linking of PROGRAM; see sluice_tests in Modules.cmake.
# To start a program for each test would take longer than most tests: 0.3 s with LibTorch.

include(${CMAKE_CURRENT_LIST_DIR}/TestLabels.cmake)
execute_process(COMMAND ${PROGRAM} --gtest_list_tests WORKING_DIRECTORY ${FOLDER} OUTPUT_VARIABLE list RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "${PROGRAM} does not list its tests: ${failed}")
endif()
string(REGEX MATCHALL "[^\n]+" lines "${list}")
set(text "")
foreach(line IN LISTS lines)
  if(line MATCHES "^([A-Za-z0-9_/]+)\\.")
    set(suite ${CMAKE_MATCH_1})
    sluice_label(${PREFIX}${suite} label)
    string(APPEND text "add_test([[${PREFIX}${suite}]] ${PROGRAM} [[--gtest_filter=${suite}.*]])\n"
                       "set_tests_properties([[${PREFIX}${suite}]] PROPERTIES WORKING_DIRECTORY ${FOLDER} TIMEOUT 600 LABELS ${label})\n")
  endif()
endforeach()
file(WRITE ${OUTPUT} "${text}")
