// How a kernel is launched goes from its attributes into its plan; what few kernels have is left out of the others'.
// RUN: attn-opt %s --tile-allocate-shared --convert-tile-to-nvvm | FileCheck %s

// CHECK-LABEL: llvm.func @few
// CHECK-SAME:  cluster = [2, 2, 1]
// CHECK-SAME:  grid = {{\[\[}}{multiprocessors = 2 : i64}], [{argument = 0 : i64, dim = 0 : i64, divisor = 64 : i64}], []]
// CHECK-SAME:  programmatic = true
// CHECK-SAME:  scratch = [{argument = 1 : i64, element_type = "i32", shape = [{multiprocessors = 1 : i64}], zero = true}]
// CHECK-SAME:  way = "few"
// CHECK-SAME:  when = {{\[\[}}{argument = 0 : i64, dim = 0 : i64, divisor = 1 : i64, least = 1 : i64, most = 64 : i64},
// CHECK-SAME:          {least = 0 : i64, most = 1 : i64, of = [{argument = 0 : i64, dim = 0 : i64, divisor = 256 : i64}, {constant = 3 : i64}], parts = 64 : i64}],
// CHECK-SAME:         [{least = 4000 : i64, memory_rate = true, most = 9223372036854775807 : i64}]]
func.func @few(%o: memref<?xf32>, %count: memref<?xi32> {tile.scratch = [#plan.multiprocessors<blocks = 1>], tile.zeroed}) attributes {
    tile.kernel = #tile.kernel<warpgroups = 1,
                               grid = [[#plan.multiprocessors<blocks = 2>], [#plan.extent<argument = 0, dim = 0, divisor = 64>]],
                               cluster = [2, 2], programmatic = true>,
    plan.way = "few",
    plan.when = [[#plan.range<argument = 0, dim = 0, least = 1, most = 64>,
                  #plan.range<least = 0, most = 1, parts = <blocks = [3], keys = #plan.extent<argument = 0, dim = 0, divisor = 256>, most = 64>>],
                 [#plan.range<least = 4000, device = "memory_rate">]]} {
  return
}

// CHECK-LABEL: llvm.func @all
// CHECK-NOT:   programmatic
// CHECK-NOT:   when
// CHECK-SAME:  tile.plan = {{.*}}scratch = []
func.func @all(%o: memref<?xf32>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  return
}

// Threads of two blocks on a multiprocessor have half of its registers.
// CHECK-LABEL: llvm.func @two
// CHECK-SAME:  nvvm.maxnreg = 128 : i32, nvvm.minctasm = 2 : i32, nvvm.reqntid = array<i32: 256, 1, 1>
func.func @two(%o: memref<?xf32>) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = [], schedule = <resident = 2>>} {
  return
}
