// RUN: attn-opt %s --attn-cpu-bufferize --split-input-file --verify-diagnostics

// expected-error @below {{expected tensors of known rank, got 'tensor<*xf32>'}}
func.func @argument(%k: tensor<*xf32>) {
  return
}

// -----

// expected-error @below {{expected tensors of known rank, got 'tensor<*xf32>'}}
func.func private @result() -> tensor<*xf32>
