// RUN: attn-opt %s --convert-attn-to-vector="lanes=16" | FileCheck %s

// Rows in lanes: a row's statistics are vectors, and so are its positions.
// CHECK-LABEL: func @query(
// CHECK-SAME: %{{[a-z0-9]+}}: memref<32x64xf32>, %[[K:[a-z0-9]+]]: memref<64x64xf32>, %[[V:[a-z0-9]+]]: memref<64x64xf32>,
// CHECK-SAME: %[[NL:[a-z0-9]+]]: memref<32xf32>, %[[ACC:[a-z0-9]+]]: memref<32x64xf32>
func.func @query(%q: memref<32x64xf32>, %k: memref<64x64xf32>, %v: memref<64x64xf32>, %nl: memref<32xf32>,
                 %acc: memref<32x64xf32>, %i: index) {
  %scale = arith.constant 0.125 : f32
  // CHECK: memref.load %[[K]]
  // CHECK: vector.fma
  // CHECK: memref.load %[[V]]
  // CHECK: vector.fma
  // CHECK: vector.maskedload %[[NL]]
  // CHECK: %[[KEEP:.*]] = arith.cmpi sle, {{.*}} : vector<16xindex>
  // CHECK: %[[P:.*]] = arith.select %[[KEEP]], {{.*}} : vector<16xi1>, vector<16xf32>
  // CHECK: arith.cmpf une, %[[P]]
  // Keys that no row keeps are not read into the sum.
  // CHECK: vector.reduction <or>
  // CHECK: vector.maskedload %[[K]]
  // CHECK: vector.load %[[ACC]]
  // CHECK: vector.store %{{.*}}, %[[ACC]]
  attn.grad_query_step %q, %k, %v, %q, %nl, %nl scale(%scale) at(%i, %i, %i, %i) outs(%acc)
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi sle, %n, %m : index
      attn.yield %keep : i1
    } : memref<32x64xf32>, memref<64x64xf32>, memref<64x64xf32>, memref<32x64xf32>, memref<32xf32>, memref<32xf32>, memref<32x64xf32>
  return
}

// What rows contribute at one element is reduced; at elements of their own, one lane after the other.
// CHECK-LABEL: func @captured(
// CHECK-SAME: %[[D0:[a-z0-9]+]]: memref<f32>, %[[D1:[a-z0-9]+]]: memref<?x?xf32>
func.func @captured(%q: memref<32x64xf32>, %nl: memref<32xf32>, %x: memref<?x?xf32>, %d0: memref<f32>, %d1: memref<?x?xf32>, %i: index) {
  %scale = arith.constant 0.125 : f32
  // CHECK: %[[KEPT:.*]] = arith.andi
  // CHECK: arith.select %[[KEPT]]
  // CHECK: %[[SUM:.*]] = vector.reduction <add>
  // CHECK: memref.load %[[D0]][]
  // CHECK: memref.store %{{.*}}, %[[D0]][]
  attn.grad_captured_step %q, %q, %q, %q, %nl, %nl scale(%scale) at(%i, %i, %i, %i) outs(%d0)
    grad(%s, %dt, %b, %h, %m, %n) {
      attn.contribute %dt to %x[] : memref<?x?xf32>
      attn.yield %dt : f32
    } : memref<32x64xf32>, memref<32x64xf32>, memref<32x64xf32>, memref<32x64xf32>, memref<32xf32>, memref<32xf32>, memref<f32>
  // CHECK: arith.minsi
  // CHECK: scf.for %[[LANE:.*]] =
  // CHECK: vector.extract %{{.*}}[%[[LANE]]]
  // CHECK: memref.load %[[D1]]
  // CHECK: memref.store %{{.*}}, %[[D1]]
  attn.grad_captured_step %q, %q, %q, %q, %nl, %nl scale(%scale) at(%i, %i, %i, %i) outs(%d1)
    grad(%s, %dt, %b, %h, %m, %n) {
      attn.contribute %dt to %x[%m, %n] : memref<?x?xf32>
      attn.yield %dt : f32
    } : memref<32x64xf32>, memref<32x64xf32>, memref<32x64xf32>, memref<32x64xf32>, memref<32xf32>, memref<32xf32>, memref<?x?xf32>
  return
}

// A tile's sums of rows, in registers, are added to those of the loop: rows stay in their lanes.
// CHECK-LABEL: func @delta(
// CHECK-SAME: %[[W:[a-z0-9]+]]: memref<32xf32>, %[[R:[a-z0-9]+]]: memref<32xf32>, %[[NL:[a-z0-9]+]]: memref<32xf32>, %[[OUT:[a-z0-9]+]]: memref<32xf32>
func.func @delta(%q: memref<32x64xf32>, %w: memref<32xf32>, %r: memref<32xf32>, %nl: memref<32xf32>, %out: memref<32xf32>, %i: index) {
  %scale = arith.constant 0.125 : f32
  // CHECK: %[[SUMS:.*]]:2 = scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>)
  // CHECK-DAG: vector.maskedstore %[[W]]
  // CHECK-DAG: vector.maskedstore %[[R]]
  attn.grad_delta_step %q, %q, %q, %q, %nl, %nl scale(%scale) at(%i, %i, %i, %i) outs(%w, %r)
    : memref<32x64xf32>, memref<32x64xf32>, memref<32x64xf32>, memref<32x64xf32>, memref<32xf32>, memref<32xf32>, memref<32xf32>, memref<32xf32>
  // CHECK: arith.divf
  // CHECK: %[[WHOLE:.*]] = arith.cmpf ole
  // CHECK: %[[D:.*]] = arith.select %[[WHOLE]]
  // CHECK: vector.maskedstore %[[OUT]]{{.*}} %[[D]]
  attn.grad_delta_end %w, %r, %nl, %nl outs(%out) : memref<32xf32>, memref<32xf32>, memref<32xf32>, memref<32xf32>, memref<32xf32>
  return
}

// Keys in lanes: a row's statistics are scalars.
// CHECK-LABEL: func @key_value(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: memref<32x64xf32>, %{{[a-z0-9]+}}: memref<64x64xf32>,
// CHECK-SAME: %[[DO:[a-z0-9]+]]: memref<32x32xf32>, %{{[a-z0-9]+}}: memref<64x32xf32>, %[[NL:[a-z0-9]+]]: memref<32xf32>
func.func @key_value(%q: memref<32x64xf32>, %k: memref<64x64xf32>, %do: memref<32x32xf32>, %v: memref<64x32xf32>,
                     %nl: memref<32xf32>, %dk: memref<64x64xf32>, %dv: memref<64x32xf32>) {
  %scale = arith.constant 0.125 : f32
  // CHECK: memref.load %[[Q]]
  // CHECK: memref.load %[[DO]]
  // CHECK: memref.load %[[NL]]
  // CHECK: vector.load %[[Q]]
  // CHECK: vector.load %[[DO]]
  attn.grad_key_value_step %q, %k, %v, %do, %nl, %nl scale(%scale) outs(%dk, %dv)
    : memref<32x64xf32>, memref<64x64xf32>, memref<64x32xf32>, memref<32x32xf32>, memref<32xf32>, memref<32xf32>,
      memref<64x64xf32>, memref<64x32xf32>
  return
}

// The sum of the rows takes the keys that lie in lanes, out of a tile of its own; so do all others.
// CHECK-LABEL: func @fused(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: memref<32x64xf32>, %[[K:[a-z0-9]+]]: memref<64x64xf32>
// CHECK-SAME: %[[DQ:[a-z0-9]+]]: memref<32x64xf32>, %[[DK:[a-z0-9]+]]: memref<64x64xf32>, %[[DV:[a-z0-9]+]]: memref<64x32xf32>
func.func @fused(%q: memref<32x64xf32>, %k: memref<64x64xf32>, %do: memref<32x32xf32>, %v: memref<64x32xf32>,
                 %nl: memref<32xf32>, %dq: memref<32x64xf32>, %dk: memref<64x64xf32>, %dv: memref<64x32xf32>, %i: index) {
  %scale = arith.constant 0.125 : f32
  // Rows of tiles are an odd number of cache lines apart.
  // CHECK-DAG: %[[QS:.*]] = memref.alloca() {{.*}} : memref<32x80xf32>
  // CHECK-DAG: %[[KS:.*]] = memref.alloca() {{.*}} : memref<64x80xf32>
  // CHECK: vector.load %[[Q]]
  // CHECK: memref.load %[[QS]]
  // Keys that no row keeps are not read into the sum.
  // CHECK: arith.cmpf une
  // Of the rows' sums, which come from far, the next are asked for.
  // CHECK: memref.prefetch %[[DQ]]
  // CHECK: vector.maskedload %[[KS]]
  // CHECK: vector.load %[[DQ]]
  // CHECK: vector.store %{{.*}}, %[[DQ]]
  // CHECK: vector.store %{{.*}}, %[[DK]]
  // CHECK: vector.store %{{.*}}, %[[DV]]
  attn.grad_fused_step %q, %k, %v, %do, %nl, %nl scale(%scale) at(%i, %i, %i, %i) outs(%dq, %dk, %dv)
    mask(%b, %h, %m, %n) {
      %keep = arith.cmpi sle, %n, %m : index
      attn.yield %keep : i1
    } : memref<32x64xf32>, memref<64x64xf32>, memref<64x32xf32>, memref<32x32xf32>, memref<32xf32>, memref<32xf32>,
        memref<32x64xf32>, memref<64x64xf32>, memref<64x32xf32>
  return
}
