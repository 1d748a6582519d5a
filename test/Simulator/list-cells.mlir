// Masks that read a table at quotients of rows and keys: lists by one read a tile, forward and for gradients. Nothing is kept, all, or some;
// rows and keys end within a block; cells are as large as tiles, larger or smaller; and something by element stands beside the blocks.
// RUN: attn-run %s --entry=blocks --device=sim --check --grad --sim-seeds=1 --shape=B=2,H=4,Hkv=2,M=300,N=390,keep.1=3,keep.2=4 | FileCheck %s
// RUN: attn-run %s --entry=blocks --device=sim --check --grad --sim-seeds=1 --shape=B=1,H=1,M=129,N=256,keep.1=2,keep.2=2 --input=keep=zeros | FileCheck %s
// RUN: attn-run %s --entry=blocks --device=sim --check --grad --sim-seeds=1 --shape=B=1,H=1,M=257,N=130,keep.1=3,keep.2=2 --input=keep=1..1 | FileCheck %s
// RUN: attn-run %s --entry=under --device=sim --check --grad --sim-seeds=1 --seed=1 --shape=B=1,H=2,M=520,N=450,keep.1=3,keep.2=2 | FileCheck %s
// RUN: attn-run %s --entry=small --device=sim --check --grad --sim-seeds=1 --shape=B=1,H=2,M=200,N=200,keep.0=4,keep.1=4 | FileCheck %s
// RUN: attn-run %s --entry=small --device=sim --check --grad --sim-seeds=1 --shape=B=1,H=1,M=150,N=330,keep.0=3,keep.1=6 --input=keep=1..1 | FileCheck %s
// RUN: attn-run %s --entry=tables --device=sim --check --grad --sim-seeds=1 --shape=B=1,H=2,M=300,N=390,full.1=3,full.2=4,partial.1=3,partial.2=4 | FileCheck %s
// RUN: attn-run %s --entry=documents --device=sim --check --grad --sim-seeds=1 --shape=B=1,H=2,M=300,N=390,keep.0=3,keep.1=4 --input=ids_q=0..2 --input=ids_k=0..2 | FileCheck %s
// RUN: attn-run %s --entry=sorted --device=sim --check --grad --sim-seeds=1 --shape=B=2,H=2,M=300,N=300,keep.0=3,keep.1=3 --input=ids=sorted | FileCheck %s

// No element of the mask is evaluated where blocks alone decide, and of tiles that are visited none keeps nothing.
// Tiles are as large as this CPU wants them.
// RUN: attn-run %s --entry=blocks --device=interpreter --count --shape=B=1,H=2,M=384,N=512,keep.1=3,keep.2=4 | FileCheck %s --check-prefix=COUNT
// RUN: attn-run %s --entry=under --device=interpreter --count --shape=B=1,H=2,M=512,N=512,keep.1=2,keep.2=2 --input=keep=1..1 | FileCheck %s --check-prefix=UNDER

// CHECK: _status: {{.*}}_lists: {{.*}} bytes of shared memory
// CHECK: no race, no deadlock
// CHECK: verdict   right
// COUNT: tiles {{.*}} visited, 0 masked
// COUNT: masks     0 elements evaluated
// COUNT: waste     0 tiles keep nothing, 0 masked tiles keep everything
// COUNT: verdict   right
// UNDER: tiles {{[0-9]+}} visited, {{[0-9]+}} masked, {{[1-9][0-9]*}} unmasked
// UNDER: waste     0 tiles keep nothing, 0 masked tiles keep everything
// UNDER: verdict   right

!t = tensor<?x?x?x64xbf16>
!keep = tensor<?x?x?xi1>

func.func @blocks(%q: !t, %k: !t, %v: !t, %keep: !keep) -> !t {
  %c128 = arith.constant 128 : index
  %o = attn.attention %q, %k, %v mask(%b, %h, %m, %n) {
    %i = arith.floordivsi %m, %c128 : index
    %j = arith.floordivsi %n, %c128 : index
    %kept = tensor.extract %keep[%h, %i, %j] : !keep
    attn.yield %kept : i1
  } : !t, !t, !t -> !t
  return %o : !t
}

// Two tiles to each side of a block.
func.func @under(%q: !t, %k: !t, %v: !t, %keep: !keep) -> !t {
  %c256 = arith.constant 256 : index
  %o = attn.attention %q, %k, %v mask(%b, %h, %m, %n) {
    %i = arith.divui %m, %c256 : index
    %j = arith.divui %n, %c256 : index
    %kept = tensor.extract %keep[%h, %i, %j] : !keep
    %before = arith.cmpi sle, %n, %m : index
    %both = arith.andi %kept, %before : i1
    attn.yield %both : i1
  } : !t, !t, !t -> !t
  return %o : !t
}

// One consumer's rows; tiles of gradients have several blocks each.
func.func @small(%q: !t, %k: !t, %v: !t, %keep: tensor<?x?xi1>) -> !t {
  %c64 = arith.constant 64 : index
  %o = attn.attention %q, %k, %v mask(%b, %h, %m, %n) {
    %i = arith.divui %m, %c64 : index
    %j = arith.divui %n, %c64 : index
    %kept = tensor.extract %keep[%i, %j] : tensor<?x?xi1>
    attn.yield %kept : i1
  } : !t, !t, !t -> !t
  return %o : !t
}

// Blocks that are kept whole, and blocks of which a window keeps some.
func.func @tables(%q: !t, %k: !t, %v: !t, %full: !keep, %partial: !keep) -> !t {
  %c128 = arith.constant 128 : index
  %c50 = arith.constant 50 : index
  %o = attn.attention %q, %k, %v mask(%b, %h, %m, %n) {
    %i = arith.divui %m, %c128 : index
    %j = arith.divui %n, %c128 : index
    %whole = tensor.extract %full[%h, %i, %j] : !keep
    %some = tensor.extract %partial[%h, %i, %j] : !keep
    %distance = arith.subi %m, %n : index
    %near = arith.cmpi sle, %distance, %c50 : index
    %before = arith.cmpi sle, %n, %m : index
    %inside = arith.andi %near, %before : i1
    %part = arith.andi %some, %inside : i1
    %kept = arith.ori %whole, %part : i1
    attn.yield %kept : i1
  } : !t, !t, !t -> !t
  return %o : !t
}

func.func @documents(%q: !t, %k: !t, %v: !t, %ids_q: tensor<?x?xi32>, %ids_k: tensor<?x?xi32>, %keep: tensor<?x?xi1>) -> !t {
  %c128 = arith.constant 128 : index
  %o = attn.attention %q, %k, %v mask(%b, %h, %m, %n) {
    %i = arith.divui %m, %c128 : index
    %j = arith.divui %n, %c128 : index
    %kept = tensor.extract %keep[%i, %j] : tensor<?x?xi1>
    %row = tensor.extract %ids_q[%b, %m] : tensor<?x?xi32>
    %key = tensor.extract %ids_k[%b, %n] : tensor<?x?xi32>
    %same = arith.cmpi eq, %row, %key : i32
    %both = arith.andi %kept, %same : i1
    attn.yield %both : i1
  } : !t, !t, !t -> !t
  return %o : !t
}

// Searches bound what blocks leave.
func.func @sorted(%q: !t, %k: !t, %v: !t, %ids: tensor<?x?xi32>, %keep: tensor<?x?xi1>) -> !t {
  %c128 = arith.constant 128 : index
  %sorted = attn.assume nondecreasing %ids : tensor<?x?xi32>
  %o = attn.attention %q, %k, %v mask(%b, %h, %m, %n) {
    %i = arith.divui %m, %c128 : index
    %j = arith.divui %n, %c128 : index
    %kept = tensor.extract %keep[%i, %j] : tensor<?x?xi1>
    %row = tensor.extract %sorted[%b, %m] : tensor<?x?xi32>
    %key = tensor.extract %sorted[%b, %n] : tensor<?x?xi32>
    %same = arith.cmpi eq, %row, %key : i32
    %both = arith.andi %kept, %same : i1
    attn.yield %both : i1
  } : !t, !t, !t -> !t
  return %o : !t
}
