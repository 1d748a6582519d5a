// RUN: attn-opt %s --attn-bound-indices | FileCheck %s

!t = tensor<?x?x?x16xf16>

// CHECK-LABEL: func @numbers(
func.func @numbers(%q: !t, %k: !t, %long: tensor<?xi64>, %short: tensor<?xi32>, %byte: tensor<?xi8>) -> !t {
  %o = attn.attention %q, %k, %k
    // CHECK: mask
    mask(%b, %h, %m, %n) {
      // One of 64 bits may be any number, also where it is compared only.
      // CHECK: %[[LONG:.*]] = tensor.extract %{{.*}} : tensor<?xi64>
      // CHECK: %[[LEAST:.*]] = arith.maxsi %[[LONG]], %c-1073741824_i64
      // CHECK: %[[BOTH:.*]] = arith.minsi %[[LEAST]], %c1073741824_i64
      // CHECK: arith.index_cast %[[BOTH]] : i64 to index
      %long_b = tensor.extract %long[%b] : tensor<?xi64>
      %limit = arith.index_cast %long_b : i64 to index
      %below = arith.cmpi slt, %n, %limit : index
      // One of 32 bits fits, but for its sums.
      // CHECK: %[[SHORT:.*]] = tensor.extract %{{.*}} : tensor<?xi32>
      // CHECK-NEXT: arith.index_cast %[[SHORT]] : i32 to index
      // CHECK: arith.maxsi %[[SHORT]], %c-1073741824_i32
      // CHECK: %[[BOUND:.*]] = arith.minsi
      // CHECK: %[[WIDTH:.*]] = arith.index_cast %[[BOUND]] : i32 to index
      // CHECK: arith.addi %{{.*}}, %[[WIDTH]]
      %short_b = tensor.extract %short[%b] : tensor<?xi32>
      %first = arith.index_cast %short_b : i32 to index
      %behind = arith.cmpi sge, %n, %first : index
      %width = arith.index_cast %short_b : i32 to index
      %last = arith.addi %m, %width : index
      %inside = arith.cmpi sle, %n, %last : index
      // One of 8 bits is small, and a place is inside its tensor.
      // CHECK: %[[BYTE:.*]] = tensor.extract %{{.*}} : tensor<?xi8>
      // CHECK-NEXT: arith.index_cast %[[BYTE]] : i8 to index
      %byte_b = tensor.extract %byte[%b] : tensor<?xi8>
      %shift = arith.index_cast %byte_b : i8 to index
      %shifted = arith.subi %m, %shift : index
      // CHECK: %[[PLACE:.*]] = tensor.extract %{{.*}} : tensor<?xi64>
      // CHECK-NEXT: arith.index_cast %[[PLACE]] : i64 to index
      %place_m = tensor.extract %long[%m] : tensor<?xi64>
      %place = arith.index_cast %place_m : i64 to index
      %there = tensor.extract %byte[%place] : tensor<?xi8>
      %c0 = arith.constant 0 : i8
      %some = arith.cmpi ne, %there, %c0 : i8
      %after = arith.cmpi sge, %n, %shifted : index
      // CHECK: arith.constant -1073741824 : index
      // CHECK: arith.constant 7 : index
      %far = arith.constant -1099511627776 : index
      %near = arith.constant 7 : index
      %away = arith.cmpi sge, %n, %far : index
      %close = arith.cmpi sge, %n, %near : index
      %some_n = arith.andi %away, %close : i1
      %below_n = arith.andi %below, %some_n : i1
      %0 = arith.andi %below_n, %behind : i1
      %1 = arith.andi %inside, %after : i1
      %2 = arith.andi %0, %1 : i1
      %3 = arith.andi %2, %some : i1
      attn.yield %3 : i1
    } : !t, !t, !t -> !t
  return %o : !t
}
