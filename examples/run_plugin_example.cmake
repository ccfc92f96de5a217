# Installs the build, builds the plugin in SOURCE against the install tree, and runs its pipeline with the installed program.
# cmake -D SOURCE=... -D BUILD=... -D PLUGIN=... -D PIPELINE=... -P run_plugin_example.cmake

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message("${output}")
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "failed: ${ARGN}")
  endif()
endfunction()

set(prefix ${BUILD}/install-tree)
set(work ${BUILD}/examples/${PLUGIN})
file(REMOVE_RECURSE ${work})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${work} -G Ninja -D CMAKE_BUILD_TYPE=Release -D CMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${work})
run(${prefix}/bin/rlhf-run ${SOURCE}/${PIPELINE}.toml --run-dir ${work}/run --set "plugins=[\"${work}/lib${PLUGIN}.so\"]")
