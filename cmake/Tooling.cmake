# Compiler cache, linker and warnings for every target of ours.

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths in the checkout count as relative ones, so that a second checkout finds what the first has compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
endif()

find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM)
  add_link_options(-fuse-ld=mold)
endif()

add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wno-missing-field-initializers;-fno-math-errno;-fno-semantic-interposition>")
# -O2 without debug info: a torch file with -g takes twice as long to write as to compile.
set(CMAKE_CXX_FLAGS_RELEASE "-O2")

# GCC looks for memory to use again from 128 MB on, which takes it a tenth of its time. It may have more where there is enough: a quarter of
# what each compiler gets if there is one on each core.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  cmake_host_system_information(RESULT _megabytes QUERY TOTAL_PHYSICAL_MEMORY)
  cmake_host_system_information(RESULT _cores QUERY NUMBER_OF_LOGICAL_CORES)
  math(EXPR _kilobytes "${_megabytes} * 1024 / ${_cores} / 4")
  if(_kilobytes GREATER 1500000)
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=1500000>")
  endif()
endif()
