# Which kernel tables are built, and where the headers of Highway and xsimd are.
#
# ETALON_TARGETS is a list of table names, or "all". The scalar table is always there: it fills what others lack. Highway is
# what makes the library fast, so "all" insists on it; the tables of xsimd are a second opinion, which "all" can do without.
set(ETALON_TARGETS all CACHE STRING "Kernel tables to build: all, or a list of table names; scalar is always built")

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(ETALON_KNOWN_TARGETS scalar xsimd-avx2 xsimd-avx512 scalar-fma highway-avx2 highway-avx3) # as in arch/dispatch.cc
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
  set(ETALON_KNOWN_TARGETS scalar xsimd-neon64 highway-neon)
else()
  set(ETALON_KNOWN_TARGETS scalar)
endif()

if(NOT ETALON_TARGETS)
  message(FATAL_ERROR "ETALON_TARGETS is empty: name tables, or all")
endif()
foreach(table IN LISTS ETALON_TARGETS)
  if(NOT table STREQUAL "all" AND NOT table IN_LIST ETALON_KNOWN_TARGETS)
    string(REPLACE ";" ", " known "${ETALON_KNOWN_TARGETS}")
    message(FATAL_ERROR "ETALON_TARGETS: no table is called ${table} here; there are ${known}, or all")
  endif()
endforeach()

# etalon_has_target(NAME VARIABLE): whether that table is to be built.
function(etalon_has_target name variable)
  set(${variable} OFF PARENT_SCOPE)
  if(name MATCHES "^xsimd-" AND NOT ETALON_XSIMD_HEADERS)
    return()
  endif()
  if(name IN_LIST ETALON_KNOWN_TARGETS AND (name IN_LIST ETALON_TARGETS OR "all" IN_LIST ETALON_TARGETS))
    set(${variable} ON PARENT_SCOPE)
  endif()
endfunction()

# etalon_find_newer(WHERE FAULT LIBRARY VERSION_FILE MACRO MINIMUM USER_VARIABLE): into the variable WHERE the folder with the headers of LIBRARY
# (what USER_VARIABLE says, else the system's, else what cmake/deps.sh has brought), or into FAULT what is wrong.
# VERSION_FILE is the header that defines MACRO_MAJOR and MACRO_MINOR.
function(etalon_find_newer where_variable fault_variable library version_file macro minimum user_variable)
  string(REGEX REPLACE "(SOURCE|INCLUDE)_DIR$" SYSTEM_DIR system_variable ${user_variable})
  if(NOT ${user_variable})
    # Not find_package: a cross build may use the host's headers, as long as it sees no others of that folder.
    find_path(${system_variable} ${version_file} NO_CMAKE_FIND_ROOT_PATH)
    if(NOT ${system_variable})
      include(${etalon_SOURCE_DIR}/build/deps/deps.cmake OPTIONAL) # where cmake/deps.sh puts it
    endif()
  endif()
  set(where ${${user_variable}})
  if(NOT where)
    set(where ${${system_variable}})
  endif()
  set(fault "")
  if(NOT where)
    set(fault "${library} ${minimum} or newer was not found")
  else()
    get_filename_component(where ${where} REALPATH BASE_DIR ${CMAKE_SOURCE_DIR}) # a link to a relative path would dangle
    set(version "")
    if(EXISTS ${where}/${version_file})
      file(STRINGS ${where}/${version_file} version REGEX "^#define ${macro}_(MAJOR|MINOR) [0-9]+$")
      string(REGEX REPLACE "[^;]* ([0-9]+)(;|$)" "\\1\\2" version "${version}")
      string(REPLACE ";" "." version "${version}")
    endif()
    if(NOT version)
      set(fault "${library} ${minimum} or newer was not found in ${where}")
    elseif(version VERSION_LESS ${minimum})
      set(fault "${library} in ${where} is ${version}, ${minimum} or newer is needed")
    endif()
  endif()
  set(${where_variable} ${where} PARENT_SCOPE)
  set(${fault_variable} "${fault}" PARENT_SCOPE)
endfunction()

# etalon_highway_headers(VARIABLE): a folder with nothing but Highway's headers that the build needs. Only headers: no
# function of its library is called.
function(etalon_highway_headers variable)
  etalon_find_newer(where fault Highway hwy/base.h HWY 1.2 ETALON_HIGHWAY_SOURCE_DIR)
  if(fault)
    message(FATAL_ERROR "${fault}: run cmake/deps.sh, or set ETALON_HIGHWAY_SOURCE_DIR, or ETALON_TARGETS to scalar tables to do without")
  endif()
  etalon_only(only highway ${where}/hwy)
  set(${variable} ${only} PARENT_SCOPE)
endfunction()

# etalon_xsimd_headers(VARIABLE): the same for xsimd; empty where it is not found and no table of it was named.
function(etalon_xsimd_headers variable)
  set(${variable} "" PARENT_SCOPE)
  if(NOT ETALON_TARGETS MATCHES "(^|;)xsimd-" AND NOT ("all" IN_LIST ETALON_TARGETS AND ETALON_KNOWN_TARGETS MATCHES "(^|;)xsimd-"))
    return()
  endif()
  etalon_find_newer(where fault xsimd xsimd/config/xsimd_config.hpp XSIMD_VERSION 13 ETALON_XSIMD_INCLUDE_DIR)
  if(fault)
    if(ETALON_TARGETS MATCHES "(^|;)xsimd-")
      message(FATAL_ERROR "${fault}: run cmake/deps.sh, or set ETALON_XSIMD_INCLUDE_DIR, or leave the tables of xsimd out of ETALON_TARGETS")
    endif()
    message(STATUS "${fault}: its tables are left out (run cmake/deps.sh, or set ETALON_XSIMD_INCLUDE_DIR)")
    return()
  endif()
  etalon_only(only xsimd ${where}/xsimd)
  set(${variable} ${only} PARENT_SCOPE)
endfunction()
etalon_xsimd_headers(ETALON_XSIMD_HEADERS)
