# libsluice_cuda.so: our own kernels, models/cuda/*.cu, which libsluice_models.so loads when a pipeline is on a GPU. Nothing links it, so
# that the program needs no CUDA, and a machine without nvcc builds everything else.
function(sluice_cuda_library)
  if(NOT SLUICE_CUDA OR SLUICE_SANITIZE)
    return()
  endif()
  find_program(NVCC_PROGRAM nvcc HINTS $ENV{CUDA_HOME}/bin $ENV{CUDA_PATH}/bin /usr/local/cuda/bin)
  if(NOT NVCC_PROGRAM)
    if(NOT SLUICE_CUDA STREQUAL AUTO)
      message(FATAL_ERROR "SLUICE_CUDA=${SLUICE_CUDA}, but there is no nvcc: install the CUDA toolkit, or set CUDA_HOME")
    endif()
    message(STATUS "no nvcc: our CUDA kernels are not built")
    return()
  endif()
  set(CMAKE_CUDA_COMPILER ${NVCC_PROGRAM})
  set(CMAKE_CUDA_ARCHITECTURES 90)  # H100 and H200; its intermediate code is what newer GPUs translate
  enable_language(CUDA)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/models/cuda/*.cu)
  add_library(sluice_cuda SHARED ${sources})
  target_include_directories(sluice_cuda PRIVATE ${PROJECT_SOURCE_DIR})
  # g++ links: the linker's options of the other libraries are not nvcc's. The runtime is the one that LibTorch has loaded by then.
  set_target_properties(sluice_cuda PROPERTIES LINKER_LANGUAGE CXX CUDA_STANDARD 20 CUDA_RUNTIME_LIBRARY Shared)
endfunction()
