// RUN: attn-opt %s --convert-attn-to-tile --split-input-file --verify-diagnostics

// Sums that are not those which gradients of sinks are.

#map1 = affine_map<(d0)[s0] -> (-d0 + s0, 64)>
#map2 = affine_map<(d0, d1) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0)>
func.func @no_sum(%a: tensor<?x?xf32>, %x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %n = tensor.dim %a, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %r = scf.forall (%i) = (0) to (%m) step (64) shared_outs(%o = %f) -> (tensor<?xf32>) {
    %s = affine.min #map1(%i)[%m]
    %at = tensor.extract_slice %a[%i, 0] [%s, %n] [1, 1] : tensor<?x?xf32> to tensor<?x?xf32>
    %xt = tensor.extract_slice %x[0] [%n] [1] : tensor<?xf32> to tensor<?xf32>
    %ot = tensor.extract_slice %o[%i] [%s] [1] : tensor<?xf32> to tensor<?xf32>
    // expected-error@below {{expected one sum of f32 in each element of one dimension}}
    %g = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "reduction"]} ins(%at : tensor<?x?xf32>) outs(%ot : tensor<?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %t = arith.mulf %in, %in : f32
      %y = arith.maximumf %out, %t : f32
      linalg.yield %y : f32
    } -> tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %g into %o[%i] [%s] [1] : tensor<?xf32> into tensor<?xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return %r : tensor<?xf32>
}

// -----

#map1 = affine_map<(d0)[s0] -> (-d0 + s0, 64)>
#map2 = affine_map<(d0, d1) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0)>
func.func @sum_read_twice(%a: tensor<?x?xf32>, %x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %n = tensor.dim %a, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %r = scf.forall (%i) = (0) to (%m) step (64) shared_outs(%o = %f) -> (tensor<?xf32>) {
    %s = affine.min #map1(%i)[%m]
    %at = tensor.extract_slice %a[%i, 0] [%s, %n] [1, 1] : tensor<?x?xf32> to tensor<?x?xf32>
    %xt = tensor.extract_slice %x[0] [%n] [1] : tensor<?xf32> to tensor<?xf32>
    %ot = tensor.extract_slice %o[%i] [%s] [1] : tensor<?xf32> to tensor<?xf32>
    // expected-error@below {{expected one sum of f32 in each element of one dimension}}
    %g = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "reduction"]} ins(%at : tensor<?x?xf32>) outs(%ot : tensor<?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %t = arith.mulf %in, %out : f32
      %y = arith.addf %out, %t : f32
      linalg.yield %y : f32
    } -> tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %g into %o[%i] [%s] [1] : tensor<?xf32> into tensor<?xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return %r : tensor<?xf32>
}

// -----

// A tile of rows is no column.
#map1 = affine_map<(d0)[s0] -> (-d0 + s0, 64)>
#map2 = affine_map<(d0, d1) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, 0)>
func.func @column(%a: tensor<?x?xf32>, %x: tensor<?xf32>) -> tensor<?x1xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %n = tensor.dim %a, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?x1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x1xf32>) -> tensor<?x1xf32>
  %r = scf.forall (%i) = (0) to (%m) step (64) shared_outs(%o = %f) -> (tensor<?x1xf32>) {
    %s = affine.min #map1(%i)[%m]
    %at = tensor.extract_slice %a[%i, 0] [%s, %n] [1, 1] : tensor<?x?xf32> to tensor<?x?xf32>
    %ot = tensor.extract_slice %o[%i, 0] [%s, 1] [1, 1] : tensor<?x1xf32> to tensor<?x1xf32>
    // expected-error@below {{expected one sum of f32 in each element of one dimension}}
    %g = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "reduction"]} ins(%at : tensor<?x?xf32>) outs(%ot : tensor<?x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %y = arith.addf %out, %in : f32
      linalg.yield %y : f32
    } -> tensor<?x1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %g into %o[%i, 0] [%s, 1] [1, 1] : tensor<?x1xf32> into tensor<?x1xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return %r : tensor<?x1xf32>
}

// -----

#map1 = affine_map<(d0)[s0] -> (-d0 + s0, 64)>
#map2 = affine_map<(d0, d1) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0)>
func.func @starts_with_ones(%a: tensor<?x?xf32>, %x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 1.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %n = tensor.dim %a, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %r = scf.forall (%i) = (0) to (%m) step (64) shared_outs(%o = %f) -> (tensor<?xf32>) {
    %s = affine.min #map1(%i)[%m]
    %at = tensor.extract_slice %a[%i, 0] [%s, %n] [1, 1] : tensor<?x?xf32> to tensor<?x?xf32>
    %xt = tensor.extract_slice %x[0] [%n] [1] : tensor<?xf32> to tensor<?xf32>
    %ot = tensor.extract_slice %o[%i] [%s] [1] : tensor<?xf32> to tensor<?xf32>
    // expected-error@below {{expected sums that start with zeros}}
    %g = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "reduction"]} ins(%at : tensor<?x?xf32>) outs(%ot : tensor<?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %t = arith.mulf %in, %in : f32
      %y = arith.addf %out, %t : f32
      linalg.yield %y : f32
    } -> tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %g into %o[%i] [%s] [1] : tensor<?xf32> into tensor<?xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return %r : tensor<?xf32>
}

// -----

#map1 = affine_map<(d0)[s0] -> (-d0 + s0, 64)>
#map2 = affine_map<(d0, d1) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0)>
func.func @starts_in_the_block(%a: tensor<?x?xf32>, %x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %n = tensor.dim %a, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %r = scf.forall (%i) = (0) to (%m) step (64) shared_outs(%o = %f) -> (tensor<?xf32>) {
    %s = affine.min #map1(%i)[%m]
    %at = tensor.extract_slice %a[%i, 0] [%s, %n] [1, 1] : tensor<?x?xf32> to tensor<?x?xf32>
    %xt = tensor.extract_slice %x[0] [%n] [1] : tensor<?xf32> to tensor<?xf32>
    %ot = tensor.empty(%s) : tensor<?xf32>
    // expected-error@below {{expected sums that start with zeros}}
    %g = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "reduction"]} ins(%at : tensor<?x?xf32>) outs(%ot : tensor<?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %t = arith.mulf %in, %in : f32
      %y = arith.addf %out, %t : f32
      linalg.yield %y : f32
    } -> tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %g into %o[%i] [%s] [1] : tensor<?xf32> into tensor<?xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return %r : tensor<?xf32>
}

// -----

#map1 = affine_map<(d0)[s0] -> (-d0 + s0, 64)>
#map2 = affine_map<(d0, d1) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0)>
func.func @diagonal(%a: tensor<?x?xf32>, %x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %n = tensor.dim %a, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %r = scf.forall (%i) = (0) to (%m) step (64) shared_outs(%o = %f) -> (tensor<?xf32>) {
    %s = affine.min #map1(%i)[%m]
    %at = tensor.extract_slice %a[%i, 0] [%s, %n] [1, 1] : tensor<?x?xf32> to tensor<?x?xf32>
    %xt = tensor.extract_slice %x[0] [%n] [1] : tensor<?xf32> to tensor<?xf32>
    %ot = tensor.extract_slice %o[%i] [%s] [1] : tensor<?xf32> to tensor<?xf32>
    // expected-error@below {{expected operands that are read by their dimensions}}
    %g = linalg.generic {indexing_maps = [#map2, affine_map<(d0, d1) -> (d0 + d1)>, #map3], iterator_types = ["parallel", "reduction"]} ins(%at, %xt : tensor<?x?xf32>, tensor<?xf32>) outs(%ot : tensor<?xf32>) {
    ^bb0(%in: f32, %in2: f32, %out: f32):
      %t = arith.mulf %in, %in : f32
      %y = arith.addf %out, %t : f32
      linalg.yield %y : f32
    } -> tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %g into %o[%i] [%s] [1] : tensor<?xf32> into tensor<?xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return %r : tensor<?xf32>
}

// -----

#map1 = affine_map<(d0)[s0] -> (-d0 + s0, 64)>
#map2 = affine_map<(d0, d1) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0)>
func.func @made_here(%a: tensor<?x?xf32>, %x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %n = tensor.dim %a, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %r = scf.forall (%i) = (0) to (%m) step (64) shared_outs(%o = %f) -> (tensor<?xf32>) {
    %s = affine.min #map1(%i)[%m]
    %at = tensor.extract_slice %a[%i, 0] [%s, %n] [1, 1] : tensor<?x?xf32> to tensor<?x?xf32>
    %xt = tensor.extract_slice %x[0] [%n] [1] : tensor<?xf32> to tensor<?xf32>
    %ot = tensor.extract_slice %o[%i] [%s] [1] : tensor<?xf32> to tensor<?xf32>
    %c = arith.constant dense<1.0> : tensor<64x128xf32>
    // expected-error@below {{expected operands that are slices of the kernel's arguments}}
    %g = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "reduction"]} ins(%c : tensor<64x128xf32>) outs(%ot : tensor<?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %t = arith.mulf %in, %in : f32
      %y = arith.addf %out, %t : f32
      linalg.yield %y : f32
    } -> tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %g into %o[%i] [%s] [1] : tensor<?xf32> into tensor<?xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return %r : tensor<?xf32>
}

// -----

// What a region computes are numbers, by ops that tiles have too.
#map1 = affine_map<(d0)[s0] -> (-d0 + s0, 64)>
#map2 = affine_map<(d0, d1) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0)>
func.func @index(%a: tensor<?x?xf32>, %x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %n = tensor.dim %a, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %r = scf.forall (%i) = (0) to (%m) step (64) shared_outs(%o = %f) -> (tensor<?xf32>) {
    %s = affine.min #map1(%i)[%m]
    %at = tensor.extract_slice %a[%i, 0] [%s, %n] [1, 1] : tensor<?x?xf32> to tensor<?x?xf32>
    %xt = tensor.extract_slice %x[0] [%n] [1] : tensor<?xf32> to tensor<?xf32>
    %ot = tensor.extract_slice %o[%i] [%s] [1] : tensor<?xf32> to tensor<?xf32>
    %g = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "reduction"]} ins(%at : tensor<?x?xf32>) outs(%ot : tensor<?xf32>) {
    ^bb0(%in: f32, %out: f32):
      // expected-error@below {{'linalg.index' op has no form on tiles}}
      %at2 = linalg.index 0 : index
      %t = arith.mulf %in, %in : f32
      %y = arith.addf %out, %t : f32
      linalg.yield %y : f32
    } -> tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %g into %o[%i] [%s] [1] : tensor<?xf32> into tensor<?xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return %r : tensor<?xf32>
}

// -----

#map1 = affine_map<(d0)[s0] -> (-d0 + s0, 64)>
#map2 = affine_map<(d0, d1) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0)>
func.func @branch(%a: tensor<?x?xf32>, %x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %n = tensor.dim %a, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %r = scf.forall (%i) = (0) to (%m) step (64) shared_outs(%o = %f) -> (tensor<?xf32>) {
    %s = affine.min #map1(%i)[%m]
    %at = tensor.extract_slice %a[%i, 0] [%s, %n] [1, 1] : tensor<?x?xf32> to tensor<?x?xf32>
    %xt = tensor.extract_slice %x[0] [%n] [1] : tensor<?xf32> to tensor<?xf32>
    %ot = tensor.extract_slice %o[%i] [%s] [1] : tensor<?xf32> to tensor<?xf32>
    %g = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "reduction"]} ins(%at : tensor<?x?xf32>) outs(%ot : tensor<?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %c = arith.cmpf oeq, %in, %in : f32
      // expected-error@below {{'scf.if' op has no form on tiles}}
      %t = scf.if %c -> f32 {
        scf.yield %in : f32
      } else {
        scf.yield %zero : f32
      }
      %y = arith.addf %out, %t : f32
      linalg.yield %y : f32
    } -> tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %g into %o[%i] [%s] [1] : tensor<?xf32> into tensor<?xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return %r : tensor<?xf32>
}

// -----

#map1 = affine_map<(d0)[s0] -> (-d0 + s0, 64)>
#map2 = affine_map<(d0, d1) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0)>
func.func @call(%a: tensor<?x?xf32>, %x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %n = tensor.dim %a, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %r = scf.forall (%i) = (0) to (%m) step (64) shared_outs(%o = %f) -> (tensor<?xf32>) {
    %s = affine.min #map1(%i)[%m]
    %at = tensor.extract_slice %a[%i, 0] [%s, %n] [1, 1] : tensor<?x?xf32> to tensor<?x?xf32>
    %xt = tensor.extract_slice %x[0] [%n] [1] : tensor<?xf32> to tensor<?xf32>
    %ot = tensor.extract_slice %o[%i] [%s] [1] : tensor<?xf32> to tensor<?xf32>
    %g = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "reduction"]} ins(%at : tensor<?x?xf32>) outs(%ot : tensor<?xf32>) {
    ^bb0(%in: f32, %out: f32):
      // expected-error@below {{'func.call' op has no form on tiles}}
      %t = func.call @g(%in) : (f32) -> f32
      %y = arith.addf %out, %t : f32
      linalg.yield %y : f32
    } -> tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %g into %o[%i] [%s] [1] : tensor<?xf32> into tensor<?xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return %r : tensor<?xf32>
}
func.func private @g(f32) -> f32

// -----

#map1 = affine_map<(d0)[s0] -> (-d0 + s0, 64)>
#map2 = affine_map<(d0, d1) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0)>
func.func @vector(%a: tensor<?x?xf32>, %x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %n = tensor.dim %a, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %r = scf.forall (%i) = (0) to (%m) step (64) shared_outs(%o = %f) -> (tensor<?xf32>) {
    %s = affine.min #map1(%i)[%m]
    %at = tensor.extract_slice %a[%i, 0] [%s, %n] [1, 1] : tensor<?x?xf32> to tensor<?x?xf32>
    %xt = tensor.extract_slice %x[0] [%n] [1] : tensor<?xf32> to tensor<?xf32>
    %ot = tensor.extract_slice %o[%i] [%s] [1] : tensor<?xf32> to tensor<?xf32>
    %g = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "reduction"]} ins(%at : tensor<?x?xf32>) outs(%ot : tensor<?xf32>) {
    ^bb0(%in: f32, %out: f32):
      // expected-error@below {{expected scalars in a region}}
      %v = arith.constant dense<1.0> : vector<4xf32>
      %t = arith.mulf %in, %in : f32
      %y = arith.addf %out, %t : f32
      linalg.yield %y : f32
    } -> tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %g into %o[%i] [%s] [1] : tensor<?xf32> into tensor<?xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return %r : tensor<?xf32>
}

// -----

#map1 = affine_map<(d0)[s0] -> (-d0 + s0, 64)>
#map2 = affine_map<(d0, d1) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0)>
func.func @tile(%a: tensor<?x?xf32>, %x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %n = tensor.dim %a, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %r = scf.forall (%i) = (0) to (%m) step (64) shared_outs(%o = %f) -> (tensor<?xf32>) {
    %s = affine.min #map1(%i)[%m]
    %at = tensor.extract_slice %a[%i, 0] [%s, %n] [1, 1] : tensor<?x?xf32> to tensor<?x?xf32>
    %xt = tensor.extract_slice %x[0] [%n] [1] : tensor<?xf32> to tensor<?xf32>
    %ot = tensor.extract_slice %o[%i] [%s] [1] : tensor<?xf32> to tensor<?xf32>
    %c = arith.constant dense<1.0> : tensor<64xf32>
    %g = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "reduction"]} ins(%at : tensor<?x?xf32>) outs(%ot : tensor<?xf32>) {
    ^bb0(%in: f32, %out: f32):
      // expected-error@below {{expected an element of an argument, got one of a tile 'tensor<64xf32>'}}
      %t = tensor.extract %c[%c0] : tensor<64xf32>
      %y = arith.addf %out, %t : f32
      linalg.yield %y : f32
    } -> tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %g into %o[%i] [%s] [1] : tensor<?xf32> into tensor<?xf32>
    }
  } {mapping = [#gpu.block<x>]}
  return %r : tensor<?xf32>
}

// -----

// What grids add to is f32, and has elements.
// expected-error@+1 {{expected the gradient of a captured tensor to be f32, got 'f64'}}
func.func @wide(%x: tensor<?xbf16>) -> tensor<?xf64> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f64
  %n = tensor.dim %x, %c0 : tensor<?xbf16>
  %empty = tensor.empty(%n) : tensor<?xf64>
  %g = linalg.fill ins(%zero : f64) outs(%empty : tensor<?xf64>) -> tensor<?xf64>
  return %g : tensor<?xf64>
}

// -----

// expected-error@+1 {{expected integers from 1 to 2147483647 in the grid, got 0}}
func.func @no_elements(%x: tensor<?xbf16>) -> tensor<0xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<0xf32>
  %g = linalg.fill ins(%zero : f32) outs(%empty : tensor<0xf32>) -> tensor<0xf32>
  return %g : tensor<0xf32>
}
