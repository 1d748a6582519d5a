// Counting visits the triangle of tiles, and proves it against the mask as it was written.

// RUN: attn-run %s --entry=causal --device=interpreter --count --shape B=1,H=1,M=4096 | FileCheck %s --check-prefix=CAUSAL
// RUN: attn-run %s --entry=causal --device=interpreter --count --shape B=1,H=1,M=4096 --json | FileCheck %s --check-prefix=JSON
// RUN: attn-run %s --entry=causal --device=interpreter --count --shape B=2,H=4,Hkv=2,M=256,N=512 | FileCheck %s --check-prefix=TOPLEFT
// RUN: attn-run %s --entry=window --device=interpreter --count --shape B=1,H=1,M=256,N=320 | FileCheck %s --check-prefix=WINDOW
// RUN: attn-run %s --entry=split --device=interpreter --count --shape B=1,H=1,M=256 | FileCheck %s --check-prefix=SPLIT
// RUN: attn-run %s --entry=documents --device=interpreter --count --shape B=2,H=1,M=512,ids.0=2,ids.1=512 | FileCheck %s --check-prefix=DOCUMENTS

// CAUSAL: device interpreter
// CAUSAL: schedule BM=64 BN=64 splits=1
// CAUSAL: tiles 2080 visited, 64 masked, 2016 unmasked
// CAUSAL-NEXT: masks 262144 elements evaluated
// CAUSAL-NEXT: waste 0 tiles keep nothing, 0 masked tiles keep everything
// CAUSAL-NEXT: proof 0 dropped in unmasked tiles, 0 kept outside, 0 masked otherwise, 0 visited twice
// CAUSAL-NEXT: verdict right

// JSON: "device": "interpreter"
// JSON: "counts": {
// JSON-NEXT: "tiles": 2080,
// JSON-NEXT: "masked_tiles": 64,
// JSON-NEXT: "unmasked_tiles": 2016,
// JSON-NEXT: "masked_elements": 262144,
// JSON-NEXT: "empty_tiles": 0,
// JSON-NEXT: "needless_masks": 0
// JSON: "proof": {
// JSON: "holds": true
// JSON: "right": true

// Eight heads of the triangle of 4; the keys past the last row are in no tile.
// TOPLEFT: tiles 80 visited, 32 masked, 48 unmasked
// TOPLEFT: verdict right
func.func @causal(%q: tensor<?x?x?x64xf32>, %k: tensor<?x?x?x64xf32>, %v: tensor<?x?x?x64xf32>) -> tensor<?x?x?x64xf32> {
  %o = attn.attention %q, %k, %v variants [#attn.causal<top_left>] {attn.schedule = #attn.schedule<block_m = 64, block_n = 64>}
      : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return %o : tensor<?x?x?x64xf32>
}

// The band from m - 64 to m + 64: of a row's three tiles, the middle one is kept whole.
// WINDOW: tiles 11 visited, 7 masked, 4 unmasked
// WINDOW: waste 0 tiles keep nothing, 0 masked tiles keep everything
// WINDOW: verdict right
func.func @window(%q: tensor<?x?x?x64xf32>, %k: tensor<?x?x?x64xf32>, %v: tensor<?x?x?x64xf32>) -> tensor<?x?x?x64xf32> {
  %o = attn.attention %q, %k, %v variants [#attn.window<128, 0, bottom_right>] {attn.schedule = #attn.schedule<block_m = 64, block_n = 64>}
      : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return %o : tensor<?x?x?x64xf32>
}

// Splitting the keys changes who visits a tile, not which are visited.
// SPLIT: schedule BM=64 BN=64 splits=3
// SPLIT: tiles 10 visited, 4 masked, 6 unmasked
// SPLIT: verdict right
func.func @split(%q: tensor<?x?x?x64xf32>, %k: tensor<?x?x?x64xf32>, %v: tensor<?x?x?x64xf32>) -> tensor<?x?x?x64xf32> {
  %o = attn.attention %q, %k, %v variants [#attn.causal<top_left>] {attn.schedule = #attn.schedule<block_m = 64, block_n = 64, splits = 3>}
      : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return %o : tensor<?x?x?x64xf32>
}

// Bounds that are found by a search in the data hold too.
// DOCUMENTS: proof 0 dropped in unmasked tiles, 0 kept outside, 0 masked otherwise, 0 visited twice
// DOCUMENTS: verdict right
func.func @documents(%q: tensor<?x?x?x64xf32>, %k: tensor<?x?x?x64xf32>, %v: tensor<?x?x?x64xf32>, %ids: tensor<?x?xi32>) -> tensor<?x?x?x64xf32> {
  %sorted = attn.assume nondecreasing %ids : tensor<?x?xi32>
  %o = attn.attention %q, %k, %v variants [#attn.document, #attn.causal<top_left>] captures(%sorted, %sorted : tensor<?x?xi32>, tensor<?x?xi32>)
      {attn.schedule = #attn.schedule<block_m = 64, block_n = 64>}
      : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return %o : tensor<?x?x?x64xf32>
}
