# NVTX, when a CUDA toolkit lies where toolkits lie. Its headers are seen by the one file that marks ranges, and nothing is linked.
#
# Defines NVTX_INCLUDE_DIR (false: not found) and sluice_use_nvtx(TARGET), for a target that compiles cli/run/nvtx_ranges.cpp.

find_path(NVTX_INCLUDE_DIR nvtx3/nvToolsExt.h HINTS $ENV{CUDA_HOME}/include $ENV{CUDA_PATH}/include /usr/local/cuda/include)
mark_as_advanced(NVTX_INCLUDE_DIR)

function(sluice_use_nvtx target)
  if(NVTX_INCLUDE_DIR)
    set_property(SOURCE ${PROJECT_SOURCE_DIR}/cli/run/nvtx_ranges.cpp TARGET_DIRECTORY ${target}
                 APPEND PROPERTY COMPILE_OPTIONS -isystem ${NVTX_INCLUDE_DIR})
  endif()
endfunction()
