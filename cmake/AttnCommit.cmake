# Writes the commit that is built into OUTPUT, as the macro ATTN_COMMIT; "-dirty" after it says that files differ. Empty outside of
# git, as in an sdist. A script: cmake -DSOURCE=... -DOUTPUT=... -P AttnCommit.cmake
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --exclude=* --abbrev=9
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
# An sdist in a folder below somebody's checkout is not of that commit.
execute_process(COMMAND git -C ${SOURCE} ls-files --error-unmatch CMakeLists.txt OUTPUT_QUIET ERROR_QUIET RESULT_VARIABLE tracked)
if(NOT status EQUAL 0 OR NOT tracked EQUAL 0)
  set(commit "")
endif()
set(text "#define ATTN_COMMIT \"${commit}\"\n")
set(before "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
# Tools are linked again only where it differs.
if(NOT text STREQUAL before)
  file(WRITE ${OUTPUT} "${text}")
endif()
