# The program, the libraries, the headers that plugins and programs need, a package for find_package(sluice), the pipelines with the small
# models and data that they name, the examples, the Python package and the documentation.

include(CMakePackageConfigHelpers)

set(_targets sluice_base sluice_data sluice_engine sluice_dsl sluice_text)
set(_folders base data engine dsl text)
if(TARGET sluice_columnar)
  list(APPEND _targets sluice_columnar)
endif()
if(SLUICE_TORCH)
  list(APPEND _targets sluice_models sluice_comm sluice_nodes sluice_program)
  if(TARGET sluice_cuda)
    list(APPEND _targets sluice_cuda)
  endif()
  list(APPEND _folders models comm nodes)
endif()

# Found beside the program and beside each other wherever the install tree is moved to.
foreach(_target IN LISTS _targets)
  set_target_properties(${_target} PROPERTIES INSTALL_RPATH "$ORIGIN;$ORIGIN/../${CMAKE_INSTALL_LIBDIR}" INSTALL_RPATH_USE_LINK_PATH ON)
endforeach()

install(TARGETS ${_targets} EXPORT sluice-targets
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(_folder IN LISTS _folders)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${_folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sluice FILES_MATCHING PATTERN "*.h")
endforeach()

set(_package ${CMAKE_INSTALL_LIBDIR}/cmake/sluice)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/sluice-config.cmake.in ${PROJECT_BINARY_DIR}/sluice-config.cmake
  INSTALL_DESTINATION ${_package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sluice-config-version.cmake COMPATIBILITY ExactVersion)
install(FILES ${PROJECT_BINARY_DIR}/sluice-config.cmake ${PROJECT_BINARY_DIR}/sluice-config-version.cmake
  ${PROJECT_SOURCE_DIR}/cmake/FindTorch.cmake DESTINATION ${_package})
install(EXPORT sluice-targets NAMESPACE sluice:: DESTINATION ${_package})

# Laid out as in the checkout, so that links of the documentation and what examples extend lead somewhere.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/pipelines ${PROJECT_SOURCE_DIR}/examples ${PROJECT_SOURCE_DIR}/docs
  DESTINATION ${CMAKE_INSTALL_DATADIR}/sluice PATTERN "__pycache__" EXCLUDE)
foreach(_page README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE)
  install(FILES ${PROJECT_SOURCE_DIR}/${_page} DESTINATION ${CMAKE_INSTALL_DATADIR}/sluice)
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/sluice DESTINATION ${CMAKE_INSTALL_DATADIR}/sluice/python
  FILES_MATCHING PATTERN "*.py" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)
