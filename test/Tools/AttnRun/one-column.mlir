// Tiles of one row and one column.
// RUN: attn-run %s --entry=one_key --shape B=2,H=2,M=3 --check | FileCheck %s
// RUN: attn-run %s --entry=one_of_each --shape B=2,H=2 --check | FileCheck %s
// RUN: attn-run %s --entry=one_key_of_one_value --shape M=5 --splits=2 --check | FileCheck %s
// RUN: attn-run %s --entry=one_key --shape B=1,H=1,M=3 --splits=3 --check | FileCheck %s
// RUN: attn-translate %s --until=asm --block-m=1 --block-n=1 -o /dev/null

// CHECK: verdict   right

func.func @attention(%q: tensor<?x?x?x1xf32>, %k: tensor<?x?x?x1xf32>, %v: tensor<?x?x?x1xf32>) -> (tensor<?x?x?x1xf32>, tensor<?x?x?xf32>) {
  %o:2 = attn.attention %q, %k, %v : tensor<?x?x?x1xf32>, tensor<?x?x?x1xf32>, tensor<?x?x?x1xf32> -> tensor<?x?x?x1xf32>, tensor<?x?x?xf32>
  return %o#0, %o#1 : tensor<?x?x?x1xf32>, tensor<?x?x?xf32>
}

func.func @one_value(%q: tensor<?x?x?x8xf32>, %k: tensor<?x?x?x8xf32>, %v: tensor<?x?x?x1xf32>) -> tensor<?x?x?x1xf32> {
  %o = attn.attention %q, %k, %v : tensor<?x?x?x8xf32>, tensor<?x?x?x8xf32>, tensor<?x?x?x1xf32> -> tensor<?x?x?x1xf32>
  return %o : tensor<?x?x?x1xf32>
}

func.func @one_key(%q: tensor<?x?x?x1xf32>, %k: tensor<?x?x1x1xf32>, %v: tensor<?x?x1x1xf32>) -> tensor<?x?x?x1xf32> {
  %o = attn.attention %q, %k, %v : tensor<?x?x?x1xf32>, tensor<?x?x1x1xf32>, tensor<?x?x1x1xf32> -> tensor<?x?x?x1xf32>
  return %o : tensor<?x?x?x1xf32>
}

func.func @one_of_each(%q: tensor<?x?x1x1xf32>, %k: tensor<?x?x1x1xf32>, %v: tensor<?x?x1x1xf32>) -> (tensor<?x?x1x1xf32>, tensor<?x?x1xf32>) {
  %o:2 = attn.attention %q, %k, %v : tensor<?x?x1x1xf32>, tensor<?x?x1x1xf32>, tensor<?x?x1x1xf32> -> tensor<?x?x1x1xf32>, tensor<?x?x1xf32>
  return %o#0, %o#1 : tensor<?x?x1x1xf32>, tensor<?x?x1xf32>
}

// The part of the keys that a block reads has a dynamic extent, and one column at any distance.
func.func @one_key_of_one_value(%q: tensor<1x1x?x3xf32>, %k: tensor<1x1x1x3xf32>, %v: tensor<1x1x1x1xf32>) -> tensor<1x1x?x1xf32> {
  %o = attn.attention %q, %k, %v : tensor<1x1x?x3xf32>, tensor<1x1x1x3xf32>, tensor<1x1x1x1xf32> -> tensor<1x1x?x1xf32>
  return %o : tensor<1x1x?x1xf32>
}
