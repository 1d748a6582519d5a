// A grid that searches for the ends of loops runs before the others are predicted: documents have work, and few of them have more than many.
// RUN: attn-run %s --device=sim --shape B=1,H=8,M=2048,N=2048 --input ids=0..0 --predict | FileCheck %s --check-prefix=ONE
// RUN: attn-run %s --device=sim --shape B=1,H=8,M=2048,N=2048 --input ids=sorted --predict | FileCheck %s --check-prefix=MANY
// RUN: attn-run %s --device=sim --shape B=1,H=8,M=2048,N=2048 --input ids=sorted --predict --timeline=%t.json | FileCheck %s --check-prefix=MANY

// ONE: @documents_searches
// ONE: predicted {{[0-9.]+}} TFLOP/s of work, {{[1-9][0-9][0-9]\.[0-9]}} executed
// MANY: predicted {{[0-9.]+}} TFLOP/s of work with masked pairs, {{[1-9][0-9]*\.[0-9]}} executed

!t = tensor<?x?x?x64xbf16>

func.func @documents(%query: !t, %key: !t, %value: !t, %ids: tensor<?xi32>) -> !t {
  %sorted = attn.assume nondecreasing %ids : tensor<?xi32>
  %output = attn.attention %query, %key, %value
    mask(%b, %h, %m, %n) {
      %i = tensor.extract %sorted[%m] : tensor<?xi32>
      %j = tensor.extract %sorted[%n] : tensor<?xi32>
      %keep = arith.cmpi eq, %i, %j : i32
      attn.yield %keep : i1
    } : !t, !t, !t -> !t
  return %output : !t
}
