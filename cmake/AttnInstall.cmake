# `cmake --install BUILD --component c --prefix WHERE`: the headers of the C interface and of C++ over it, libattn.so, and what
# CMake and pkg-config look for. The C++ interface (include/attn) is for programs built inside this tree: it has no stable ABI.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/attn)
install(TARGETS attn EXPORT attn-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT c)
install(FILES ${CMAKE_SOURCE_DIR}/include/attn-c/attn.h ${CMAKE_SOURCE_DIR}/include/attn-c/attn.hpp
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/attn-c COMPONENT c)
install(EXPORT attn-targets NAMESPACE attn:: DESTINATION ${package} COMPONENT c)

configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/attn-config.cmake.in ${CMAKE_BINARY_DIR}/attn-config.cmake
  INSTALL_DESTINATION ${package})
# Before 1.0 a minor version may change its meaning.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/attn-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/attn-config.cmake ${CMAKE_BINARY_DIR}/attn-config-version.cmake
  DESTINATION ${package} COMPONENT c)

file(RELATIVE_PATH ATTN_PREFIX_OF_PC /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_SOURCE_DIR}/cmake/attn.pc.in ${CMAKE_BINARY_DIR}/attn.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/attn.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT c)

if(NOT ATTN_STATIC)
  install(CODE "message(NOTICE \"libattn.so: needs the libraries of LLVM and MLIR of this machine; make install builds one that \"
    \"needs the C library alone\")" COMPONENT c)
endif()
