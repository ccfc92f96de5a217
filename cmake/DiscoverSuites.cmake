# Writes one add_test for each suite of a GoogleTest program. Run by the build, behind the linking of PROGRAM; see sluice_tests in Modules.cmake.
# A program that loads LibTorch takes 0.3 s to start: a process for each test would take longer than the tests.

execute_process(COMMAND ${PROGRAM} --gtest_list_tests WORKING_DIRECTORY ${FOLDER} OUTPUT_VARIABLE list RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "${PROGRAM} does not list its tests: ${failed}")
endif()
string(REGEX MATCHALL "[^\n]+" lines "${list}")
set(text "")
foreach(line IN LISTS lines)
  if(line MATCHES "^([A-Za-z0-9_/]+)\\.")
    string(APPEND text "add_test([[${PREFIX}${CMAKE_MATCH_1}]] ${PROGRAM} [[--gtest_filter=${CMAKE_MATCH_1}.*]])\n"
                       "set_tests_properties([[${PREFIX}${CMAKE_MATCH_1}]] PROPERTIES WORKING_DIRECTORY ${FOLDER} TIMEOUT 300)\n")
  endif()
endforeach()
file(WRITE ${OUTPUT} "${text}")
