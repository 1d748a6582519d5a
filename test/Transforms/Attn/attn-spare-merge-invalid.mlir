// RUN: attn-opt %s --attn-pack-heads --attn-set-schedule=target=cuda --attn-spare-merge --verify-diagnostics

func.func @parts(%q: tensor<?x?x?x128xbf16>, %k: tensor<?x?x?x128xbf16>, %v: tensor<?x?x?x128xbf16>) -> tensor<?x?x?x128xbf16> {
  // expected-error@+1 {{expected at most 1 to 1024 parts, got 5000}}
  %o = attn.attention %q, %k, %v {attn.pack = 4, attn.schedule = #attn.schedule<block_m = 64, block_n = 64, splits = 5000, fill = true>}
      : tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16>, tensor<?x?x?x128xbf16> -> tensor<?x?x?x128xbf16>
  return %o : tensor<?x?x?x128xbf16>
}
