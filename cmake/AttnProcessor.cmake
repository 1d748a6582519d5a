# What attn is built for. A script too: cmake -DCMAKE_SYSTEM_PROCESSOR=riscv64 -P AttnProcessor.cmake
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(ATTN_PROCESSOR x86)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(ATTN_PROCESSOR aarch64)
else()
  message(FATAL_ERROR "attn: expected a processor of x86_64 or aarch64, got ${CMAKE_SYSTEM_PROCESSOR}: its kernels for CPUs "
    "were never run on another")
endif()
