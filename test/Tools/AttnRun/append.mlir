// RUN: attn-run %s --shape new.0=9,new.1=3,pool.0=4,pool.1=16,cos.0=7 --entry=append --input slots=-3..70 --input at=-2..9 --check | FileCheck %s
// RUN: attn-run %s --shape new.0=9,new.1=3,pool.0=4,pool.1=16,cos.0=7 --entry=append --input slots=-3..70 --input at=-2..9 --device=sim --check | FileCheck %s
// RUN: attn-run %s --shape new.0=5,new.1=9,pool.0=4,pool.1=3,cos.0=1 --entry=append --input slots=-3..70 --device=sim --target=sm_80 --check | FileCheck %s
// RUN: attn-run %s --entry=append --shape new.0=0,new.1=2,pool.0=2,pool.1=3,cos.0=2 --check | FileCheck %s
// RUN: attn-run %s --entry=filled --shape new.0=9,new.1=3,pool.0=4,pool.1=16,cos.0=7 --input slots=-3..70 --check | FileCheck %s
// RUN: attn-run %s --entry=filled --shape new.0=9,new.1=3,pool.0=4,pool.1=16,cos.0=7 --input slots=-3..70 --device=interpreter --check | FileCheck %s

// New keys, turned on their way, and queries. What no row goes to is not written, where the definition does not write it. Of a pool
// that begins as zeros all other rows are zeros.
// CHECK: verdict right
func.func @append(%new: tensor<?x?x64xf16>, %slots: tensor<?xi64>, %at: tensor<?xi32>, %cos: tensor<?x24xf32>, %sin: tensor<?x24xf32>, %pool: tensor<?x?x?x64xf16>) -> (tensor<?x?x?x64xf16>, tensor<?x?x64xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %rows = tensor.dim %new, %c0 : tensor<?x?x64xf16>
  %pages = tensor.dim %pool, %c0 : tensor<?x?x?x64xf16>
  %page = tensor.dim %pool, %c1 : tensor<?x?x?x64xf16>
  %heads = tensor.dim %pool, %c2 : tensor<?x?x?x64xf16>
  %empty = tensor.empty(%rows, %heads) : tensor<?x?x64xf16>
  %turned = attn.rotary %new at %at by %cos, %sin interleaved outs(%empty) : tensor<?x?x64xf16>, tensor<?xi32>, tensor<?x24xf32>, tensor<?x24xf32>, tensor<?x?x64xf16> -> tensor<?x?x64xf16>
  %memory = tensor.empty(%pages, %page, %heads) : tensor<?x?x?x64xf16>
  %r = attn.append %turned[%slots] into %memory : tensor<?x?x64xf16>, tensor<?xi64>, tensor<?x?x?x64xf16> -> tensor<?x?x?x64xf16>
  return %r, %turned : tensor<?x?x?x64xf16>, tensor<?x?x64xf16>
}

func.func @filled(%new: tensor<?x?x40xf32>, %slots: tensor<?xi32>, %at: tensor<?xi64>, %cos: tensor<?x13xf32>, %sin: tensor<?x13xf32>, %pool: tensor<?x?x?x40xf32>) -> tensor<?x?x?x40xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %pages = tensor.dim %pool, %c0 : tensor<?x?x?x40xf32>
  %page = tensor.dim %pool, %c1 : tensor<?x?x?x40xf32>
  %heads = tensor.dim %pool, %c2 : tensor<?x?x?x40xf32>
  %memory = tensor.empty(%pages, %page, %heads) : tensor<?x?x?x40xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%memory : tensor<?x?x?x40xf32>) -> tensor<?x?x?x40xf32>
  %r = attn.append %new[%slots] rotary(%at, %cos, %sin : tensor<?xi64>, tensor<?x13xf32>, tensor<?x13xf32>) into %zeros : tensor<?x?x40xf32>, tensor<?xi32>, tensor<?x?x?x40xf32> -> tensor<?x?x?x40xf32>
  return %r : tensor<?x?x?x40xf32>
}
