//===- AttnInterfaces.td - what attention and its gradients share --------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_INTERFACES_TD
#define ATTN_INTERFACES_TD

include "mlir/IR/Interfaces.td"

def Attn_ScoredOpInterface : OpInterface<"ScoredOpInterface"> {
  let cppNamespace = "::attn";
  let description = [{
    An op on whole tensors that forms the scores of all rows and keys: attention and its gradients. Code that needs
    regions, positions or shapes (variants, extents, verifiers, the reference) asks this interface and serves all of
    these ops.
  }];
  let methods = [
    InterfaceMethod<"(B, H, M, D)", "::mlir::TypedValue<::mlir::RankedTensorType>", "getQuery">,
    InterfaceMethod<"(B, Hkv, N, D)", "::mlir::TypedValue<::mlir::RankedTensorType>", "getKey">,
    InterfaceMethod<"(B, Hkv, N, Dv)", "::mlir::TypedValue<::mlir::RankedTensorType>", "getValue">,
    InterfaceMethod<"The factor of the dot products; null: 1/sqrt(D).", "::mlir::TypedValue<::mlir::FloatType>",
      "getScale">,
    InterfaceMethod<"The global position of the first element; none: zeros.", "::mlir::OperandRange", "getOrigin">,
    InterfaceMethod<"The same, to be changed.", "::mlir::MutableOperandRange", "getOriginMutable">,
    InterfaceMethod<"The function of the scores; empty: none.", "::mlir::Region &", "getScore">,
    InterfaceMethod<"The mask: which elements are kept; empty: all.", "::mlir::Region &", "getMask">,
    InterfaceMethod<"Operands and results whose last dimension is D or Dv.", "::llvm::SmallVector<::mlir::Value>",
      "getMatrices">,
    InterfaceMethod<"(H) or (H, M), an extra logit; null: none.", "::mlir::TypedValue<::mlir::RankedTensorType>",
      "getSink", (ins), "", "return {};">,
    InterfaceMethod<"Named masks and scores; null: none.", "::mlir::ArrayAttr", "getVariantsAttr",
      (ins), "", "return {};">,
    InterfaceMethod<"Takes the variants off.", "::mlir::Attribute", "removeVariantsAttr",
      (ins), "", "return {};">,
    InterfaceMethod<"The tensors that the variants read.", "::mlir::OperandRange", "getCaptures",
      (ins), "", "return $_op->getOperands().take_front(0);">,
    InterfaceMethod<"The same, to be changed.", "::mlir::MutableOperandRange", "getCapturesMutable",
      (ins), "", "return ::mlir::MutableOperandRange($_op, 0, 0);">];
  let extraSharedClassDeclaration = [{
    /// Sizes of the dimensions, from the types; dynamic ones are ShapedType::kDynamic.
    int64_t getHeadDim() { return $_op.getQuery().getType().getDimSize(3); }
    int64_t getValueDim() { return $_op.getValue().getType().getDimSize(3); }
    /// The global position (b, h, m, n) of the first element, zeros when absent.
    ::llvm::SmallVector<::mlir::OpFoldResult> getMixedOrigin() {
      return ::attn::getOriginOrZeros($_op.getOrigin(), $_op->getContext());
    }
  }];
}

def Attn_AbsorbingOpInterface : OpInterface<"AbsorbingOpInterface"> {
  let cppNamespace = "::attn";
  let description = [{
    A step of a sum over tiles. Its destinations stay for a block and take in tiles of rows or of keys, which run.
    Tiles may be absorbed in any order. Passes that write loops of steps ask this interface and serve rows and keys
    alike.
  }];
  let methods = [
    InterfaceMethod<"Which of the coordinates (b, h, m, n) runs: 2 for rows, 3 for keys.", "unsigned",
      "getRunningPosition">,
    InterfaceMethod<"The operands that are tiles of the running dimension, along their first dimension.",
      "::llvm::SmallVector<::mlir::OpOperand *>", "getRunningMutable">,
    InterfaceMethod<"A matrix whose first dimension is the one that stays.", "::mlir::Value", "getFixed">,
    InterfaceMethod<"The global position of the first element; none: zeros.", "::mlir::OperandRange", "getOrigin">,
    InterfaceMethod<"The same, to be changed.", "::mlir::MutableOperandRange", "getOriginMutable">,
    InterfaceMethod<"The function of the scores; empty: none.", "::mlir::Region &", "getScore">,
    InterfaceMethod<"The mask: which elements are kept; empty: all.", "::mlir::Region &", "getMask">];
}

#endif // ATTN_INTERFACES_TD
