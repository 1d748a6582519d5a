# Finds Debian's LLVM/MLIR 22 and offers it as one interface target, AttnMLIR.
#
# Shared (default): the two dylibs. Static (ATTN_STATIC): the component archives, after removing the dylibs that Debian's
# exported targets name as link dependencies; both at once would put two copies of MLIR into one process.

find_package(MLIR 22.1 REQUIRED CONFIG)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)

find_program(CCACHE ccache)
if(CCACHE)
  # PCH and ccache agree only with these sloppiness settings; they ignore time stamps, never contents.
  set(launcher ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime CCACHE_NOHASHDIR=1
    CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

add_library(AttnMLIR INTERFACE)
target_include_directories(AttnMLIR SYSTEM INTERFACE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
target_include_directories(AttnMLIR INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include ${CMAKE_BINARY_DIR})
separate_arguments(definitions NATIVE_COMMAND ${LLVM_DEFINITIONS})
target_compile_options(AttnMLIR INTERFACE ${definitions} -Wall -Wextra -Wno-unused-parameter -Werror=return-type
  -fno-exceptions -ffunction-sections -fdata-sections)
if(NOT CMAKE_BUILD_TYPE STREQUAL "Release")
  # Debian's archives are built without assertions; those in the headers are the only net for IR misuse.
  target_compile_options(AttnMLIR INTERFACE -UNDEBUG)
endif()
target_link_options(AttnMLIR INTERFACE -fuse-ld=lld -Wl,--as-needed -Wl,--gc-sections)
if(ATTN_SANITIZE)
  target_compile_options(AttnMLIR INTERFACE -fsanitize=${ATTN_SANITIZE} -fno-sanitize=vptr -fno-omit-frame-pointer)
  target_link_options(AttnMLIR INTERFACE -fsanitize=${ATTN_SANITIZE} -fno-sanitize=vptr)
endif()

if(ATTN_STATIC)
  foreach(target IN LISTS MLIR_EXPORTED_TARGETS)
    if(TARGET ${target})
      get_target_property(libraries ${target} INTERFACE_LINK_LIBRARIES)
      if(libraries)
        list(REMOVE_ITEM libraries LLVM MLIR "$<LINK_ONLY:LLVM>" "$<LINK_ONLY:MLIR>")
        set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${libraries}")
      endif()
    endif()
  endforeach()
  get_property(dialects GLOBAL PROPERTY MLIR_DIALECT_LIBS)
  get_property(conversions GLOBAL PROPERTY MLIR_CONVERSION_LIBS)
  llvm_map_components_to_libnames(components core support ${ATTN_PROCESSOR}codegen ${ATTN_PROCESSOR}desc ${ATTN_PROCESSOR}info
    ${ATTN_PROCESSOR}asmparser nvptxcodegen nvptxdesc nvptxinfo orcjit executionengine passes target ipo bitwriter irreader jitlink
    asmparser frontendopenmp perfjitevents)
  set(ATTN_MLIR_LIBRARIES
    MLIROptLib MLIRTranslateLib MLIRExecutionEngineUtils MLIRTargetLLVMIRExport MLIRToLLVMIRTranslationRegistration
    MLIRLLVMToLLVMIRTranslation MLIRBuiltinToLLVMIRTranslation MLIRNVVMToLLVMIRTranslation
    MLIRRegisterAllDialects MLIRRegisterAllPasses MLIRRegisterAllExtensions ${components})
  target_link_libraries(AttnMLIR INTERFACE ${ATTN_MLIR_LIBRARIES})
  # Packed relocations need glibc 2.36: not where others run it.
  target_link_options(AttnMLIR INTERFACE -s -Wl,--icf=all -static-libstdc++ -static-libgcc
    $<$<NOT:$<BOOL:$<TARGET_PROPERTY:ATTN_OLDER_GLIBC>>>:-Wl,-z,pack-relative-relocs>)
else()
  target_link_libraries(AttnMLIR INTERFACE MLIR LLVM)
endif()

find_package(Threads REQUIRED)
target_link_libraries(AttnMLIR INTERFACE Threads::Threads)

# attn_link_archives(<target> <libraries>): links libraries of MLIR that its shared library does not hold. Where that one is
# linked, their files alone: their own dependencies are archives too, and would be a second copy of MLIR.
function(attn_link_archives target)
  if(ATTN_STATIC)
    # The protocol of editors, which no library of MLIR asks for by name.
    target_link_libraries(${target} PUBLIC ${ARGN} LLVMSupportLSP)
    return()
  endif()
  foreach(library IN LISTS ARGN)
    target_link_libraries(${target} PUBLIC $<TARGET_FILE:${library}>)
  endforeach()
  target_link_libraries(${target} PUBLIC MLIR LLVM)
endfunction()
