# Runs an example: cmake -DPROGRAM=... -DSOURCE=... -P expect.cmake. It must exit with 0 and print what its source says
# in a comment "prints: ...", which is what readers of README.md see.
file(READ ${SOURCE} source)
if(NOT source MATCHES "// prints: ([^\n]+)")
  message(FATAL_ERROR "${SOURCE} does not say what it prints")
endif()
set(expected "${CMAKE_MATCH_1}")
execute_process(COMMAND ${PROGRAM} OUTPUT_VARIABLE printed RESULT_VARIABLE code)
string(STRIP "${printed}" printed)
if(NOT code EQUAL 0 OR NOT printed STREQUAL expected)
  message(FATAL_ERROR "exit code ${code}, printed \"${printed}\" instead of \"${expected}\"")
endif()
