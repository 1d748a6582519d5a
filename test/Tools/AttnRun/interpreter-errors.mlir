// What is undefined is an error at a place; so is data that counting left out.

// RUN: not attn-run %s --entry=outside --device=interpreter --until=source --shape x.0=4,y.0=4 2>&1 | FileCheck %s --check-prefix=OUTSIDE
// RUN: not attn-run %s --entry=float_mask --device=interpreter --count --shape B=1,H=1,M=8 --shape bias.0=8 2>&1 | FileCheck %s --check-prefix=DATA
// RUN: attn-run %s --entry=float_mask --device=interpreter --count --shape B=1,H=1,M=8 --shape bias.0=8 --input bias=normal | FileCheck %s --check-prefix=GIVEN
// RUN: not attn-run %s --count 2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: not attn-run %s --until=grid 2>&1 | FileCheck %s --check-prefix=UNTIL
// RUN: not attn-run %s --device=interpreter --count --until=grid 2>&1 | FileCheck %s --check-prefix=DOOR
// RUN: not attn-run %s --device=interpreter --count --check 2>&1 | FileCheck %s --check-prefix=NUMBERS
// RUN: not attn-run %s --device=interpreter --bench 2>&1 | FileCheck %s --check-prefix=BENCH

// COUNT: error: --count: expected --device=interpreter, got --device=cpu
// UNTIL: error: --until: expected --device=interpreter, got --device=cpu
// DOOR: error: --count: expected --until=online or source, for there are no tiles before, got --until=grid
// NUMBERS: error: --count: expected neither --check nor --output, for there are no numbers, got --check
// BENCH: error: --bench: expected --device=cpu, got --device=interpreter

// OUTSIDE: interpreter-errors.mlir:[[@LINE+3]]:8: 'tensor.extract_slice': expected a slice within dimension 0 of extent 4, got offset 1, size 4, stride 1
func.func @outside(%x: tensor<?xf32>) -> tensor<?xf32> {
  %c4 = arith.constant 4 : index
  %y = tensor.extract_slice %x[1] [%c4] [1] : tensor<?xf32> to tensor<?xf32>
  return %y : tensor<?xf32>
}

// DATA: 'tensor.extract': expected a tensor with data, got a shape only
// GIVEN: verdict right
func.func @float_mask(%q: tensor<?x?x?x16xf32>, %k: tensor<?x?x?x16xf32>, %v: tensor<?x?x?x16xf32>, %bias: tensor<?xf32>) -> tensor<?x?x?x16xf32> {
  %o = attn.attention %q, %k, %v
      mask(%b, %h, %m, %n) {
        %x = tensor.extract %bias[%n] : tensor<?xf32>
        %zero = arith.constant 0.0 : f32
        %keep = arith.cmpf ogt, %x, %zero : f32
        attn.yield %keep : i1
      } : tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32> -> tensor<?x?x?x16xf32>
  return %o : tensor<?x?x?x16xf32>
}
