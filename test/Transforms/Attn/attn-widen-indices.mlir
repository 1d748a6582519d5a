// RUN: attn-opt %s --attn-widen-indices --canonicalize --split-input-file | FileCheck %s

!t = tensor<?x?x?x16xf16>

// CHECK-LABEL: func @compared(
func.func @compared(%q: !t, %k: !t, %long: tensor<?xi64>, %short: tensor<?xi32>, %byte: tensor<?xi8>) -> !t {
  %o = attn.attention %q, %k, %k
    // CHECK: mask(%{{.*}}, %{{.*}}, %[[M:.*]], %[[N:.*]]) {
    mask(%b, %h, %m, %n) {
      // A number of 64 bits that is compared only is just beyond all positions, if it is beyond them.
      // CHECK: %[[LONG:.*]] = tensor.extract %{{.*}} : tensor<?xi64>
      // CHECK: %[[LEAST:.*]] = arith.maxsi %[[LONG]], %c-1073676288_i64
      // CHECK: %[[BOTH:.*]] = arith.minsi %[[LEAST]], %c1073676288_i64
      // CHECK: %[[LIMIT:.*]] = arith.index_cast %[[BOTH]] : i64 to index
      // CHECK: %[[END:.*]] = arith.addi %[[M]], %[[LIMIT]]
      // CHECK: arith.cmpi sle, %[[N]], %[[END]]
      %long_b = tensor.extract %long[%b] : tensor<?xi64>
      %limit = arith.index_cast %long_b : i64 to index
      %end = arith.addi %m, %limit : index
      %below = arith.cmpi sle, %n, %end : index
      // One of 32 bits is compared as it is, but its sums are not.
      // CHECK: %[[SHORT:.*]] = tensor.extract %{{.*}} : tensor<?xi32>
      // CHECK-NEXT: arith.index_cast %[[SHORT]] : i32 to index
      // CHECK: arith.maxsi %[[SHORT]], %c-1073676288_i32
      %short_b = tensor.extract %short[%b] : tensor<?xi32>
      %first = arith.index_cast %short_b : i32 to index
      %behind = arith.cmpi sge, %n, %first : index
      %width = arith.index_cast %short_b : i32 to index
      %last = arith.addi %m, %width : index
      %inside = arith.cmpi sle, %n, %last : index
      // One of 8 bits is small.
      // CHECK: %[[BYTE:.*]] = tensor.extract %{{.*}} : tensor<?xi8>
      // CHECK-NEXT: arith.index_cast %[[BYTE]] : i8 to index
      %byte_b = tensor.extract %byte[%b] : tensor<?xi8>
      %shift = arith.index_cast %byte_b : i8 to index
      %shifted = arith.subi %m, %shift : index
      %after = arith.cmpi sge, %n, %shifted : index
      // A constant too is just beyond.
      // CHECK: arith.subi %[[M]], %c1073676288
      %far = arith.constant 1099511627776 : index
      %window = arith.subi %m, %far : index
      %near = arith.cmpi sge, %n, %window : index
      %0 = arith.andi %below, %behind : i1
      %1 = arith.andi %inside, %after : i1
      %2 = arith.andi %0, %1 : i1
      %3 = arith.andi %2, %near : i1
      attn.yield %3 : i1
    } : !t, !t, !t -> !t
  return %o : !t
}

// -----

!t = tensor<?x?x?x16xf16>

// What else is made of large numbers is computed in 64 bits, until it fits.
// CHECK-LABEL: func @computed(
func.func @computed(%q: !t, %k: !t, %long: tensor<?xi64>, %table: tensor<?xf32>) -> !t {
  %o = attn.attention %q, %k, %k
    // CHECK: score(%[[S:.*]], %{{.*}}, %{{.*}}, %[[M:.*]], %[[N:.*]]) {
    score(%s, %b, %h, %m, %n) {
      // CHECK: %[[M64:.*]] = arith.index_cast %[[M]] : index to i64
      // CHECK: %[[PRODUCT:.*]] = arith.muli %[[M64]], %c1000003_i64 : i64
      // CHECK: %[[N64:.*]] = arith.index_cast %[[N]] : index to i64
      // CHECK: %[[SUM:.*]] = arith.addi %[[PRODUCT]], %[[N64]] : i64
      // CHECK: %[[REST:.*]] = arith.remui %[[SUM]], %c100_i64 : i64
      // CHECK: %[[PLACE:.*]] = arith.index_cast %[[REST]] : i64 to index
      // CHECK: tensor.extract %{{.*}}[%[[PLACE]]]
      %prime = arith.constant 1000003 : index
      %product = arith.muli %m, %prime : index
      %sum = arith.addi %product, %n : index
      %hundred = arith.constant 100 : index
      %place = arith.remui %sum, %hundred : index
      %x = tensor.extract %table[%place] : tensor<?xf32>
      %r = arith.addf %s, %x : f32
      attn.yield %r : f32
    }
    // CHECK: mask(
    mask(%b, %h, %m, %n) {
      // Two numbers beyond all positions may differ by little.
      // CHECK: %[[FIRST:.*]] = tensor.extract
      // CHECK: %[[SECOND:.*]] = tensor.extract
      // CHECK-NOT: arith.maxsi
      // CHECK: arith.subi %[[FIRST]], %[[SECOND]] : i64
      // CHECK: arith.cmpi sle, %{{.*}}, %{{.*}} : i64
      %first = tensor.extract %long[%m] : tensor<?xi64>
      %second = tensor.extract %long[%n] : tensor<?xi64>
      %a = arith.index_cast %first : i64 to index
      %c = arith.index_cast %second : i64 to index
      %d = arith.subi %a, %c : index
      %keep = arith.cmpi sle, %d, %n : index
      attn.yield %keep : i1
    } : !t, !t, !t -> !t
  return %o : !t
}
