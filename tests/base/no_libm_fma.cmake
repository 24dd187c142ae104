# Fails if an object of the library wants fma or fmaf of the C library: without hardware it is a slow call, and not
# every C library rounds it right.  cmake -DNM=nm -DLIBRARY=libetalon.a -P no_libm_fma.cmake
execute_process(COMMAND "${NM}" "${LIBRARY}" OUTPUT_VARIABLE symbols RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "${NM} ${LIBRARY} failed: ${failed}")
endif()
# An archive that nm cannot read (of link-time bytecode, say) would have no undefined symbols either.
if(NOT symbols MATCHES "RunInEnvironment")
  message(FATAL_ERROR "${NM} shows no symbols of ${LIBRARY}")
endif()
string(REGEX MATCHALL "[^\n]* U _*fma[fl]?[@\n][^\n]*" calls "${symbols}\n")
if(calls)
  message(FATAL_ERROR "${LIBRARY} calls the C library's fma: ${calls}")
endif()
