// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @stage_c1(%ring: !tile.shared<64x64xbf16, swizzle = 128, stages = 2>, %slot: !tile.slot<3>) {
  // expected-error@+1 {{expected a slot of 2 stages and result '!tile.shared<64x64xbf16, swizzle = 128>', got '!tile.slot<3>' and}}
  %k = "tile.stage"(%ring, %slot)
      : (!tile.shared<64x64xbf16, swizzle = 128, stages = 2>, !tile.slot<3>) -> !tile.shared<64x64xbf16, swizzle = 128>
  return
}
