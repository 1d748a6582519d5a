// RUN: attn-opt %s --attn-cpu-place-results --split-input-file --verify-diagnostics

func.func @argument(%o: tensor<?x?x?x8xf32>, %a: tensor<?xi32>, %out: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
  // expected-error@+1 {{expected a result of a grid that is read nowhere else}}
  %t = attn.place %o[%a] into %out : tensor<?x?x?x8xf32>, tensor<?xi32> -> tensor<?x?x8xf32>
  return %t : tensor<?x?x8xf32>
}
