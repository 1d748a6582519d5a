// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @box_c1(%k: memref<?xbf16>, %s: !tile.shared<64x64xbf16, swizzle = 128>, %i: index) {
  // expected-error@+1 {{expected memory of rank 2 to 5, got 'memref<?xbf16>'}}
  tile.copy %k[%i] to %s : memref<?xbf16>, !tile.shared<64x64xbf16, swizzle = 128>
  return
}

// -----

func.func @box_c1_store(%o: memref<?x?x?x?x?x?xbf16>, %s: !tile.shared<64x64xbf16, swizzle = 128>, %i: index) {
  // expected-error@+1 {{expected memory of rank 2 to 5, got 'memref<?x?x?x?x?x?xbf16>'}}
  tile.store_async %s to %o[%i, %i, %i, %i, %i, %i] : !tile.shared<64x64xbf16, swizzle = 128>, memref<?x?x?x?x?x?xbf16>
  return
}

// -----

func.func @box_c2(%k: memref<?x?xbf16>, %s: !tile.shared<64x64xbf16, swizzle = 128, stages = 2>, %i: index) {
  // expected-error@+1 {{expected one stage (see tile.stage)}}
  tile.copy %k[%i, %i] to %s : memref<?x?xbf16>, !tile.shared<64x64xbf16, swizzle = 128, stages = 2>
  return
}
