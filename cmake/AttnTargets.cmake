# add_attn_library(<name> SRCS ... [LIBS ...] [DEPENDS ...]): a static library compiled against MLIR and the shared PCH.
# add_attn_tool(<name> SRCS ... LIBS ...): an executable likewise.
# add_attn_extension(<name> MODULE|SHARED <output name> <sources...>): what is loaded beside libattn.so, of the Python package.
# attn_tablegen(<target> <td> -gen-x out.inc ...): runs mlir-tblgen on a file of the current folder.

if(ATTN_PCH)
  # The headers every pass includes cost 8 s to parse; this does it once.
  file(WRITE ${CMAKE_BINARY_DIR}/pch/pch.cpp "")
  add_library(AttnPCH OBJECT ${CMAKE_BINARY_DIR}/pch/pch.cpp)
  target_link_libraries(AttnPCH PUBLIC AttnMLIR)
  target_compile_options(AttnPCH PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  target_precompile_headers(AttnPCH PRIVATE ${CMAKE_SOURCE_DIR}/cmake/pch.h)
endif()

function(attn_use_pch target)
  if(ATTN_PCH)
    target_precompile_headers(${target} REUSE_FROM AttnPCH)
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()

function(add_attn_library name)
  cmake_parse_arguments(ARG "NO_PCH" "" "SRCS;LIBS;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SRCS})
  target_link_libraries(${name} PUBLIC AttnMLIR ${ARG_LIBS})
  if(NOT ARG_NO_PCH)
    attn_use_pch(${name})
  endif()
  # Generated headers are few and quick: every library waits for all of them.
  add_dependencies(${name} attn-headers ${ARG_DEPENDS})
endfunction()

function(add_attn_tool name)
  cmake_parse_arguments(ARG "" "" "SRCS;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE AttnMLIR ${ARG_LIBS})
  add_dependencies(${name} attn-headers)
endfunction()

function(add_attn_extension name kind output)
  add_library(${name} ${kind} ${ARGN})
  target_link_libraries(${name} PRIVATE attn)
  # Symbols of Python and of PyTorch are those of the process that loads this.
  target_link_options(${name} PRIVATE -Wl,--as-needed -Wl,-z,now)
  set_target_properties(${name} PROPERTIES OUTPUT_NAME ${output} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib
    CXX_VISIBILITY_PRESET hidden BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN")
  install(TARGETS ${name} LIBRARY DESTINATION attn/lib COMPONENT python EXCLUDE_FROM_ALL)
endfunction()

add_custom_target(attn-headers)
add_custom_target(attn-doc)

function(attn_tablegen target td)
  set(LLVM_TARGET_DEFINITIONS ${td})
  set(arguments ${ARGN})
  while(arguments)
    list(POP_FRONT arguments output)
    set(flags)
    while(arguments)
      list(GET arguments 0 next)
      if(NOT next MATCHES "^-")
        break()
      endif()
      list(POP_FRONT arguments flag)
      list(APPEND flags ${flag})
    endwhile()
    mlir_tablegen(${output} ${flags} EXTRA_INCLUDES ${CMAKE_SOURCE_DIR} ${MLIR_INCLUDE_DIRS})
  endwhile()
  add_public_tablegen_target(${target})
  add_dependencies(attn-headers ${target})
endfunction()

# attn_doc(<file.md> <td> <flags...>): part of the target attn-doc; writes build/<preset>/docs/<file.md>.
function(attn_doc output td)
  set(path ${CMAKE_BINARY_DIR}/docs/${output})
  add_custom_command(OUTPUT ${path}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/docs
    COMMAND ${MLIR_TABLEGEN_EXE} ${ARGN} -I ${CMAKE_SOURCE_DIR} -I ${MLIR_INCLUDE_DIRS} ${CMAKE_CURRENT_SOURCE_DIR}/${td} -o ${path}
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${td} VERBATIM)
  string(MAKE_C_IDENTIFIER doc-${output} target)
  add_custom_target(${target} DEPENDS ${path})
  add_dependencies(attn-doc ${target})
endfunction()
