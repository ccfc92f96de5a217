# libsluice_columnar.so: columnar/, the only part that knows Apache Arrow, which libsluice_data.so loads when a file is Parquet or Arrow.
# Nothing links it, so the program needs no Arrow, and a machine without pyarrow's wheel builds everything else.

set(SLUICE_PARQUET AUTO CACHE STRING "Build what reads Parquet and Arrow files: ON, OFF or AUTO, where pyarrow's wheel is")

function(sluice_columnar_library)
  if(NOT SLUICE_PARQUET)
    return()
  elseif(SLUICE_PARQUET STREQUAL AUTO)
    find_package(Pyarrow MODULE QUIET)
  else()
    find_package(Pyarrow MODULE REQUIRED)
  endif()
  if(NOT Pyarrow_FOUND)
    message(STATUS "no pyarrow: what reads Parquet is not built (./rlhf-run --setup --parquet)")
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/columnar/*.cpp)
  add_library(sluice_columnar SHARED ${sources})
  target_include_directories(sluice_columnar PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(sluice_columnar PRIVATE sluice_base sluice_data sluice::pyarrow)
  sluice_precompile(sluice_columnar standard)
endfunction()
