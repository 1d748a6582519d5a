//===- Passes.td - the doors as a pass --------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_ROOMS_PASSES_TD
#define ATTN_ROOMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def VerifyRoomPass : Pass<"attn-verify-room"> {
  let summary = "succeeds if and only if the module is in a room";
  let description = [{
    A room is the dialects whose ops may stand in it and a few predicates on them; see
    `lib/Rooms/Predicates.h`. Every pass checks the room that it requires and the one that it
    produces in the same way.

    Requires: nothing. Produces: the same. Fails when: an op does not belong to the room, named in
    the error.
  }];
  let options = [
    Option<"room", "room", "std::string", [{"problem"}],
      "problem, grid, online, tile, placed, async, thread, buffers, ...">];
}

#endif // ATTN_ROOMS_PASSES_TD
