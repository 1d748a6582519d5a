// RUN: attn-opt %s --convert-attn-to-tile -split-input-file -verify-diagnostics

#least = affine_map<(d0)[s0] -> (-d0 + s0, 128)>
!h = tensor<?x?x?x64xbf16>
!t = tensor<?x64xbf16>
!s = tensor<?x64xf32>
!n = tensor<?x?x?xf32>
!r = tensor<?xf32>

// The kernel of rows reads the sum, scales and rounds it; what happens to it after that would be lost.
func.func @changed(%q: !h, %k: !h, %v: !h, %do: !h, %o: !h, %logs: !n) -> (!h, !h, !h) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant 0.125 : f32
  %b = tensor.dim %q, %c0 : !h
  %h = tensor.dim %q, %c1 : !h
  %m = tensor.dim %q, %c2 : !h
  %kb = tensor.dim %k, %c0 : !h
  %kh = tensor.dim %k, %c1 : !h
  %n = tensor.dim %k, %c2 : !h
  %numbers = tensor.empty(%b, %h, %m) : !n
  %lse, %delta = scf.forall (%i, %j, %l) = (0, 0, 0) to (%b, %h, %m) step (1, 1, 128) shared_outs(%x = %numbers, %y = %numbers) -> (!n, !n) {
    %size = affine.min #least(%l)[%m]
    %os = tensor.extract_slice %o[%i, %j, %l, 0] [1, 1, %size, 64] [1, 1, 1, 1] : !h to !t
    %dos = tensor.extract_slice %do[%i, %j, %l, 0] [1, 1, %size, 64] [1, 1, 1, 1] : !h to !t
    %ss = tensor.extract_slice %logs[%i, %j, %l] [1, 1, %size] [1, 1, 1] : !n to !r
    %empty = tensor.empty(%size) : !r
    %row:2 = attn.grad_rows %os, %dos, %ss outs(%empty, %empty) : !t, !t, !r, !r, !r -> !r, !r
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %row#0 into %x[%i, %j, %l] [1, 1, %size] [1, 1, 1] : !r into !n
      tensor.parallel_insert_slice %row#1 into %y[%i, %j, %l] [1, 1, %size] [1, 1, 1] : !r into !n
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  %init = tensor.empty(%b, %h, %m) : !h
  %dq = scf.forall (%i, %j, %l) = (0, 0, 0) to (%b, %h, %m) step (1, 1, 128) shared_outs(%out = %init) -> (!h) {
    %size = affine.min #least(%l)[%m]
    %qs = tensor.extract_slice %q[%i, %j, %l, 0] [1, 1, %size, 64] [1, 1, 1, 1] : !h to !t
    %ks = tensor.extract_slice %k[%i, %j, 0, 0] [1, 1, %n, 64] [1, 1, 1, 1] : !h to !t
    %vs = tensor.extract_slice %v[%i, %j, 0, 0] [1, 1, %n, 64] [1, 1, 1, 1] : !h to !t
    %dos = tensor.extract_slice %do[%i, %j, %l, 0] [1, 1, %size, 64] [1, 1, 1, 1] : !h to !t
    %ls = tensor.extract_slice %lse[%i, %j, %l] [1, 1, %size] [1, 1, 1] : !n to !r
    %ds = tensor.extract_slice %delta[%i, %j, %l] [1, 1, %size] [1, 1, 1] : !n to !r
    %empty = tensor.empty(%size) : !s
    %zeros = linalg.fill ins(%zero : f32) outs(%empty : !s) -> !s
    %sum = scf.for %n0 = %c0 to %n step %c128 iter_args(%acc = %zeros) -> (!s) {
      %ts = affine.min #least(%n0)[%n]
      %kt = tensor.extract_slice %ks[%n0, 0] [%ts, 64] [1, 1] : !t to !t
      %vt = tensor.extract_slice %vs[%n0, 0] [%ts, 64] [1, 1] : !t to !t
      %next = attn.grad_query_step %qs, %kt, %vt, %dos, %ls, %ds scale(%scale) at(%i, %j, %l, %n0) outs(%acc)
        {attn.fused = 0 : i64, attn.schedule = #attn.schedule<block_m = 128, block_n = 128, stages = 2, consumers = 2>}
        : !t, !t, !t, !t, !r, !r, !s -> !s
      scf.yield %next : !s
    }
    %half = tensor.empty(%size) : !t
    // expected-error@below {{expected its result to be inserted into one of the grid}}
    %end = attn.grad_end %sum scale(%scale) outs(%half) : !s, !t -> !t
    %cast = tensor.cast %end : !t to !t
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %cast into %out[%i, %j, %l, 0] [1, 1, %size, 64] [1, 1, 1, 1] : !t into !h
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  %none = tensor.empty(%kb, %kh, %n) : !h
  %g:2 = scf.forall (%i, %j, %l) = (0, 0, 0) to (%kb, %kh, %n) step (1, 1, 128) shared_outs(%dk = %none, %dv = %none) -> (!h, !h) {
    %size = affine.min #least(%l)[%n]
    %qs = tensor.extract_slice %q[%i, %j, 0, 0] [1, 1, %m, 64] [1, 1, 1, 1] : !h to !t
    %ks = tensor.extract_slice %k[%i, %j, %l, 0] [1, 1, %size, 64] [1, 1, 1, 1] : !h to !t
    %vs = tensor.extract_slice %v[%i, %j, %l, 0] [1, 1, %size, 64] [1, 1, 1, 1] : !h to !t
    %dos = tensor.extract_slice %do[%i, %j, 0, 0] [1, 1, %m, 64] [1, 1, 1, 1] : !h to !t
    %ls = tensor.extract_slice %lse[%i, %j, 0] [1, 1, %m] [1, 1, 1] : !n to !r
    %ds = tensor.extract_slice %delta[%i, %j, 0] [1, 1, %m] [1, 1, 1] : !n to !r
    %empty = tensor.empty(%size) : !s
    %zeros = linalg.fill ins(%zero : f32) outs(%empty : !s) -> !s
    %sums:2 = scf.for %m0 = %c0 to %m step %c128 iter_args(%x = %zeros, %y = %zeros) -> (!s, !s) {
      %ts = affine.min #least(%m0)[%m]
      %qt = tensor.extract_slice %qs[%m0, 0] [%ts, 64] [1, 1] : !t to !t
      %dot = tensor.extract_slice %dos[%m0, 0] [%ts, 64] [1, 1] : !t to !t
      %lt = tensor.extract_slice %ls[%m0] [%ts] [1] : !r to !r
      %dt = tensor.extract_slice %ds[%m0] [%ts] [1] : !r to !r
      %next:2 = attn.grad_key_value_step %qt, %ks, %vs, %dot, %lt, %dt scale(%scale) at(%i, %j, %m0, %l) outs(%x, %y)
        {attn.fused = 0 : i64, attn.schedule = #attn.schedule<block_m = 128, block_n = 128, stages = 2, consumers = 2>}
        : !t, !t, !t, !t, !r, !r, !s, !s -> !s, !s
      scf.yield %next#0, %next#1 : !s, !s
    }
    %half = tensor.empty(%size) : !t
    %x = attn.grad_end %sums#0 scale(%scale) outs(%half) : !s, !t -> !t
    %y = attn.grad_end %sums#1 outs(%half) : !s, !t -> !t
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %x into %dk[%i, %j, %l, 0] [1, 1, %size, 64] [1, 1, 1, 1] : !t into !h
      tensor.parallel_insert_slice %y into %dv[%i, %j, %l, 0] [1, 1, %size, 64] [1, 1, 1, 1] : !t into !h
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %dq, %g#0, %g#1 : !h, !h, !h
}

// -----

#least = affine_map<(d0)[s0] -> (-d0 + s0, 128)>
!h = tensor<?x?x?x64xbf16>
!t = tensor<?x64xbf16>
!s = tensor<?x64xf32>
!n = tensor<?x?x?xf32>
!r = tensor<?xf32>

// Nor is an end of use whose result nobody takes.
func.func @unused(%q: !h, %k: !h, %v: !h, %do: !h, %o: !h, %logs: !n) -> (!h, !h, !h) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant 0.125 : f32
  %b = tensor.dim %q, %c0 : !h
  %h = tensor.dim %q, %c1 : !h
  %m = tensor.dim %q, %c2 : !h
  %kb = tensor.dim %k, %c0 : !h
  %kh = tensor.dim %k, %c1 : !h
  %n = tensor.dim %k, %c2 : !h
  %numbers = tensor.empty(%b, %h, %m) : !n
  %lse, %delta = scf.forall (%i, %j, %l) = (0, 0, 0) to (%b, %h, %m) step (1, 1, 128) shared_outs(%x = %numbers, %y = %numbers) -> (!n, !n) {
    %size = affine.min #least(%l)[%m]
    %os = tensor.extract_slice %o[%i, %j, %l, 0] [1, 1, %size, 64] [1, 1, 1, 1] : !h to !t
    %dos = tensor.extract_slice %do[%i, %j, %l, 0] [1, 1, %size, 64] [1, 1, 1, 1] : !h to !t
    %ss = tensor.extract_slice %logs[%i, %j, %l] [1, 1, %size] [1, 1, 1] : !n to !r
    %empty = tensor.empty(%size) : !r
    %row:2 = attn.grad_rows %os, %dos, %ss outs(%empty, %empty) : !t, !t, !r, !r, !r -> !r, !r
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %row#0 into %x[%i, %j, %l] [1, 1, %size] [1, 1, 1] : !r into !n
      tensor.parallel_insert_slice %row#1 into %y[%i, %j, %l] [1, 1, %size] [1, 1, 1] : !r into !n
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  %init = tensor.empty(%b, %h, %m) : !h
  %dq = scf.forall (%i, %j, %l) = (0, 0, 0) to (%b, %h, %m) step (1, 1, 128) shared_outs(%out = %init) -> (!h) {
    %size = affine.min #least(%l)[%m]
    %qs = tensor.extract_slice %q[%i, %j, %l, 0] [1, 1, %size, 64] [1, 1, 1, 1] : !h to !t
    %ks = tensor.extract_slice %k[%i, %j, 0, 0] [1, 1, %n, 64] [1, 1, 1, 1] : !h to !t
    %vs = tensor.extract_slice %v[%i, %j, 0, 0] [1, 1, %n, 64] [1, 1, 1, 1] : !h to !t
    %dos = tensor.extract_slice %do[%i, %j, %l, 0] [1, 1, %size, 64] [1, 1, 1, 1] : !h to !t
    %ls = tensor.extract_slice %lse[%i, %j, %l] [1, 1, %size] [1, 1, 1] : !n to !r
    %ds = tensor.extract_slice %delta[%i, %j, %l] [1, 1, %size] [1, 1, 1] : !n to !r
    %empty = tensor.empty(%size) : !s
    %zeros = linalg.fill ins(%zero : f32) outs(%empty : !s) -> !s
    %sum = scf.for %n0 = %c0 to %n step %c128 iter_args(%acc = %zeros) -> (!s) {
      %ts = affine.min #least(%n0)[%n]
      %kt = tensor.extract_slice %ks[%n0, 0] [%ts, 64] [1, 1] : !t to !t
      %vt = tensor.extract_slice %vs[%n0, 0] [%ts, 64] [1, 1] : !t to !t
      %next = attn.grad_query_step %qs, %kt, %vt, %dos, %ls, %ds scale(%scale) at(%i, %j, %l, %n0) outs(%acc)
        {attn.fused = 0 : i64, attn.schedule = #attn.schedule<block_m = 128, block_n = 128, stages = 2, consumers = 2>}
        : !t, !t, !t, !t, !r, !r, !s -> !s
      scf.yield %next : !s
    }
    %half = tensor.empty(%size) : !t
    // expected-error@below {{expected its result to be inserted into one of the grid}}
    %end = attn.grad_end %sum scale(%scale) outs(%half) : !s, !t -> !t
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %half into %out[%i, %j, %l, 0] [1, 1, %size, 64] [1, 1, 1, 1] : !t into !h
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  %none = tensor.empty(%kb, %kh, %n) : !h
  %g:2 = scf.forall (%i, %j, %l) = (0, 0, 0) to (%kb, %kh, %n) step (1, 1, 128) shared_outs(%dk = %none, %dv = %none) -> (!h, !h) {
    %size = affine.min #least(%l)[%n]
    %qs = tensor.extract_slice %q[%i, %j, 0, 0] [1, 1, %m, 64] [1, 1, 1, 1] : !h to !t
    %ks = tensor.extract_slice %k[%i, %j, %l, 0] [1, 1, %size, 64] [1, 1, 1, 1] : !h to !t
    %vs = tensor.extract_slice %v[%i, %j, %l, 0] [1, 1, %size, 64] [1, 1, 1, 1] : !h to !t
    %dos = tensor.extract_slice %do[%i, %j, 0, 0] [1, 1, %m, 64] [1, 1, 1, 1] : !h to !t
    %ls = tensor.extract_slice %lse[%i, %j, 0] [1, 1, %m] [1, 1, 1] : !n to !r
    %ds = tensor.extract_slice %delta[%i, %j, 0] [1, 1, %m] [1, 1, 1] : !n to !r
    %empty = tensor.empty(%size) : !s
    %zeros = linalg.fill ins(%zero : f32) outs(%empty : !s) -> !s
    %sums:2 = scf.for %m0 = %c0 to %m step %c128 iter_args(%x = %zeros, %y = %zeros) -> (!s, !s) {
      %ts = affine.min #least(%m0)[%m]
      %qt = tensor.extract_slice %qs[%m0, 0] [%ts, 64] [1, 1] : !t to !t
      %dot = tensor.extract_slice %dos[%m0, 0] [%ts, 64] [1, 1] : !t to !t
      %lt = tensor.extract_slice %ls[%m0] [%ts] [1] : !r to !r
      %dt = tensor.extract_slice %ds[%m0] [%ts] [1] : !r to !r
      %next:2 = attn.grad_key_value_step %qt, %ks, %vs, %dot, %lt, %dt scale(%scale) at(%i, %j, %m0, %l) outs(%x, %y)
        {attn.fused = 0 : i64, attn.schedule = #attn.schedule<block_m = 128, block_n = 128, stages = 2, consumers = 2>}
        : !t, !t, !t, !t, !r, !r, !s, !s -> !s, !s
      scf.yield %next#0, %next#1 : !s, !s
    }
    %half = tensor.empty(%size) : !t
    %x = attn.grad_end %sums#0 scale(%scale) outs(%half) : !s, !t -> !t
    %y = attn.grad_end %sums#1 outs(%half) : !s, !t -> !t
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %x into %dk[%i, %j, %l, 0] [1, 1, %size, 64] [1, 1, 1, 1] : !t into !h
      tensor.parallel_insert_slice %y into %dv[%i, %j, %l, 0] [1, 1, %size, 64] [1, 1, 1, 1] : !t into !h
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %dq, %g#0, %g#1 : !h, !h, !h
}

// -----

#least = affine_map<(d0)[s0] -> (-d0 + s0, 128)>
!h = tensor<?x?x?x64xbf16>
!t = tensor<?x64xbf16>
!s = tensor<?x64xf32>
!n = tensor<?x?x?xf32>
!r = tensor<?xf32>

// Without an end there is nothing to put the sum in.
func.func @endless(%q: !h, %k: !h, %v: !h, %do: !h, %o: !h, %logs: !n) -> (!h, !h, !h) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant 0.125 : f32
  %b = tensor.dim %q, %c0 : !h
  %h = tensor.dim %q, %c1 : !h
  %m = tensor.dim %q, %c2 : !h
  %kb = tensor.dim %k, %c0 : !h
  %kh = tensor.dim %k, %c1 : !h
  %n = tensor.dim %k, %c2 : !h
  %numbers = tensor.empty(%b, %h, %m) : !n
  %lse, %delta = scf.forall (%i, %j, %l) = (0, 0, 0) to (%b, %h, %m) step (1, 1, 128) shared_outs(%x = %numbers, %y = %numbers) -> (!n, !n) {
    %size = affine.min #least(%l)[%m]
    %os = tensor.extract_slice %o[%i, %j, %l, 0] [1, 1, %size, 64] [1, 1, 1, 1] : !h to !t
    %dos = tensor.extract_slice %do[%i, %j, %l, 0] [1, 1, %size, 64] [1, 1, 1, 1] : !h to !t
    %ss = tensor.extract_slice %logs[%i, %j, %l] [1, 1, %size] [1, 1, 1] : !n to !r
    %empty = tensor.empty(%size) : !r
    %row:2 = attn.grad_rows %os, %dos, %ss outs(%empty, %empty) : !t, !t, !r, !r, !r -> !r, !r
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %row#0 into %x[%i, %j, %l] [1, 1, %size] [1, 1, 1] : !r into !n
      tensor.parallel_insert_slice %row#1 into %y[%i, %j, %l] [1, 1, %size] [1, 1, 1] : !r into !n
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  %init = tensor.empty(%b, %h, %m) : !h
  // expected-error@below {{expected one attn.grad_end and one result where blocks that own keys add the gradient of queries}}
  %dq = scf.forall (%i, %j, %l) = (0, 0, 0) to (%b, %h, %m) step (1, 1, 128) shared_outs(%out = %init) -> (!h) {
    %size = affine.min #least(%l)[%m]
    %qs = tensor.extract_slice %q[%i, %j, %l, 0] [1, 1, %size, 64] [1, 1, 1, 1] : !h to !t
    %ks = tensor.extract_slice %k[%i, %j, 0, 0] [1, 1, %n, 64] [1, 1, 1, 1] : !h to !t
    %vs = tensor.extract_slice %v[%i, %j, 0, 0] [1, 1, %n, 64] [1, 1, 1, 1] : !h to !t
    %dos = tensor.extract_slice %do[%i, %j, %l, 0] [1, 1, %size, 64] [1, 1, 1, 1] : !h to !t
    %ls = tensor.extract_slice %lse[%i, %j, %l] [1, 1, %size] [1, 1, 1] : !n to !r
    %ds = tensor.extract_slice %delta[%i, %j, %l] [1, 1, %size] [1, 1, 1] : !n to !r
    %empty = tensor.empty(%size) : !s
    %zeros = linalg.fill ins(%zero : f32) outs(%empty : !s) -> !s
    %sum = scf.for %n0 = %c0 to %n step %c128 iter_args(%acc = %zeros) -> (!s) {
      %ts = affine.min #least(%n0)[%n]
      %kt = tensor.extract_slice %ks[%n0, 0] [%ts, 64] [1, 1] : !t to !t
      %vt = tensor.extract_slice %vs[%n0, 0] [%ts, 64] [1, 1] : !t to !t
      %next = attn.grad_query_step %qs, %kt, %vt, %dos, %ls, %ds scale(%scale) at(%i, %j, %l, %n0) outs(%acc)
        {attn.fused = 0 : i64, attn.schedule = #attn.schedule<block_m = 128, block_n = 128, stages = 2, consumers = 2>}
        : !t, !t, !t, !t, !r, !r, !s -> !s
      scf.yield %next : !s
    }
    %half = tensor.empty(%size) : !t
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %half into %out[%i, %j, %l, 0] [1, 1, %size, 64] [1, 1, 1, 1] : !t into !h
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  %none = tensor.empty(%kb, %kh, %n) : !h
  %g:2 = scf.forall (%i, %j, %l) = (0, 0, 0) to (%kb, %kh, %n) step (1, 1, 128) shared_outs(%dk = %none, %dv = %none) -> (!h, !h) {
    %size = affine.min #least(%l)[%n]
    %qs = tensor.extract_slice %q[%i, %j, 0, 0] [1, 1, %m, 64] [1, 1, 1, 1] : !h to !t
    %ks = tensor.extract_slice %k[%i, %j, %l, 0] [1, 1, %size, 64] [1, 1, 1, 1] : !h to !t
    %vs = tensor.extract_slice %v[%i, %j, %l, 0] [1, 1, %size, 64] [1, 1, 1, 1] : !h to !t
    %dos = tensor.extract_slice %do[%i, %j, 0, 0] [1, 1, %m, 64] [1, 1, 1, 1] : !h to !t
    %ls = tensor.extract_slice %lse[%i, %j, 0] [1, 1, %m] [1, 1, 1] : !n to !r
    %ds = tensor.extract_slice %delta[%i, %j, 0] [1, 1, %m] [1, 1, 1] : !n to !r
    %empty = tensor.empty(%size) : !s
    %zeros = linalg.fill ins(%zero : f32) outs(%empty : !s) -> !s
    %sums:2 = scf.for %m0 = %c0 to %m step %c128 iter_args(%x = %zeros, %y = %zeros) -> (!s, !s) {
      %ts = affine.min #least(%m0)[%m]
      %qt = tensor.extract_slice %qs[%m0, 0] [%ts, 64] [1, 1] : !t to !t
      %dot = tensor.extract_slice %dos[%m0, 0] [%ts, 64] [1, 1] : !t to !t
      %lt = tensor.extract_slice %ls[%m0] [%ts] [1] : !r to !r
      %dt = tensor.extract_slice %ds[%m0] [%ts] [1] : !r to !r
      %next:2 = attn.grad_key_value_step %qt, %ks, %vs, %dot, %lt, %dt scale(%scale) at(%i, %j, %m0, %l) outs(%x, %y)
        {attn.fused = 0 : i64, attn.schedule = #attn.schedule<block_m = 128, block_n = 128, stages = 2, consumers = 2>}
        : !t, !t, !t, !t, !r, !r, !s, !s -> !s, !s
      scf.yield %next#0, %next#1 : !s, !s
    }
    %half = tensor.empty(%size) : !t
    %x = attn.grad_end %sums#0 scale(%scale) outs(%half) : !s, !t -> !t
    %y = attn.grad_end %sums#1 outs(%half) : !s, !t -> !t
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %x into %dk[%i, %j, %l, 0] [1, 1, %size, 64] [1, 1, 1, 1] : !t into !h
      tensor.parallel_insert_slice %y into %dv[%i, %j, %l, 0] [1, 1, %size, 64] [1, 1, 1, 1] : !t into !h
    }
  } {mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]}
  return %dq, %g#0, %g#1 : !h, !h, !h
}
