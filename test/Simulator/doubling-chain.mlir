// RUN: attn-opt %s --tile-simulate="shapes=64x64 seeds=1" -o %t

// What is made where it is used is asked about once for each value: this has 2^64 ways to its beginning.

#acc = #tile.acc<units = 1>
!o = memref<?x64xf32>
!scores = tensor<64x64xf32, #acc>

func.func @doubling(%o: !o) attributes {tile.kernel = #tile.kernel<warpgroups = 2, grid = []>} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1.0e-20 : f32
  %b = tile.barrier_init 1 : !tile.barrier<1>
  tile.sync
  tile.specialize
  role producer warpgroups 1 registers 24 elected {
    tile.barrier_arrive %b : !tile.barrier<1>
  }
  role consumer warpgroups 1 registers 240 {
    tile.barrier_wait %b : !tile.barrier<1>
    %x0 = tile.broadcast %one : f32 -> !scores
    %x1 = arith.addf %x0, %x0 : !scores
    %x2 = arith.addf %x1, %x1 : !scores
    %x3 = arith.addf %x2, %x2 : !scores
    %x4 = arith.addf %x3, %x3 : !scores
    %x5 = arith.addf %x4, %x4 : !scores
    %x6 = arith.addf %x5, %x5 : !scores
    %x7 = arith.addf %x6, %x6 : !scores
    %x8 = arith.addf %x7, %x7 : !scores
    %x9 = arith.addf %x8, %x8 : !scores
    %x10 = arith.addf %x9, %x9 : !scores
    %x11 = arith.addf %x10, %x10 : !scores
    %x12 = arith.addf %x11, %x11 : !scores
    %x13 = arith.addf %x12, %x12 : !scores
    %x14 = arith.addf %x13, %x13 : !scores
    %x15 = arith.addf %x14, %x14 : !scores
    %x16 = arith.addf %x15, %x15 : !scores
    %x17 = arith.addf %x16, %x16 : !scores
    %x18 = arith.addf %x17, %x17 : !scores
    %x19 = arith.addf %x18, %x18 : !scores
    %x20 = arith.addf %x19, %x19 : !scores
    %x21 = arith.addf %x20, %x20 : !scores
    %x22 = arith.addf %x21, %x21 : !scores
    %x23 = arith.addf %x22, %x22 : !scores
    %x24 = arith.addf %x23, %x23 : !scores
    %x25 = arith.addf %x24, %x24 : !scores
    %x26 = arith.addf %x25, %x25 : !scores
    %x27 = arith.addf %x26, %x26 : !scores
    %x28 = arith.addf %x27, %x27 : !scores
    %x29 = arith.addf %x28, %x28 : !scores
    %x30 = arith.addf %x29, %x29 : !scores
    %x31 = arith.addf %x30, %x30 : !scores
    %x32 = arith.addf %x31, %x31 : !scores
    %x33 = arith.addf %x32, %x32 : !scores
    %x34 = arith.addf %x33, %x33 : !scores
    %x35 = arith.addf %x34, %x34 : !scores
    %x36 = arith.addf %x35, %x35 : !scores
    %x37 = arith.addf %x36, %x36 : !scores
    %x38 = arith.addf %x37, %x37 : !scores
    %x39 = arith.addf %x38, %x38 : !scores
    %x40 = arith.addf %x39, %x39 : !scores
    %x41 = arith.addf %x40, %x40 : !scores
    %x42 = arith.addf %x41, %x41 : !scores
    %x43 = arith.addf %x42, %x42 : !scores
    %x44 = arith.addf %x43, %x43 : !scores
    %x45 = arith.addf %x44, %x44 : !scores
    %x46 = arith.addf %x45, %x45 : !scores
    %x47 = arith.addf %x46, %x46 : !scores
    %x48 = arith.addf %x47, %x47 : !scores
    %x49 = arith.addf %x48, %x48 : !scores
    %x50 = arith.addf %x49, %x49 : !scores
    %x51 = arith.addf %x50, %x50 : !scores
    %x52 = arith.addf %x51, %x51 : !scores
    %x53 = arith.addf %x52, %x52 : !scores
    %x54 = arith.addf %x53, %x53 : !scores
    %x55 = arith.addf %x54, %x54 : !scores
    %x56 = arith.addf %x55, %x55 : !scores
    %x57 = arith.addf %x56, %x56 : !scores
    %x58 = arith.addf %x57, %x57 : !scores
    %x59 = arith.addf %x58, %x58 : !scores
    %x60 = arith.addf %x59, %x59 : !scores
    %x61 = arith.addf %x60, %x60 : !scores
    %x62 = arith.addf %x61, %x61 : !scores
    %x63 = arith.addf %x62, %x62 : !scores
    %x64 = arith.addf %x63, %x63 : !scores
    tile.store %x64 to %o[%zero, %zero] : !scores, !o
  }
  return
}
