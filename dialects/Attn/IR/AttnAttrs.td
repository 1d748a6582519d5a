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

class Attn_Attr<string name, string mnemonic_, list<Trait> traits = []> : AttrDef<Attn_Dialect, name, traits> {
  let mnemonic = mnemonic_;
}

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
    Whether a weight is dropped is a number of 16 bits of Philox4x32-7 of the key `seed` and of (n, m, h, b), compared with
    `round(p * 2^16)` (s16): a function of the seed and of global positions alone.
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
    `block_m` query rows of a block, shared by `consumers`; `block_n` keys of a step; `splits` parts of the keys, each of a block
    of its own; `stages` tiles of keys, and of values, that may be in flight. With `fill`, the call and the device decide on the parts,
    `splits` at most, so that blocks fill the multiprocessors. Blocks that `stay` take one tile of rows after the other;
    with a `tail`, so many more for each multiprocessor come behind them where a mask makes rows differ, and take those with least to do.
    Blocks with a loop around loops, as those that stay, `recompute` in each of its turns what the loops inside do not read.
    Blocks that `hold` a stage of keys give it back behind the first weights of its step, which leaves the other weights beside the product of values.
    Where a mask drops the first tiles that a block visits for some of its rows, consumers begin `apart`, each with the first that its rows need.
    Consumers `keep` so many columns of the query in registers, which products then do not read from shared memory for each tile of keys.
    A multiprocessor has `resident` blocks at a time, so that one reads while another begins or ends.
    With `lists`, grids before it list the tiles of keys that the mask keeps (`attn.list_tiles`), and blocks visit no others.
    With a `slack` of k >= 0 an accumulator is scaled only in rows whose maximum grew, and a maximum that grew by a factor of at most
    2^k is not taken (k = 0: every one is). Otherwise every step scales it.

    ```mlir
    #attn.schedule<block_m = 128, block_n = 96, stages = 2, consumers = 2>
    ```
  }];
  let parameters = (ins
    "int64_t":$block_m,
    "int64_t":$block_n,
    DefaultValuedParameter<"int64_t", "1">:$splits,
    DefaultValuedParameter<"int64_t", "1">:$stages,
    DefaultValuedParameter<"int64_t", "1">:$consumers,
    DefaultValuedParameter<"bool", "false">:$stay,
    DefaultValuedParameter<"bool", "false">:$lists,
    DefaultValuedParameter<"int64_t", "-1">:$slack,
    DefaultValuedParameter<"bool", "false">:$fill,
    DefaultValuedParameter<"int64_t", "0">:$tail,
    DefaultValuedParameter<"bool", "false">:$recompute,
    DefaultValuedParameter<"bool", "false">:$hold,
    DefaultValuedParameter<"bool", "false">:$apart,
    DefaultValuedParameter<"int64_t", "0">:$keep,
    DefaultValuedParameter<"int64_t", "1">:$resident);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

#endif // ATTN_ATTRS_TD
