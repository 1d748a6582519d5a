//===- AttnAttrs.td - variants and the schedule -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_ATTRS_TD
#define ATTN_ATTRS_TD

include "dialects/Attn/IR/AttnDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

//===----------------------------------------------------------------------===//
// Variants: named spellings of score and mask regions
//===----------------------------------------------------------------------===//

def Attn_AlignmentAttr : I32EnumAttr<"Alignment", "which corner the diagonal m == n goes through", [
    I32EnumAttrCase<"TopLeft", 0, "top_left">,
    I32EnumAttrCase<"BottomRight", 1, "bottom_right">]> {
  let cppNamespace = "::attn";
}

def Attn_CausalAttr : Attn_Attr<"Causal", "causal"> {
  let summary = "keep n <= m' (m' = m, or m + N - M when aligned bottom_right)";
  let parameters = (ins "Alignment":$alignment);
  let assemblyFormat = "`<` $alignment `>`";
}

def Attn_WindowAttr : Attn_Attr<"Window", "window"> {
  let summary = "keep m' - left <= n <= m' + right; -1 means unbounded on that side";
  let parameters = (ins "int64_t":$left, "int64_t":$right, "Alignment":$alignment);
  let assemblyFormat = "`<` $left `,` $right `,` $alignment `>`";
  let genVerifyDecl = 1;
}

def Attn_PrefixAttr : Attn_Attr<"Prefix", "prefix"> {
  let summary = "keep n < length or n <= m': a prefix that all rows see, then causal";
  let description = [{
    `length` is a constant; -1 takes it from one captured tensor `lengths : tensor<?x index or integer>`, one per batch.
  }];
  let parameters = (ins "int64_t":$length, "Alignment":$alignment);
  let assemblyFormat = "`<` $length `,` $alignment `>`";
  let genVerifyDecl = 1;
}

def Attn_ChunkedAttr : Attn_Attr<"Chunked", "chunked"> {
  let summary = "keep floor(n / size) == floor(m' / size)";
  let parameters = (ins "int64_t":$size, "Alignment":$alignment);
  let assemblyFormat = "`<` $size `,` $alignment `>`";
  let genVerifyDecl = 1;
}

def Attn_DocumentAttr : Attn_Attr<"Document", "document"> {
  let summary = "keep ids_q[b, m] == ids_k[b, n]; captures ids_q (B, M) and ids_k (B, N)";
}

def Attn_KeyLengthAttr : Attn_Attr<"KeyLength", "key_length"> {
  let summary = "keep n < lengths[b]; captures lengths (B)";
}

def Attn_SoftcapAttr : Attn_Attr<"Softcap", "softcap"> {
  let summary = "score = cap * tanh(s / cap)";
  let parameters = (ins "::mlir::FloatAttr":$cap);
  let assemblyFormat = "`<` $cap `>`";
  let genVerifyDecl = 1;
}

def Attn_AlibiAttr : Attn_Attr<"Alibi", "alibi"> {
  let summary = "score = s - slopes[h] * |m' - n|; captures slopes (H)";
  let parameters = (ins "Alignment":$alignment);
  let assemblyFormat = "`<` $alignment `>`";
}

def Attn_RelativeBiasAttr : Attn_Attr<"RelativeBias", "relative_bias"> {
  let summary = "score = s + bias[h, clamp(m' - n + offset, 0, R - 1)]; captures bias (H, R)";
  let parameters = (ins "int64_t":$offset, "Alignment":$alignment);
  let assemblyFormat = "`<` $offset `,` $alignment `>`";
  let genVerifyDecl = 1;
}

def Attn_DropoutAttr : Attn_Attr<"Dropout", "dropout"> {
  let summary = "factor = 0 with probability p, else 1 / (1 - p); captures seed (1)";
  let description = [{
    A weight is dropped if a number of 16 bits is less than `round(p * 2^16)` (s16). The number comes from
    Philox4x32-7 of the key `seed` and of (n, m, h, b), so it is a function of the seed and of global positions alone.
  }];
  let parameters = (ins "::mlir::FloatAttr":$p);
  let assemblyFormat = "`<` $p `>`";
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Schedule
//===----------------------------------------------------------------------===//

def Attn_ScheduleAttr : Attn_Attr<"Schedule", "schedule"> {
  let summary = "the sizes a pass sequence follows; results never depend on it";
  let description = [{
    The words of `Schedule` (lib/Schedule/Schedule.h), which explains each word. `block_m` and `block_n` are always
    there. Other words are there where they differ from their defaults.

    ```mlir
    #attn.schedule<block_m = 128, block_n = 96, stages = 2, consumers = 2>
    ```
  }];
  let parameters = (ins AttrParameter<"::attn::Schedule", "its words", "const ::attn::Schedule &">:$words);
  let assemblyFormat = "`` $words";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    const ::attn::Schedule *operator->() const { return &getWords(); }
  }];
}

#endif // ATTN_ATTRS_TD
