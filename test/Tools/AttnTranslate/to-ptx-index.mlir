// REQUIRES: ptxas
// RUN: attn-translate %s --to-ptx -o %t.ptx
// RUN: ptxas -arch=sm_90a -v %t.ptx -o /dev/null 2>&1 | FileCheck %s
// RUN: attn-run %s --device=sim --shape B=1,H=1,M=70,N=90 --input iq=0..2 --input ik=0..2 --check | FileCheck %s --check-prefix=SIM

// Captured indices, compared with integers.
// CHECK: 0 bytes spill stores
// SIM: verdict   right
!t = tensor<?x?x?x64xbf16>
func.func @document(%q: !t, %k: !t, %v: !t, %iq: tensor<?x?xi32>, %ik: tensor<?x?xindex>) -> !t {
  %o = attn.attention %q, %k, %v variants [#attn.document] captures(%iq, %ik : tensor<?x?xi32>, tensor<?x?xindex>) : !t, !t, !t -> !t
  return %o : !t
}
