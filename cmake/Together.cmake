# Files of one folder are compiled together, some at a time: what they all include is parsed once, which halves the time of a cold build.
#
# Names within anonymous namespaces of a folder must differ therefore. The presets `tsan` and `debug` compile each file
# alone: there a file that does not include what it uses fails, and editors find each file in compile_commands.json.

option(SLUICE_TOGETHER "Compile files of one folder together" ON)

set(_files_together 8)  # a change of one of them compiles them all: some 15 s

# sluice_compile_together(sluice_models EXCEPT kernels sample): all of the target but these folders of its own.
function(sluice_compile_together target)
  cmake_parse_arguments(arg "" "" "EXCEPT" ${ARGN})
  if(NOT SLUICE_TOGETHER)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(SORT sources)
  set(last_folder "")
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET folder FILENAME name)
    if(name IN_LIST arg_EXCEPT)
      continue()
    endif()
    if(NOT folder STREQUAL last_folder)
      set(last_folder ${folder})
      set(count 0)
      cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE group)
      string(REPLACE "/" "_" group ${group})
    endif()
    math(EXPR part "${count} / ${_files_together}")
    math(EXPR count "${count} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group}_${part})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
