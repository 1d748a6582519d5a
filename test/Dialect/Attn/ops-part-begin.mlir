// RUN: attn-opt %s | attn-opt | FileCheck %s

// CHECK-LABEL: func @parts(
func.func @parts(%all: index, %first: index, %second: index) -> index {
  // CHECK: attn.part_begin %{{.*}} for %{{.*}}, %{{.*}}, %{{.*}}
  %begin = attn.part_begin %all for %first, %second, %all
  return %begin : index
}
