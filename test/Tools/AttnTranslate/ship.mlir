// Entries of the cache with machine code, by the ptxas of $PATH: here one that writes a word.
//
// RUN: rm -rf %t && mkdir -p %t/bin
// RUN: printf '#!/bin/sh\nprintf ELF > "$4"\n' > %t/bin/ptxas && chmod +x %t/bin/ptxas
// RUN: sh -c 'PATH=%t/bin:$PATH attn-translate %s --to-ptx --ship=%t/kernels --ship-ways=short,few -o /dev/null' 2>&1 | FileCheck %s
// RUN: ls %t/kernels | FileCheck %s --check-prefix=FILES
// RUN: printf '#!/bin/sh\necho error: too old >&2; exit 1\n' > %t/bin/ptxas
// RUN: not sh -c 'PATH=%t/bin:$PATH attn-translate %s --to-ptx --ship=%t/kernels' 2>&1 | FileCheck %s --check-prefix=REFUSED
//
// RUN: not attn-translate %s --until=tile --ship=%t/kernels 2>&1 | FileCheck %s --check-prefix=DOOR
// RUN: not attn-translate %s --target=sm_80,sm_90a --to-ptx --ship=%t/kernels 2>&1 | FileCheck %s --check-prefix=DOOR
// RUN: not attn-translate %s --to-ptx --ship-ways=short 2>&1 | FileCheck %s --check-prefix=WAYS

// A plan, short sequences and all others; causal attention at D = 64 has no way for few rows.
// CHECK: attn-translate: 3 entries in {{.*}}/kernels
// FILES-COUNT-3: {{^[0-9a-f]+}}.kernel

// REFUSED: attn-translate: invalid kernel: expected PTX that ptxas assembles, got: error: too old

// DOOR: attn-translate: expected --to-ptx for one target with --ship, got another door or several targets
// WAYS: attn-translate: expected --ship with --ship-ways, got none

func.func @attention(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %o = attn.attention %q, %k, %v variants [#attn.causal<bottom_right>]
      : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>
  return %o : tensor<?x?x?x64xbf16>
}
