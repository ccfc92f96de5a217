# libsluice_cuda.so: our own kernels, models/cuda/*.cu, which libsluice_models.so loads when a pipeline is on a GPU. Nothing links it, so
# that the program needs no CUDA, and a machine without nvcc builds everything else.

# A100; H100 and H200; B200. Those that this nvcc knows; the last one's intermediate code is what newer GPUs translate.
function(_sluice_cuda_architectures result)
  execute_process(COMMAND ${NVCC_PROGRAM} --list-gpu-code OUTPUT_VARIABLE known)
  set(found "")
  foreach(architecture 80 90 100)
    if(known MATCHES "sm_${architecture}\n")
      list(APPEND found ${architecture})
    endif()
  endforeach()
  list(POP_BACK found newest)
  list(TRANSFORM found APPEND -real)
  set(${result} ${found} ${newest} PARENT_SCOPE)
endfunction()

if(SLUICE_CUDA AND SLUICE_TORCH AND NOT SLUICE_SANITIZE)
  find_program(NVCC_PROGRAM nvcc HINTS $ENV{CUDA_HOME}/bin $ENV{CUDA_PATH}/bin /usr/local/cuda/bin)
  if(NVCC_PROGRAM)
    set(CMAKE_CUDA_COMPILER ${NVCC_PROGRAM})
    _sluice_cuda_architectures(CMAKE_CUDA_ARCHITECTURES)
    enable_language(CUDA)
  elseif(NOT SLUICE_CUDA STREQUAL AUTO)
    message(FATAL_ERROR "SLUICE_CUDA=${SLUICE_CUDA}, but there is no nvcc: install the CUDA toolkit, or set CUDA_HOME")
  else()
    message(STATUS "no nvcc: our CUDA kernels are not built")
  endif()
endif()

function(sluice_cuda_library)
  if(NOT CMAKE_CUDA_COMPILER_LOADED)
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/models/cuda/*.cu)
  add_library(sluice_cuda SHARED ${sources})
  target_include_directories(sluice_cuda PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(sluice_cuda PRIVATE -Xfatbin=-compress-all)  # code for several cards, a quarter of the size
  # g++ links: the linker's options of the other libraries are not nvcc's. The runtime is the one that LibTorch has loaded by then.
  set_target_properties(sluice_cuda PROPERTIES LINKER_LANGUAGE CXX CUDA_STANDARD 17 CUDA_RUNTIME_LIBRARY Shared)
endfunction()
