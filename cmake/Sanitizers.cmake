# What is different in a build with sanitizers: SLUICE_SANITIZE names them, SLUICE_FUZZ adds what libFuzzer needs.

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

# sluice_compile_quickly(sluice_engine standard): not optimized where there are sanitizers, which halves the time to compile; reads that
# set of precompiled headers (see PrecompiledHeaders.cmake). Not for what reads much data.
function(sluice_compile_quickly target set)
  if(SLUICE_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
    set(set quick_${set})
  endif()
  sluice_precompile(${target} ${set})
endfunction()

# How tests themselves count and branch is not looked at: a third of the time to compile them.
function(sluice_trust_arithmetic target)
  if(SLUICE_SANITIZE MATCHES "undefined")
    target_compile_options(${target} PRIVATE -fno-sanitize=undefined)
  endif()
  if(SLUICE_FUZZ)
    target_compile_options(${target} PRIVATE -fno-sanitize=fuzzer-no-link)
  endif()
endfunction()
