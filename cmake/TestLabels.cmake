# The label of each test, by its name: `ctest -L unit`, and `./run-tests --quick` runs what has that label.
#
#   unit    everything else: 5 s or less
#   slow    longer than that, on 2 cores
#   oracle  compares with other systems' packages while it runs
#   fault   kills runs, damages their files, or hands the program what is hostile

set(_oracle_tests "^oracle:|_oracle$")
set(_fault_tests "^cli\\.(elastic|faults|hostile_paths|interrupt|lock|ranks|resume|scorer_faults|sweep)$|^fuzz:|^comm:LostRankTest$|Fault|Crash|Hostile")
set(_slow_tests "^cli\\.(bad_data|bad_model|bad_pipeline|chat|checkpoints|command_line|completion|conventions|data_look|display|fit|hub|init|inspect|learning_rate|schedules)$"
                "^cli\\.(long_run|memory|model|plugins|presets|problems|report|report_serve|run|samples|schema|simulate|top|try)$" "^(pipelines|example|bench):" "^(docs|set_up|tidy)$" "^docs\\." "^python\\." "^cuda\\.(operators|pack)$"
                "^engine:(CapacitySearch|PathsSearch|Plugin|RanksSearch|RolesSearch|ResumeTest|Seeds/.*|Watchdog)$" "^data:RowFileTest$"
                "^text:(Models/RealTokenizer|Small/TokenizerFamily)$" "^models:Passes/ActivationBytesOfSwitches$"
                "^nodes:(CodeTestsTest|Models/Snapshots|ObjectiveProperty|Passes|PythonScorer|Tokens/ActivationBytes.*)$")
list(JOIN _slow_tests "|" _slow_tests)

function(sluice_label test result)
  foreach(label oracle fault slow)
    if(test MATCHES "${_${label}_tests}")
      set(${result} ${label} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${result} unit PARENT_SCOPE)
endfunction()

# Of every test that CMake itself has defined in the current folder.
function(sluice_label_tests)
  get_property(tests DIRECTORY PROPERTY TESTS)
  foreach(test IN LISTS tests)
    sluice_label(${test} label)
    set_property(TEST ${test} PROPERTY LABELS ${label})
  endforeach()
endfunction()
