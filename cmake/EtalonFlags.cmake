# Compiler flags of every target of this project, applied to targets, never globally.
#
# Target options come after CMAKE_CXX_FLAGS on the command line, so they win over what a user or packager put there.
# -fno-fast-math alone does not undo single flags such as -funsafe-math-optimizations, hence the list.
set(ETALON_FP_FLAGS
  -fno-fast-math -fno-unsafe-math-optimizations -fno-associative-math -fno-reciprocal-math -fsigned-zeros
  -fno-finite-math-only -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # g++ has neither of these; clang's -fno-fast-math does not bring a user's -fdenormal-fp-math back.
  list(APPEND ETALON_FP_FLAGS -fno-approx-func -fdenormal-fp-math=ieee)
endif()

function(etalon_set_flags target)
  target_compile_features(${target} PRIVATE cxx_std_17)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_include_directories(${target} PRIVATE ${etalon_SOURCE_DIR})
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic $<$<BOOL:${ETALON_WERROR}>:-Werror> ${ETALON_FP_FLAGS})
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # With -Ofast or -ffast-math in the user's flags clang remarks that ours override them: that is the intention.
    target_compile_options(${target} PRIVATE -Wno-overriding-option -Wno-unknown-warning-option)
  endif()
endfunction()

# For the library itself: no exceptions, no RTTI, no locks hidden in static locals, and a square root is an instruction, not
# a call that would set errno.
function(etalon_set_library_flags target)
  etalon_set_flags(${target})
  target_compile_options(${target} PRIVATE -fno-exceptions -fno-rtti -fno-threadsafe-statics -fno-math-errno)
endfunction()

# For code that runs before anybody knows what the CPU can do, and for files that choose their instructions themselves: a
# user's -march or -mavx2 is not for them.
set(ETALON_BASELINE_FLAGS "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  # -march does not undo single flags; -mno-sse3 and -mno-avx do for what builds on them.
  set(ETALON_BASELINE_FLAGS -march=x86-64 -mno-sse3 -mno-avx -mno-popcnt -mno-lzcnt -mno-bmi -mno-bmi2 -mno-movbe)
  set_source_files_properties(arch/cpu.cc arch/dispatch.cc PROPERTIES COMPILE_OPTIONS "${ETALON_BASELINE_FLAGS}")
endif()
