# Folders through our code and back into transformers; see folder_round_trip.py.
add_executable(sluice_folder_driver ${CMAKE_CURRENT_LIST_DIR}/folder_driver.cpp)
target_link_libraries(sluice_folder_driver PRIVATE sluice_models)
add_test(NAME oracle:model_folders
         COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/run.py ${CMAKE_CURRENT_LIST_DIR}/folder_round_trip.py
                 $<TARGET_FILE:sluice_folder_driver>
                 ${PROJECT_SOURCE_DIR}/tests/golden/models
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(oracle:model_folders PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77)
