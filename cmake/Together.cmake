# Files of one folder are compiled together, some at a time: what they all include is parsed once, which halves the time of a cold build.
#
# Names within anonymous namespaces of a folder must differ therefore; those of a test are in a namespace of its file, where any name
# is free. The preset `debug` compiles each file alone: there a file that does not include what it uses fails, and editors find each
# file in compile_commands.json.

option(SLUICE_TOGETHER "Compile files of one folder together" ON)

set(_files_together 8)  # a change of one of them compiles them all: some 15 s

# sluice_compile_together(sluice_models EXCEPT kernels sample): all of the target but these folders of its own.
# sluice_compile_together(sluice_nodes_test ONLY "_test\\.cpp$"): what has such a name. A source of two targets of one folder must be
# compiled alone in both, or in the same company.
#
# Not CMake's unity build, whose files name others by the whole path of the checkout: the compiler cache would not know them in a second one.
function(sluice_compile_together target)
  cmake_parse_arguments(arg "" "ONLY" "EXCEPT" ${ARGN})
  if(NOT SLUICE_TOGETHER)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  if(arg_ONLY)
    list(FILTER sources INCLUDE REGEX "${arg_ONLY}")
  endif()
  list(SORT sources)
  set(folder_of_part "")
  set(part_sources "")
  foreach(source IN LISTS sources ITEMS "")  # the last one ends the last part
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET folder FILENAME name)
    list(LENGTH part_sources count)
    if(NOT folder STREQUAL folder_of_part OR count EQUAL _files_together)
      _sluice_compile_part(${target} "${folder_of_part}" ${part_sources})
      set(folder_of_part ${folder})
      set(part_sources "")
    endif()
    if(source AND NOT name IN_LIST arg_EXCEPT)
      list(APPEND part_sources ${source})
    endif()
  endforeach()
endfunction()

# One source that includes these, of one folder; a single one stays as it is.
function(_sluice_compile_part target folder)
  list(LENGTH ARGN count)
  if(count LESS 2)
    return()
  endif()
  set(text "")
  foreach(source IN LISTS ARGN)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    string(APPEND text "#include \"${source}\"\n")
  endforeach()
  cmake_path(GET ARGV2 STEM first)
  cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
  set(together ${PROJECT_BINARY_DIR}/together/${folder}/${first}.cpp)
  file(CONFIGURE OUTPUT ${together} CONTENT "${text}" @ONLY)
  set_source_files_properties(${ARGN} PROPERTIES HEADER_FILE_ONLY ON)
  target_sources(${target} PRIVATE ${together})
endfunction()
