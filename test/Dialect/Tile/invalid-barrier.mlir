// RUN: attn-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{expected 1 to 64 stages, got 65}}
func.func private @barrier_c1(!tile.barrier<65>)

// -----

// expected-error@+1 {{expected 1 to 64 stages, got 0}}
func.func private @slot_c1(!tile.slot<0>)

// -----

func.func @barrier_c2(%full: !tile.barrier<2>) {
  // expected-error@+1 {{expected a slot of 2 stages, got 1}}
  tile.barrier_wait %full : !tile.barrier<2>
  return
}

// -----

func.func @barrier_c2_arrive(%empty: !tile.barrier<2>) {
  // expected-error@+1 {{expected a slot of 2 stages, got 1}}
  tile.barrier_arrive %empty : !tile.barrier<2>
  return
}

// -----

func.func @barrier_c2_expect(%full: !tile.barrier<2>, %slot: !tile.slot<3>) {
  // expected-error@+1 {{expected a slot of 2 stages, got 3}}
  "tile.barrier_expect"(%full, %slot) {bytes = 64} : (!tile.barrier<2>, !tile.slot<3>) -> ()
  return
}

// -----

func.func @barrier_c2_copy(%k: memref<?x?xbf16>, %s: !tile.shared<64x64xbf16, swizzle = 128>, %full: !tile.barrier<2>, %i: index) {
  // expected-error@+1 {{expected a slot of 2 stages, got 1}}
  tile.copy_async %k[%i, %i] to %s signal %full
      : memref<?x?xbf16>, !tile.shared<64x64xbf16, swizzle = 128>, !tile.barrier<2>
  return
}

// -----

func.func @barrier_expect_c1(%full: !tile.barrier<1>) {
  // expected-error@+1 {{expected fewer than 1048576 bytes, got 1048576}}
  tile.barrier_expect %full bytes 1048576 : !tile.barrier<1>
  return
}

// -----

func.func @named_barrier_c1(%i: index) {
  // expected-error@+1 {{expected 32 to 1024 threads in whole warps, got 100}}
  tile.named_barrier sync %i threads 100
  return
}

// -----

func.func @named_barrier_c1_most(%i: index) {
  // expected-error@+1 {{expected 32 to 1024 threads in whole warps, got 1056}}
  tile.named_barrier arrive %i threads 1056
  return
}
