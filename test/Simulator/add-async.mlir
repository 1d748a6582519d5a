// RUN: attn-opt %s --tile-simulate="shapes=128x64,1 seeds=5" --split-input-file --verify-diagnostics -o %t

// Additions through shared memory: blocks add in any order, the role waits until its places have been read, and nobody waits until memory
// has been added to.

#kernel = #tile.kernel<warpgroups = 1, grid = [[2]]>
!m = memref<?x64xf32>
!t = tensor<64x64xf32, #tile.acc<units = 1>>
!place = !tile.shared<64x64xf32, swizzle = 128>

func.func @sum(%o: !m, %s: memref<?xf32>) attributes {tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %one = arith.constant dense<1.0> : !t
  %place = tile.alloc_shared : !place
  %block = gpu.block_id x
  %at = arith.muli %block, %c32 : index
  tile.add_async %one to %o[%at, %c0] through %place : !t, !m, !place
  tile.add_async %one to %o[%at, %c0] through %place : !t, !m, !place
  tile.store_wait
  return
}

// -----

#kernel = #tile.kernel<warpgroups = 1, grid = [[1]]>
!m = memref<?x64xf32>
!t = tensor<64x64xf32, #tile.acc<units = 1>>
!place = !tile.shared<64x64xf32, swizzle = 128>

func.func @unfinished(%o: !m, %s: memref<?xf32>) attributes {tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %one = arith.constant dense<1.0> : !t
  %place = tile.alloc_shared : !place
  // expected-error@below {{unfinished: no tile.store_wait follows this store: its shared tile may be gone before it is read}}
  tile.add_async %one to %o[%c0, %c0] through %place : !t, !m, !place
  return
}

// -----

#kernel = #tile.kernel<warpgroups = 1, grid = [[1]]>
!m = memref<?x64xf32>
!t = tensor<64x64xf32, #tile.acc<units = 1>>
!place = !tile.shared<64x64xf32, swizzle = 128>

// The wait says that the place has been read, not that memory has been added to.
func.func @read_sum(%o: !m, %s: memref<?xf32>) attributes {tile.kernel = #kernel} {
  %c0 = arith.constant 0 : index
  %one = arith.constant dense<1.0> : !t
  %place = tile.alloc_shared : !place
  // expected-note@+1 {{it is added to here}}
  tile.add_async %one to %o[%c0, %c0] through %place : !t, !m, !place
  tile.store_wait
  // expected-error@+1 {{race: element [0, 0] of argument 0 is read by block (0, 0, 0), and nothing orders that against asynchronous hardware}}
  %sum = tile.load %o[%c0, %c0] : !m -> !t
  return
}
