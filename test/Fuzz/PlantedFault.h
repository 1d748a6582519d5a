//===- PlantedFault.h - a fault that the fuzzer must find -------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_FUZZ_PLANTEDFAULT_H
#define ATTN_TEST_FUZZ_PLANTEDFAULT_H

namespace attn::planted {

/// Registers fuzz-planted-use-after-free: the canonicalizer, with two patterns that free the
/// operations of a region without telling the driver, which may still have them on its list. This
/// project once had them.
void registerPlantedFault();

} // namespace attn::planted

#endif // ATTN_TEST_FUZZ_PLANTEDFAULT_H
