# Which kernel tables are built, and where Highway's headers are.
#
# ETALON_TARGETS is a list of table names, or "all". The scalar table is always there: it fills what others lack.
set(ETALON_TARGETS all CACHE STRING "Kernel tables to build: all, or a list of table names; scalar is always built")

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(ETALON_KNOWN_TARGETS scalar scalar-fma highway-avx2 highway-avx3)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
  set(ETALON_KNOWN_TARGETS scalar highway-neon)
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
  if(name IN_LIST ETALON_KNOWN_TARGETS AND (name IN_LIST ETALON_TARGETS OR "all" IN_LIST ETALON_TARGETS))
    set(${variable} ON PARENT_SCOPE)
  endif()
endfunction()

# etalon_highway_headers(VARIABLE): a folder with nothing but Highway's headers that the build needs. Only headers: no
# function of its library is called.
function(etalon_highway_headers variable)
  if(NOT ETALON_HIGHWAY_SOURCE_DIR)
    # Not find_package: a cross build may use the host's headers, as long as it sees no others of that folder.
    find_path(ETALON_HIGHWAY_SYSTEM_DIR hwy/highway.h NO_CMAKE_FIND_ROOT_PATH)
    if(NOT ETALON_HIGHWAY_SYSTEM_DIR OR NOT EXISTS ${ETALON_HIGHWAY_SYSTEM_DIR}/hwy/base.h)
      include(${etalon_SOURCE_DIR}/build/deps/deps.cmake OPTIONAL) # where cmake/deps.sh puts it
    endif()
  endif()
  set(where ${ETALON_HIGHWAY_SOURCE_DIR})
  if(NOT where)
    set(where ${ETALON_HIGHWAY_SYSTEM_DIR})
  endif()
  set(advice "run cmake/deps.sh, or set ETALON_HIGHWAY_SOURCE_DIR, or ETALON_TARGETS to scalar tables to do without")
  if(NOT where)
    message(FATAL_ERROR "Highway 1.2 or newer was not found: ${advice}")
  endif()
  get_filename_component(where ${where} REALPATH BASE_DIR ${CMAKE_SOURCE_DIR}) # a link to a relative path would dangle
  if(NOT EXISTS ${where}/hwy/base.h)
    message(FATAL_ERROR "Highway 1.2 or newer was not found in ${where}: ${advice}")
  endif()
  file(STRINGS ${where}/hwy/base.h version REGEX "^#define HWY_(MAJOR|MINOR) [0-9]+$")
  string(REGEX REPLACE "[^;]* ([0-9]+)(;|$)" "\\1\\2" version "${version}")
  string(REPLACE ";" "." version "${version}")
  if(version VERSION_LESS 1.2)
    message(FATAL_ERROR "Highway in ${where} is ${version}, 1.2 or newer is needed: ${advice}")
  endif()
  set(only ${CMAKE_CURRENT_BINARY_DIR}/highway_only)
  file(MAKE_DIRECTORY ${only})
  file(CREATE_LINK ${where}/hwy ${only}/hwy SYMBOLIC)
  set(${variable} ${only} PARENT_SCOPE)
endfunction()
