# Apache Arrow and Parquet out of the pyarrow wheel of the version that cmake/pyarrow.txt names: its headers and two libraries, no Python.
#
# Looked for in this order: Pyarrow_ROOT, the active Python's pyarrow, .deps/pyarrow-VERSION/pyarrow, where ./rlhf-run --setup --parquet
# puts it. Another version is passed over: its libraries have other names, and other types after them.
# Defines sluice::pyarrow and Pyarrow_DIRECTORY.

file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/pyarrow.txt _pin REGEX "^pyarrow==")
string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" _version "${_pin}")
string(REGEX REPLACE "\\..*" "" _major ${_version})

set(_candidates ${Pyarrow_ROOT} $ENV{Pyarrow_ROOT})
execute_process(COMMAND python3 -c "import importlib.util as u; s = u.find_spec('pyarrow'); print(s.submodule_search_locations[0] if s else '')"
                OUTPUT_VARIABLE _from_python OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
list(APPEND _candidates ${_from_python} ${CMAKE_CURRENT_LIST_DIR}/../.deps/pyarrow-${_version}/pyarrow)

set(Pyarrow_DIRECTORY "")
foreach(_candidate IN LISTS _candidates)
  if(EXISTS ${_candidate}/include/arrow/util/config.h)
    file(STRINGS ${_candidate}/include/arrow/util/config.h _line REGEX "define ARROW_VERSION_STRING")
    if(_line MATCHES "\"${_version}\"")
      get_filename_component(_headers ${_candidate}/include ABSOLUTE)
      get_filename_component(Pyarrow_DIRECTORY ${_candidate} REALPATH)
      break()
    endif()
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Pyarrow REQUIRED_VARS Pyarrow_DIRECTORY
  REASON_FAILURE_MESSAGE "pyarrow ${_version} was not found: ./rlhf-run --setup --parquet fetches it")

if(Pyarrow_FOUND AND NOT TARGET sluice::pyarrow)
  add_library(sluice::pyarrow INTERFACE IMPORTED)
  target_include_directories(sluice::pyarrow SYSTEM INTERFACE ${_headers})
  file(GLOB _libraries ${Pyarrow_DIRECTORY}/libarrow.so.${_major}* ${Pyarrow_DIRECTORY}/libparquet.so.${_major}*)
  target_link_libraries(sluice::pyarrow INTERFACE ${_libraries})
endif()
