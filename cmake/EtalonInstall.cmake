# What `cmake --install` puts into a prefix: the libraries, their public headers, the CMake package `etalon`, files for
# pkg-config. Where the CMAKE_INSTALL_*DIR are relative, each file finds the others from its own place, so the whole
# prefix may be moved.
include(CheckLinkerFlag)
include(CMakePackageConfigHelpers)

# An ABI lasts for a major version, before 1.0 for a minor one.
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(etalon_abi_version ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  set(etalon_compatibility SameMinorVersion)
else()
  set(etalon_abi_version ${PROJECT_VERSION_MAJOR})
  set(etalon_compatibility SameMajorVersion)
endif()

# Of each library: the target, the set of targets that it is exported in, its .pc file. Sets of their own, since who
# asks for etalon::etalon alone is not to look for threads.
set(etalon_libraries etalon)
set(etalon_export_sets etalon-targets)
set(etalon_pc_files etalon)
if(TARGET etalon_thread_pool)
  list(APPEND etalon_libraries etalon_thread_pool)
  list(APPEND etalon_export_sets etalon-thread_pool-targets)
  list(APPEND etalon_pc_files etalon-thread-pool)
endif()
set_target_properties(${etalon_libraries} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${etalon_abi_version})

# The compiler's driver adds the C++ run-time and libm to every shared library. Ours use neither, and a program in C
# should not have to load them.
check_linker_flag(CXX LINKER:--as-needed ETALON_LINKER_KNOWS_AS_NEEDED)
if(ETALON_LINKER_KNOWS_AS_NEEDED)
  foreach(library IN LISTS etalon_libraries)
    get_target_property(type ${library} TYPE)
    if(type STREQUAL "SHARED_LIBRARY")
      target_link_options(${library} PRIVATE LINKER:--as-needed)
    endif()
  endforeach()
endif()

option(ETALON_INSTALL "Make install rules for the libraries" ${ETALON_TOP_LEVEL})
if(NOT ETALON_INSTALL)
  return()
endif()

set(etalon_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/etalon)

foreach(library export_set IN ZIP_LISTS etalon_libraries etalon_export_sets)
  install(TARGETS ${library} EXPORT ${export_set}
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT etalon_runtime
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT etalon_runtime NAMELINK_COMPONENT etalon_development
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT etalon_development)
  install(EXPORT ${export_set} NAMESPACE etalon:: DESTINATION ${etalon_cmake_dir} COMPONENT etalon_development)
endforeach()

set(etalon_header_patterns PATTERN *.h PATTERN *.hpp)
if(NOT TARGET etalon_thread_pool)
  list(APPEND etalon_header_patterns PATTERN thread_pool.* EXCLUDE)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/lib/include/etalon DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT etalon_development FILES_MATCHING ${etalon_header_patterns})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/licenses/etalon
  COMPONENT etalon_development)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/etalon-config.cmake.in
  ${PROJECT_BINARY_DIR}/etalon-config.cmake
  INSTALL_DESTINATION ${etalon_cmake_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/etalon-config-version.cmake
  COMPATIBILITY ${etalon_compatibility})
install(FILES ${PROJECT_BINARY_DIR}/etalon-config.cmake ${PROJECT_BINARY_DIR}/etalon-config-version.cmake
  DESTINATION ${etalon_cmake_dir} COMPONENT etalon_development)

# The .pc files lie in libdir/pkgconfig, so many steps below the prefix as that has parts.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(etalon_pc_prefix ${CMAKE_INSTALL_PREFIX})
  set(etalon_pc_libdir ${CMAKE_INSTALL_LIBDIR})
else()
  file(RELATIVE_PATH etalon_pc_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
  string(REGEX REPLACE "/$" "" etalon_pc_prefix "\${pcfiledir}/${etalon_pc_prefix}")
  set(etalon_pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
endif()
if(IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(etalon_pc_includedir ${CMAKE_INSTALL_INCLUDEDIR})
else()
  set(etalon_pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
# In a .pc file a blank ends a word.
foreach(variable IN ITEMS etalon_pc_prefix etalon_pc_libdir etalon_pc_includedir)
  string(REPLACE " " "\\ " ${variable} "${${variable}}")
endforeach()

# Of a static library, also what it needs: there is no other to which --static could make a difference.
set(etalon_pc_thread_libs "")
if(NOT BUILD_SHARED_LIBS)
  set(etalon_pc_thread_libs " -pthread")
endif()
foreach(name IN LISTS etalon_pc_files)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
    COMPONENT etalon_development)
endforeach()
