/*===- attn-tool.c - a tool of attn, whose body is in libattn.so ------------------------------===*\
|*
|* Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|* Which tool is the name that it is called by.
\*===----------------------------------------------------------------------------------------===*/

int attn_tool_main(int argc, char **argv);

int main(int argc, char **argv) { return attn_tool_main(argc, argv); }
