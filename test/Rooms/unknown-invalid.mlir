// RUN: attn-opt %s --attn-verify-room=room=kitchen --split-input-file --verify-diagnostics

// expected-error@below {{expected room problem, grid, online, tile, placed, async, thread, buffers, vectors, llvm, got 'kitchen'}}
module {}
