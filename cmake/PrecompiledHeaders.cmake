# Headers of libraries that most files read, parsed once: a third of the time to compile is spent in them.
#
# Only headers of the compiler and of libraries stand here, so that no change of ours compiles everything anew. Targets that read the same
# set with the same options share one. A file still includes what it uses: the preset `debug`, where each is compiled alone, builds without.

option(SLUICE_PRECOMPILE_HEADERS "Parse the headers of libraries once" ON)

set(_standard_headers <algorithm> <atomic> <filesystem> <functional> <map> <memory> <mutex> <optional> <set> <span> <sstream> <string>
    <string_view> <unordered_map> <variant> <vector> <nlohmann/json.hpp>)
set(_tensor_headers ${_standard_headers} <ATen/Parallel.h> <ATen/core/Tensor.h> <ATen/core/grad_mode.h>)
set(_operator_headers ${_tensor_headers} <ATen/ops/cat.h> <ATen/ops/empty.h> <ATen/ops/matmul.h> <ATen/ops/tensor.h> <ATen/ops/zeros.h>)
set(_test_headers ${_standard_headers} <gmock/gmock.h> <gtest/gtest.h>)
set(_quick_standard_headers ${_standard_headers})  # compiled without optimization
set(_quick_test_headers ${_test_headers})          # likewise
set(_program_headers ${_standard_headers})  # as a program is compiled, not as a library
set(_tensor_test_headers ${_test_headers} ${_operator_headers})
set(_address_test_headers ${_tensor_test_headers})  # with a sanitizer
set(_thread_test_headers ${_tensor_test_headers})   # likewise

# sluice_precompile(sluice_nodes tensor): the target reads that set, from the target that did so first.
function(sluice_precompile target set)
  if(NOT SLUICE_PRECOMPILE_HEADERS)
    return()
  endif()
  get_property(owner GLOBAL PROPERTY sluice_precompiled_${set})
  if(owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  else()
    target_precompile_headers(${target} PRIVATE ${_${set}_headers})
    set_property(GLOBAL PROPERTY sluice_precompiled_${set} ${target})
  endif()
endfunction()
