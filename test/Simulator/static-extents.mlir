// Extents that the types state, smaller than a tile, as large, and larger: a kernel is for all of them.
// RUN: attn-run %s --entry=small --device=sim --check | FileCheck %s
// RUN: attn-run %s --entry=whole --device=sim --check | FileCheck %s
// RUN: attn-run %s --entry=one --device=sim --check | FileCheck %s
// RUN: attn-translate %s --to-ptx --entry=small | FileCheck %s --check-prefix=PTX

// CHECK: simulated {{.*}}: no race, no deadlock
// CHECK: verdict {{ *}}right
// PTX: .entry small
func.func @small(%q: tensor<2x4x7x64xbf16>, %k: tensor<2x2x33x64xbf16>, %v: tensor<2x2x33x96xbf16>, %sink: tensor<4xf32>)
    -> (tensor<2x4x7x96xbf16>, tensor<2x4x7xf32>) {
  %o, %lse = attn.attention %q, %k, %v variants [#attn.causal<bottom_right>] sink(%sink : tensor<4xf32>)
    : tensor<2x4x7x64xbf16>, tensor<2x2x33x64xbf16>, tensor<2x2x33x96xbf16> -> tensor<2x4x7x96xbf16>, tensor<2x4x7xf32>
  return %o, %lse : tensor<2x4x7x96xbf16>, tensor<2x4x7xf32>
}
func.func @whole(%q: tensor<1x1x256x128xf16>, %k: tensor<1x1x128x128xf16>) -> tensor<1x1x256x128xf16> {
  %o = attn.attention %q, %k, %k : tensor<1x1x256x128xf16>, tensor<1x1x128x128xf16>, tensor<1x1x128x128xf16> -> tensor<1x1x256x128xf16>
  return %o : tensor<1x1x256x128xf16>
}
func.func @one(%q: tensor<3x2x1x80xbf16>, %k: tensor<3x1x301x80xbf16>, %iq: tensor<3x1xi32>, %ik: tensor<3x301xi32>) -> tensor<3x2x1x80xbf16> {
  %o = attn.attention %q, %k, %k variants [#attn.document] captures(%iq, %ik : tensor<3x1xi32>, tensor<3x301xi32>)
    : tensor<3x2x1x80xbf16>, tensor<3x1x301x80xbf16>, tensor<3x1x301x80xbf16> -> tensor<3x2x1x80xbf16>
  return %o : tensor<3x2x1x80xbf16>
}
