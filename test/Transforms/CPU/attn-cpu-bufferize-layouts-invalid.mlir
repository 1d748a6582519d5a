// RUN: attn-opt %s --attn-cpu-bufferize --verify-diagnostics

func.func @branches(%c: i1, %x: tensor<?x?xf32>, %m: index, %n: index) -> tensor<?x?xf32> {
  // expected-error@below {{expected a tensor whose buffer has one layout on all ways to here, got 'memref<?x?xf32, strided<[?, 1], offset: ?>>'}}
  %r = scf.if %c -> tensor<?x?xf32> {
    %e = tensor.empty(%m, %n) : tensor<?x?xf32>
    %s = tensor.extract_slice %x[0, 0] [%m, %n] [2, 2] : tensor<?x?xf32> to tensor<?x?xf32>
    scf.yield %s : tensor<?x?xf32>
  } else {
    %e = tensor.empty(%m, %n) : tensor<?x?xf32>
    scf.yield %e : tensor<?x?xf32>
  }
  return %r : tensor<?x?xf32>
}
