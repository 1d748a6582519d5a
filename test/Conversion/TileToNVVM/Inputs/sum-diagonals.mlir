#acc = #tile.acc<units = 1>

func.func @diagonals(%x: memref<64xCOLUMNSxf32>, %o: memref<64xCOLUMNSxf32>) attributes {tile.kernel = #tile.kernel<warpgroups = 1, grid = []>} {
  %zero = arith.constant 0 : index
  %t = tile.load %x[%zero, %zero] : memref<64xCOLUMNSxf32> -> tensor<64xCOLUMNSxf32, #acc>
  %s = tile.sum_diagonals %t : tensor<64xCOLUMNSxf32, #acc>
  tile.store %s to %o[%zero, %zero] : tensor<64xCOLUMNSxf32, #acc>, memref<64xCOLUMNSxf32>
  return
}
