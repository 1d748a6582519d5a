// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @specialize_c1() {
  // expected-error@+1 {{expected at least two roles, each with all of its attributes, got 1}}
  tile.specialize
  role a warpgroups 1 registers 24 {
  }
  return
}

// -----

func.func @specialize_c2() {
  // expected-error@+1 {{expected 1 to 8 warpgroups and registers in multiples of 8 from 24 to 256, got 1 and 25 in role 'a'}}
  tile.specialize
  role a warpgroups 1 registers 25 {
  }
  role b warpgroups 1 registers 24 {
  }
  return
}

// -----

func.func @specialize_c2_warpgroups() {
  // expected-error@+1 {{expected 1 to 8 warpgroups and registers in multiples of 8 from 24 to 256, got 9 and 24 in role 'b'}}
  tile.specialize
  role a warpgroups 1 registers 24 {
  }
  role b warpgroups 9 registers 24 {
  }
  return
}

// -----

func.func @specialize_c3() {
  // expected-error@+1 {{expected at most 64512 registers in a block, got 92160}}
  tile.specialize
  role a warpgroups 1 registers 240 {
  }
  role b warpgroups 2 registers 240 {
  }
  return
}

// -----

// 168 registers for each thread of three warpgroups, not all of the machine.
func.func @specialize_c3_start() {
  // expected-error@+1 {{expected at most 64512 registers in a block, got 65536}}
  tile.specialize
  role a warpgroups 1 registers 32 {
  }
  role b warpgroups 2 registers 240 {
  }
  return
}

// -----

func.func @specialize_c4() attributes {tile.kernel = #tile.kernel<warpgroups = 4, grid = []>} {
  // expected-error@+1 {{expected roles for the 4 warpgroups of the kernel, got 3}}
  tile.specialize
  role a warpgroups 1 registers 24 elected {
  }
  role b warpgroups 2 registers 240 {
  }
  return
}

// -----

func.func @specialize_c4_loop(%n: index) {
  scf.for %i = %n to %n step %n {
    // expected-error@+1 {{expected it directly in a kernel, got 'scf.for' around it}}
    tile.specialize
    role a warpgroups 1 registers 24 {
    }
    role b warpgroups 2 registers 24 {
    }
  }
  return
}
