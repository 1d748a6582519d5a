// Masks whose elements alone tell which tiles they keep: three kernels, and what a list has to be right about: whole tiles, none at all,
// rows that keep nothing, a short last tile, masks of heads or of neither, scores and known ranges beside it.
// RUN: attn-run %s --entry=documents --device=sim --check --sim-seeds=2 --shape=B=2,H=2,Hkv=1,M=513,N=513 --input=ids_q=sorted --input=ids_k=sorted | FileCheck %s
// RUN: attn-run %s --entry=documents --device=sim --check --sim-seeds=2 --shape=B=1,H=1,M=127,N=450 --input=ids_q=0..0 --input=ids_k=0..0 | FileCheck %s
// RUN: attn-run %s --entry=documents --device=sim --check --sim-seeds=2 --shape=B=1,H=2,M=129,N=300 --input=ids_q=0..1 --input=ids_k=2..3 | FileCheck %s
// RUN: attn-run %s --entry=documents --device=sim --check --sim-seeds=2 --shape=B=3,H=1,M=1,N=7 --input=ids_q=0..2 --input=ids_k=0..2 | FileCheck %s
// RUN: attn-run %s --entry=heads --device=sim --check --sim-seeds=2 --shape=B=2,H=2,M=130,N=260 | FileCheck %s
// RUN: attn-run %s --entry=holes --device=sim --check --sim-seeds=2 --shape=B=2,H=1,M=200,N=600 --input=first=0..900 | FileCheck %s
// RUN: attn-run %s --entry=scored --device=sim --check --sim-seeds=2 --shape=B=1,H=2,M=513,N=513 --input=ids=sorted | FileCheck %s

// CHECK: _status: {{.*}}_lists: {{.*}} bytes of shared memory
// CHECK: no race, no deadlock
// CHECK: verdict   right

!t = tensor<?x?x?x64xbf16>

// Documents of which nobody says that they are sorted.
func.func @documents(%q: !t, %k: !t, %v: !t, %ids_q: tensor<?x?xi32>, %ids_k: tensor<?x?xi32>) -> (!t, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v variants [#attn.document] captures(%ids_q, %ids_k : tensor<?x?xi32>, tensor<?x?xi32>)
      : !t, !t, !t -> !t, tensor<?x?x?xf32>
  return %o, %lse : !t, tensor<?x?x?xf32>
}

// One mask for all batches, another one for each head.
func.func @heads(%q: !t, %k: !t, %v: !t, %keep: tensor<?x?x?xi1>) -> !t {
  %o = attn.attention %q, %k, %v
    mask(%b, %h, %m, %n) {
      %kept = tensor.extract %keep[%h, %m, %n] : tensor<?x?x?xi1>
      attn.yield %kept : i1
    }
    : !t, !t, !t -> !t
  return %o : !t
}

// Neither batches nor heads: blocks of 64 keys, of which every other is kept, and keys before a row's first.
func.func @holes(%q: !t, %k: !t, %v: !t, %first: tensor<?xi32>) -> !t {
  %c2 = arith.constant 2 : index
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %o = attn.attention %q, %k, %v
    mask(%b, %h, %m, %n) {
      %block = arith.divui %n, %c64 : index
      %rest = arith.remui %block, %c2 : index
      %even = arith.cmpi eq, %rest, %c0 : index
      %least = tensor.extract %first[%m] : tensor<?xi32>
      %from = arith.index_cast %least : i32 to index
      %after = arith.cmpi sge, %n, %from : index
      %kept = arith.andi %even, %after : i1
      attn.yield %kept : i1
    }
    : !t, !t, !t -> !t
  return %o : !t
}

// Beside a score, a sink and a range that is known.
func.func @scored(%q: !t, %k: !t, %v: !t, %ids: tensor<?x?xi32>, %slopes: tensor<?xf32>, %sink: tensor<?xf32>) -> !t {
  %o = attn.attention %q, %k, %v variants [#attn.document, #attn.window<300, 0, top_left>, #attn.alibi<top_left>]
      captures(%ids, %ids, %slopes : tensor<?x?xi32>, tensor<?x?xi32>, tensor<?xf32>) sink(%sink : tensor<?xf32>)
      : !t, !t, !t -> !t
  return %o : !t
}
