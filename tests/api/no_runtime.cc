// Compiled with the flags of each part of the library: they leave out exceptions and RTTI, and with them whatever would
// have to be linked for their sake.
#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
#error "compile the library with -fno-exceptions: nothing may be thrown across the C interface"
#endif
#if defined(__cpp_rtti) || defined(__GXX_RTTI)
#error "compile the library with -fno-rtti"
#endif
