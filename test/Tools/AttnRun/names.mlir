// Functions may be called what mathematics and memory are called.
// RUN: attn-run %s --entry=exp --shape B=1,H=1,M=9 --check | FileCheck %s
// RUN: attn-run %s --entry=tanh --shape B=1,H=1,M=9 --check | FileCheck %s
// RUN: attn-run %s --entry=malloc --shape B=1,H=1,M=9 --check | FileCheck %s
// RUN: attn-run %s --entry=memrefCopy --shape B=1,H=1,M=9 --check | FileCheck %s
// RUN: attn-run %s --entry=attn_cpu_parallel_for --shape B=1,H=1,M=9 --check | FileCheck %s

// CHECK: verdict   right
!t = tensor<?x?x?x64xf32>
func.func @exp(%q: !t, %k: !t) -> !t {
  %o = attn.attention %q, %k, %k : !t, !t, !t -> !t
  return %o : !t
}
func.func @tanh(%q: !t, %k: !t) -> !t {
  %o = attn.attention %q, %k, %k score(%s, %b, %h, %m, %n) {
    %t = math.tanh %s : f32
    attn.yield %t : f32
  } : !t, !t, !t -> !t
  return %o : !t
}
func.func @malloc(%q: !t, %k: !t) -> !t {
  %o = attn.attention %q, %k, %k : !t, !t, !t -> !t
  return %o : !t
}
func.func @memrefCopy(%q: !t, %k: !t) -> !t {
  %o = attn.attention %q, %k, %k : !t, !t, !t -> !t
  return %o : !t
}
func.func @attn_cpu_parallel_for(%q: !t, %k: !t) -> !t {
  %o = attn.attention %q, %k, %k : !t, !t, !t -> !t
  return %o : !t
}
