// What an error calls the nearest does go through all rooms, and the bytes that room 1 counts are those of room 6.
// RUN: attn-opt %s --attn-to-thread="block-m=128 block-n=96 stages=4" | FileCheck %s --check-prefix=KEYS
// RUN: attn-opt %s --attn-to-thread="block-m=128 block-n=128 stages=3" | FileCheck %s --check-prefix=STAGES
// RUN: attn-opt %s --attn-to-thread="block-m=256 block-n=192 stages=1" | FileCheck %s --check-prefix=ROWS

// 128 x 256 bytes of queries, 4 x 2 x 96 x 256 of keys and values, 17 barriers.
// KEYS: dynamic_shared_bytes = 229512
// STAGES: dynamic_shared_bytes = 229480
// ROWS: block = [640, 1, 1]
// ROWS-SAME: dynamic_shared_bytes = 163880
func.func @f(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  %o = attn.attention %q, %k, %v : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}
