// A distance of row and key becomes f32 once for all registers of a thread, which differ by constants; of those that tensors are read at
// a half are the same.
// RUN: attn-opt %s "--attn-to-online=target=cuda stay=false" --online-to-tile --tile-to-async --async-to-thread --emit-ptx=ptx=%t.ptx -o /dev/null
// RUN: FileCheck %s --check-prefix=FLOATS --input-file=%t.ptx
// RUN: grep -c "ld.global.b32" %t.ptx | FileCheck %s --check-prefix=READS

// FLOATS: .entry
// FLOATS-COUNT-2: cvt.rn.f32.s32
// FLOATS-NOT: cvt.rn.f32.s32
// 34 of 64, for the first step and for those of the loop.
// READS: {{^}}68{{$}}
func.func @attention(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>, %bias: tensor<?xf32>) -> tensor<?x?x?x128xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %size = tensor.dim %bias, %c0 : tensor<?xf32>
  %last = arith.subi %size, %c1 : index
  %slope = arith.constant 0.125 : f32
  %o = attn.attention %q, %k, %v
    score(%s, %b, %h, %m, %n) {
      %distance = arith.subi %m, %n : index
      %word = arith.index_cast %distance : index to i32
      %length = arith.sitofp %word : i32 to f32
      %less = arith.mulf %length, %slope : f32
      %upper = arith.minsi %distance, %last : index
      %at = arith.maxsi %upper, %c0 : index
      %read = tensor.extract %bias[%at] : tensor<?xf32>
      %t = arith.subf %s, %less : f32
      %u = arith.addf %t, %read : f32
      attn.yield %u : f32
    } : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}
