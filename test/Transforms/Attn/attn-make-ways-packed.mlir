// RUN: attn-opt %s "--attn-make-ways=way=long" --split-input-file | FileCheck %s
// RUN: attn-opt %s "--attn-make-ways=way=long slots=4" --split-input-file | FileCheck %s --check-prefix=OPTION

// Heads of a group become rows: regions find both in the row. A slot without a head reads as the last head.
func.func @alibi(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x32xbf16>, %slopes: tensor<?xf32>)
    -> (tensor<?x?x?x32xbf16>, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v {attn.pack = 8, attn.schedule = #attn.schedule<block_m = 64, block_n = 64>}
    score(%s, %b, %h, %m, %n) {
      %slope = tensor.extract %slopes[%h] : tensor<?xf32>
      %t = arith.addf %s, %slope : f32
      attn.yield %t : f32
    }
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi sle, %n, %m : index
      attn.yield %keep : i1
    }
    : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x32xbf16> -> tensor<?x?x?x32xbf16>, tensor<?x?x?xf32>
  return %o, %lse : tensor<?x?x?x32xbf16>, tensor<?x?x?xf32>
}
// CHECK-LABEL: func.func @alibi_packed(
// CHECK-SAME:    plan.way = "packed", plan.when = {{\[\[}}#plan.range<argument = 0, dim = 2, least = 0, most = 16>, #plan.range<argument = 0, dim = 1, least = 0, most = 8, per = <argument = 1, dim = 1>>]]
// CHECK:         %[[ROWS:.*]] = attn.pack_heads %[[Q:.*]] for %[[K:.*]] by 8
// CHECK:         %[[H:.*]] = tensor.dim %[[Q]]
// CHECK:         %[[HKV:.*]] = tensor.dim %[[K]]
// CHECK:         %[[GROUP:.*]] = arith.divui %[[H]], %[[HKV]]
// CHECK:         %[[O:.*]], %[[LSE:.*]] = attn.attention %[[ROWS]]
// CHECK-SAME:      attn.schedule
// CHECK:           score(%{{.*}}, %{{.*}}, %[[KEYHEAD:.*]], %[[ROW:.*]], %{{.*}})
// CHECK:             %[[LAST:.*]] = arith.subi %[[GROUP]]
// CHECK:             %[[REST:.*]] = arith.remui %[[ROW]]
// CHECK:             %[[SLOT:.*]] = arith.minui %[[REST]], %[[LAST]]
// CHECK:             %[[FIRST:.*]] = arith.muli %[[KEYHEAD]], %[[GROUP]]
// CHECK:             %[[HEAD:.*]] = arith.addi %[[FIRST]], %[[SLOT]]
// CHECK:             tensor.extract %{{.*}}[%[[HEAD]]]
// CHECK:           mask(%{{.*}}, %{{.*}}, %[[PACKED:.*]], %[[N:.*]])
// CHECK:             %[[M:.*]] = arith.divui %[[PACKED]]
// CHECK:             arith.cmpi sle, %[[N]], %[[M]]
// CHECK:         %[[O4:.*]] = attn.unpack_heads %[[O]] like %[[Q]] by 8
// CHECK:         %[[LSE3:.*]] = attn.unpack_heads %[[LSE]] like %[[Q]] by 8
// CHECK:         return %[[O4]], %[[LSE3]]
// The schedule is the copy's.
// CHECK-LABEL: func.func @alibi(
// CHECK-NOT:     attn.schedule
// CHECK-NOT:     attn.pack
// CHECK:         attn.attention
// What is written at the op is more than the option.
// OPTION-LABEL: func.func @alibi_packed(
// OPTION:         attn.pack_heads %{{.*}} for %{{.*}} by 8

// -----

// CHECK-LABEL:  func.func @plain(
// CHECK-NOT:      _packed
// OPTION-LABEL: func.func @plain_packed(
// OPTION-SAME:    dim = 2, least = 0, most = 32
// OPTION:         attn.pack_heads %{{.*}} for %{{.*}} by 4
// OPTION-LABEL: func.func @plain(
func.func @plain(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %o = attn.attention %q, %k, %v
      : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}

// -----

// A sink would be one for each row; a query that is a key too has two forms at once.
// OPTION-LABEL: func.func @sink(
// OPTION-NOT:     _packed
func.func @sink(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>, %sink: tensor<?xf32>) -> tensor<?x?x?x64xbf16> {
  %o = attn.attention %q, %k, %v sink(%sink : tensor<?xf32>)
      : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}

// OPTION-LABEL: func.func @self(
// OPTION-NOT:     _packed
func.func @self(%q: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %o = attn.attention %q, %q, %q
      : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}

// -----

// No call has few rows. Packed, they would be more than there can be.
// OPTION-LABEL: func.func @long(
// OPTION-NOT:     _packed
func.func @long(%q: tensor<?x?x536870912x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>) -> tensor<?x?x536870912x64xbf16> {
  %o = attn.attention %q, %k, %v
      : tensor<?x?x536870912x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x536870912x64xbf16>
  return %o : tensor<?x?x536870912x64xbf16>
}

// -----

// All calls have few rows, and groups of four heads: the function itself is packed.
// OPTION-LABEL: func.func @always_packed_whole(
// OPTION-LABEL: func.func @always(
// OPTION-NOT:     plan.when
// OPTION:         attn.pack_heads
// OPTION-NOT:   func.func
func.func @always(%q: tensor<?x8x1x64xbf16>, %k: tensor<?x2x?x64xbf16>, %v: tensor<?x2x?x64xbf16>) -> tensor<?x8x1x64xbf16> {
  %o = attn.attention %q, %k, %v
      : tensor<?x8x1x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16> -> tensor<?x8x1x64xbf16>
  return %o : tensor<?x8x1x64xbf16>
}

// -----

// Groups of 128 heads are none that fit.
// OPTION-NOT:     _packed
// OPTION-LABEL: func.func @groups(
// OPTION-NOT:     attn.pack_heads
func.func @groups(%q: tensor<?x256x?x64xbf16>, %k: tensor<?x2x?x64xbf16>, %v: tensor<?x2x?x64xbf16>) -> tensor<?x256x?x64xbf16> {
  %o = attn.attention %q, %k, %v
      : tensor<?x256x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16> -> tensor<?x256x?x64xbf16>
  return %o : tensor<?x256x?x64xbf16>
}
