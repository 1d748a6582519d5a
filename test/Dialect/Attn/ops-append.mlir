// RUN: attn-opt %s --verify-roundtrip | FileCheck %s
// RUN: attn-opt %s --canonicalize | FileCheck %s --check-prefix=FOLD

// CHECK-LABEL: func @append(
func.func @append(%new: tensor<?x?x128xbf16>, %slots: tensor<?xi64>, %pool: tensor<?x64x?x128xbf16>) -> tensor<?x64x?x128xbf16> {
  // CHECK: attn.append %{{.*}}[%{{.*}}] into %{{.*}} : tensor<?x?x128xbf16>, tensor<?xi64>, tensor<?x64x?x128xbf16> -> tensor<?x64x?x128xbf16>
  %r = attn.append %new[%slots] into %pool : tensor<?x?x128xbf16>, tensor<?xi64>, tensor<?x64x?x128xbf16> -> tensor<?x64x?x128xbf16>
  return %r : tensor<?x64x?x128xbf16>
}

// CHECK-LABEL: func @buffers(
func.func @buffers(%new: memref<9x2x64xf32>, %at: memref<9xi32>, %cos: memref<5x16xf16>, %sin: memref<5x16xf16>, %o: memref<9x2x64xf32>, %pool: memref<3x4x2x64xf32>) {
  // CHECK: {{^ *}}attn.rotary %{{.*}} at %{{.*}} by %{{.*}}, %{{.*}} interleaved outs(%{{.*}}) : memref<9x2x64xf32>, memref<9xi32>, memref<5x16xf16>, memref<5x16xf16>, memref<9x2x64xf32>{{$}}
  attn.rotary %new at %at by %cos, %sin interleaved outs(%o) : memref<9x2x64xf32>, memref<9xi32>, memref<5x16xf16>, memref<5x16xf16>, memref<9x2x64xf32>
  // CHECK: {{^ *}}attn.append %{{.*}}[%{{.*}}] rotary(%{{.*}}, %{{.*}}, %{{.*}} : memref<9xi32>, memref<5x16xf16>, memref<5x16xf16>) into %{{.*}} : memref<9x2x64xf32>, memref<9xi32>, memref<3x4x2x64xf32>{{$}}
  attn.append %new[%at] rotary(%at, %cos, %sin : memref<9xi32>, memref<5x16xf16>, memref<5x16xf16>) into %pool : memref<9x2x64xf32>, memref<9xi32>, memref<3x4x2x64xf32>
  return
}

// An append of rows that are turned turns them on their way.
// FOLD-LABEL: func @composed(
// FOLD-SAME:    %[[NEW:.*]]: tensor<?x?x64xf16>, %[[SLOTS:.*]]: tensor<?xi32>, %[[AT:.*]]: tensor<?xi64>, %[[COS:.*]]: tensor<?x16xf32>, %[[SIN:.*]]: tensor<?x16xf32>, %[[POOL:.*]]: tensor<
// FOLD-NOT:     attn.rotary
// FOLD:         attn.append %[[NEW]][%[[SLOTS]]] rotary(%[[AT]], %[[COS]], %[[SIN]] : {{.*}}) interleaved into %[[POOL]]
func.func @composed(%new: tensor<?x?x64xf16>, %slots: tensor<?xi32>, %at: tensor<?xi64>, %cos: tensor<?x16xf32>, %sin: tensor<?x16xf32>, %pool: tensor<?x?x?x64xf16>) -> tensor<?x?x?x64xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = tensor.dim %new, %c0 : tensor<?x?x64xf16>
  %h = tensor.dim %new, %c1 : tensor<?x?x64xf16>
  %e = tensor.empty(%t, %h) : tensor<?x?x64xf16>
  %x = attn.rotary %new at %at by %cos, %sin interleaved outs(%e) : tensor<?x?x64xf16>, tensor<?xi64>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x?x64xf16> -> tensor<?x?x64xf16>
  %r = attn.append %x[%slots] into %pool : tensor<?x?x64xf16>, tensor<?xi32>, tensor<?x?x?x64xf16> -> tensor<?x?x?x64xf16>
  return %r : tensor<?x?x?x64xf16>
}
