//===- Lanes.cpp - how lanes access rows of memory ------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Machine/Lanes.h"
#include <initializer_list>
#include <numeric>

using namespace attn;

LanesAlongRows attn::getLanesAlongRows(int64_t columns, int64_t warps) {
  constexpr int64_t leastLanes = 4;
  LanesAlongRows best{1, 1, 0};
  for (int64_t vector : {4, 2})
    if (columns % vector == 0) {
      int64_t lanes = std::gcd(kLanes, columns / vector);
      if (lanes > best.lanes)
        best = {vector, lanes, 0};
      if (lanes >= leastLanes)
        break;
    }
  best.rows = kLanes / best.lanes * warps;
  return best;
}
