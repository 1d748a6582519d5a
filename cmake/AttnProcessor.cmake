# What attn is built for. A script too: cmake -DCMAKE_SYSTEM_PROCESSOR=aarch64 -P AttnProcessor.cmake
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  message(FATAL_ERROR "attn: expected a processor of x86_64, got ${CMAKE_SYSTEM_PROCESSOR}: kernels for CPUs are written for AVX2 "
    "and AVX-512")
endif()
