# Libraries that are headers alone: a cross build takes them from the machine that builds, whose folder of headers must otherwise
# stay hidden from the cross compiler.

# etalon_only(VARIABLE NAME FOLDER): a folder of the build in which a compiler finds FOLDER, and nothing that lies beside it.
function(etalon_only variable name folder)
  get_filename_component(last ${folder} NAME)
  set(only ${CMAKE_CURRENT_BINARY_DIR}/${name}_only)
  file(MAKE_DIRECTORY ${only})
  file(CREATE_LINK ${folder} ${only}/${last} SYMBOLIC)
  set(${variable} ${only} PARENT_SCOPE)
endfunction()

# etalon_header_library(NAME PACKAGE TARGET HEADER): the target NAME brings the headers of a package, as its TARGET does.
function(etalon_header_library name package target header)
  add_library(${name} INTERFACE)
  if(NOT CMAKE_CROSSCOMPILING)
    find_package(${package} REQUIRED)
    target_link_libraries(${name} INTERFACE ${target})
    return()
  endif()
  find_path(${name}_DIR ${header} PATHS /usr/include NO_CMAKE_FIND_ROOT_PATH REQUIRED)
  get_filename_component(folder ${header} DIRECTORY)
  etalon_only(only ${name} ${${name}_DIR}/${folder})
  target_include_directories(${name} SYSTEM INTERFACE ${only})
endfunction()
