// RUN: attn-opt %s --attn-to-online --attn-cpu-append-destinations --attn-cpu-bufferize --cse --canonicalize \
// RUN:   --attn-cpu-fuse-gradients --verify-diagnostics

!t = tensor<?x?x?x64xbf16>
!row = tensor<?x?x?xf32>

// expected-error@+1 {{expected the name 'attn_cpu_threads' for the function of the pool, '() -> index', got it here}}
func.func @attn_cpu_threads(%q: !t, %k: !t, %v: !t, %o: !t, %lse: !row, %do: !t) -> (!t, !t, !t) {
  %g:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do : !t, !t, !t, !t, !row, !t -> d_query(!t) d_key(!t) d_value(!t)
  return %g#0, %g#1, %g#2 : !t, !t, !t
}
