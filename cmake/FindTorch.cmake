# LibTorch out of the torch wheel, without its TorchConfig.cmake (which demands a full CUDA toolkit).
#
# Looked for in this order: Torch_ROOT, the active Python's torch if its version fits, .deps/python and .deps/python-VERSION.
# Defines sluice::torch (torch_cpu and c10; no CUDA driver needed) and Torch_DIRECTORY.
#
# Headers are named by the path as it was found, links and all: what lies behind .deps of two checkouts has the same name below each, so that
# the compiler cache knows it again. Libraries are named by the folder after the links, where programs find them when .deps is gone.

set(SLUICE_TORCH_VERSION 2.11.0)

function(_torch_version_of directory result)
  set(${result} "" PARENT_SCOPE)
  if(EXISTS ${directory}/version.py)
    file(STRINGS ${directory}/version.py line REGEX "^__version__")
    string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" version "${line}")
    set(${result} ${version} PARENT_SCOPE)
  endif()
endfunction()

set(_candidates ${Torch_ROOT} $ENV{Torch_ROOT})
# The python3 that is active, not the newest installed one (find_package(Python3) prefers that): no import, it takes seconds.
execute_process(COMMAND python3 -c "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
                OUTPUT_VARIABLE _from_python OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
list(APPEND _candidates ${_from_python} ${CMAKE_CURRENT_LIST_DIR}/../.deps/python/torch
     ${CMAKE_CURRENT_LIST_DIR}/../.deps/python-${SLUICE_TORCH_VERSION}/torch)

foreach(_candidate IN LISTS _candidates)
  _torch_version_of(${_candidate} _version)
  if(_version VERSION_EQUAL SLUICE_TORCH_VERSION)
    get_filename_component(_torch_headers ${_candidate}/include ABSOLUTE)
    get_filename_component(Torch_DIRECTORY ${_candidate} REALPATH)
    break()
  elseif(_version)
    message(STATUS "torch ${_version} in ${_candidate} passed over: ${SLUICE_TORCH_VERSION} is needed")
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Torch REQUIRED_VARS Torch_DIRECTORY
  REASON_FAILURE_MESSAGE "torch ${SLUICE_TORCH_VERSION} was not found: ./rlhf-run --setup fetches it, or set Torch_ROOT to the folder of the wheel's torch package")

if(Torch_FOUND AND NOT TARGET sluice::torch)
  add_library(sluice::torch INTERFACE IMPORTED)
  target_include_directories(sluice::torch SYSTEM INTERFACE ${_torch_headers} ${_torch_headers}/torch/csrc/api/include)
  # libtorch_cpu needs libcudart and libcupti, which lie in the nvidia wheels beside it; the wheel's own RPATH finds them only as DT_RPATH.
  file(GLOB_RECURSE _cuda_libraries ${Torch_DIRECTORY}/../nvidia/*/libcudart.so.* ${Torch_DIRECTORY}/../nvidia/*/libcupti.so.*)
  set(_folders ${Torch_DIRECTORY}/lib)
  foreach(_library IN LISTS _cuda_libraries)
    get_filename_component(_folder ${_library} DIRECTORY)
    get_filename_component(_folder ${_folder} REALPATH)
    list(APPEND _folders ${_folder})
  endforeach()
  list(REMOVE_DUPLICATES _folders)
  set(_rpath_options -Wl,--disable-new-dtags)
  foreach(_folder IN LISTS _folders)
    list(APPEND _rpath_options -Wl,-rpath,${_folder} -Wl,-rpath-link,${_folder})
  endforeach()
  target_link_options(sluice::torch INTERFACE ${_rpath_options})
  target_link_libraries(sluice::torch INTERFACE ${Torch_DIRECTORY}/lib/libtorch_cpu.so ${Torch_DIRECTORY}/lib/libc10.so)
endif()
