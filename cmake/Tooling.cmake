# Compiler cache, linker, warnings and sanitizers for every target of ours.

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

if(SLUICE_SANITIZE)
  add_compile_options(-fsanitize=${SLUICE_SANITIZE} -fno-omit-frame-pointer -g1 -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${SLUICE_SANITIZE})
  add_compile_definitions(SLUICE_SANITIZED)  # see tests/sanitized.h
  if(SLUICE_SANITIZE MATCHES "undefined")
    # vptr: oneTBB's inline headers downcast task objects before they are constructed. null: AddressSanitizer sees those too, and the
    # checks of every pointer are a sixth of the time to compile.
    add_compile_options(-fno-sanitize=vptr,null)
  endif()
endif()
if(SLUICE_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
