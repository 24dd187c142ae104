# Compiler flags of every target of this project, applied to targets, never globally.
#
# Target options come after CMAKE_CXX_FLAGS on the command line, so they win over what a user or packager put there.
# -fno-fast-math alone does not undo single flags such as -funsafe-math-optimizations, hence the list.
set(ETALON_FP_FLAGS
  -fno-fast-math -fno-unsafe-math-optimizations -fno-associative-math -fno-reciprocal-math -fsigned-zeros
  -fno-finite-math-only -ffp-contract=off)

function(etalon_set_flags target)
  target_compile_features(${target} PRIVATE cxx_std_17)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden)
  target_include_directories(${target} PRIVATE ${etalon_SOURCE_DIR})
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic $<$<BOOL:${ETALON_WERROR}>:-Werror> ${ETALON_FP_FLAGS})
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # With -Ofast or -ffast-math in the user's flags clang remarks that ours override them: that is the intention.
    target_compile_options(${target} PRIVATE -Wno-overriding-option -Wno-unknown-warning-option)
  endif()
endfunction()

# For the library itself: no exceptions, no RTTI, no locks hidden in static locals.
function(etalon_set_library_flags target)
  etalon_set_flags(${target})
  target_compile_options(${target} PRIVATE -fno-exceptions -fno-rtti -fno-threadsafe-statics)
endfunction()
