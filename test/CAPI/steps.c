/*===- steps.c - steps around attention, from C99
 * -----------------------------------------------===*
 *
 * Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===------------------------------------------------------------------------------------------===*/

#include "attn-c/attn.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static int failures = 0;

static void expect(int condition, const char *what) {
  if (condition)
    return;
  fprintf(stderr, "expected %s; last message: %s\n", what, attn_last_message());
  ++failures;
}

/** Row-major, in host memory. */
static attn_tensor view(void *data, uint8_t code, uint8_t bits, int32_t ndim, int64_t *shape) {
  attn_tensor tensor;
  memset(&tensor, 0, sizeof(tensor));
  tensor.data = data;
  tensor.device.device_type = ATTN_DL_CPU;
  tensor.ndim = ndim;
  tensor.dtype.code = code;
  tensor.dtype.bits = bits;
  tensor.dtype.lanes = 1;
  tensor.shape = shape;
  return tensor;
}

static const char *const append =
    "func.func @append(%new: tensor<?x?x2xf32>, %slots: tensor<?xi64>,\n"
    "                  %pages: tensor<?xi8>) -> tensor<?x2x?x2xf32> {\n"
    "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n"
    "  %count = tensor.dim %pages, %c0 : tensor<?xi8>\n"
    "  %heads = tensor.dim %new, %c1 : tensor<?x?x2xf32>\n"
    "  %memory = tensor.empty(%count, %heads) : tensor<?x2x?x2xf32>\n"
    "  %r = attn.append %new[%slots] into %memory : tensor<?x?x2xf32>, tensor<?xi64>,\n"
    "      tensor<?x2x?x2xf32> -> tensor<?x2x?x2xf32>\n"
    "  return %r : tensor<?x2x?x2xf32>\n}\n";

/** Three pages of two rows, of which two are written; slots that are none touch nothing. */
static void testAppend(void) {
  float rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, memory[20];
  int64_t slots[] = {5, INT64_MIN, 0, 6, -1};
  int64_t ofRows[] = {5, 1, 2}, ofSlots[] = {5}, ofPool[] = {3, 2, 1, 2}, ofPages[] = {3};
  int64_t ofLess[] = {4};
  attn_tensor tensors[4];
  const attn_tensor *addresses[] = {&tensors[0], &tensors[1], &tensors[2], &tensors[3]};
  attn_kernel *kernel = NULL;
  expect(attn_compile(append, NULL, &kernel) == ATTN_OK, "attn.append to compile");
  if (!kernel)
    return;
  for (int i = 0; i < 20; ++i)
    memory[i] = 100;
  tensors[0] = view(rows, ATTN_DL_FLOAT, 32, 3, ofRows);
  tensors[1] = view(slots, ATTN_DL_INT, 64, 1, ofSlots);
  /* A size, which nothing reads. */
  tensors[2] = view(rows, ATTN_DL_INT, 8, 1, ofPages);
  tensors[3] = view(memory + 4, ATTN_DL_FLOAT, 32, 4, ofPool);
  expect(attn_run(kernel, addresses, 4, NULL) == ATTN_OK, "attn.append to run");
  for (int i = 0; i < 20; ++i) {
    int at = i - 4;
    float wanted = at == 0 ? 5 : at == 1 ? 6 : at == 10 ? 1 : at == 11 ? 2 : 100;
    expect(memory[i] == wanted, "the rows with slots, and nothing else, to be written");
  }
  tensors[1] = view(slots, ATTN_DL_INT, 64, 1, ofLess);
  expect(attn_run(kernel, addresses, 4, NULL) == ATTN_INVALID_ARGUMENT &&
             strncmp(attn_last_message(), "slots: expected 5", 17) == 0,
         "fewer slots than rows to be refused by name");
  tensors[1] = view(slots, ATTN_DL_INT, 32, 1, ofSlots);
  expect(attn_run(kernel, addresses, 4, NULL) == ATTN_INVALID_ARGUMENT &&
             strncmp(attn_last_message(), "slots: ", 7) == 0,
         "slots of another type to be refused by name");
  attn_kernel_free(kernel);
}

static const char *const merge =
    "func.func @merge(%p: tensor<?x?x2xf32>, %l: tensor<?x?xf32>)\n"
    "    -> (tensor<?x2xf32>, tensor<?xf32>) {\n"
    "  %c1 = arith.constant 1 : index\n  %m = tensor.dim %p, %c1 : tensor<?x?x2xf32>\n"
    "  %o = tensor.empty(%m) : tensor<?x2xf32>\n  %e = tensor.empty(%m) : tensor<?xf32>\n"
    "  %r:2 = attn.merge %p, %l outs(%o, %e) : tensor<?x?x2xf32>, tensor<?x?xf32>,\n"
    "      tensor<?x2xf32>, tensor<?xf32> -> tensor<?x2xf32>, tensor<?xf32>\n"
    "  return %r#0, %r#1 : tensor<?x2xf32>, tensor<?xf32>\n}\n";

/** Two parts of two rows: the first row has equal parts, the second a part that kept nothing. */
static void testMerge(void) {
  float parts[] = {1, 2, 3, 4, 5, 6, NAN, NAN}, sums[] = {0, 7, 0, -INFINITY};
  float output[4] = {0}, lse[2] = {0};
  int64_t ofParts[] = {2, 2, 2}, ofSums[] = {2, 2}, ofOutput[] = {2, 2}, ofLse[] = {2};
  attn_tensor tensors[4];
  const attn_tensor *addresses[] = {&tensors[0], &tensors[1], &tensors[2], &tensors[3]};
  attn_kernel *kernel = NULL;
  expect(attn_compile(merge, NULL, &kernel) == ATTN_OK, "attn.merge to compile");
  if (!kernel)
    return;
  tensors[0] = view(parts, ATTN_DL_FLOAT, 32, 3, ofParts);
  tensors[1] = view(sums, ATTN_DL_FLOAT, 32, 2, ofSums);
  tensors[2] = view(output, ATTN_DL_FLOAT, 32, 2, ofOutput);
  tensors[3] = view(lse, ATTN_DL_FLOAT, 32, 1, ofLse);
  expect(attn_run(kernel, addresses, 4, NULL) == ATTN_OK, "attn.merge to run");
  expect(output[0] == 3 && output[1] == 4 && output[2] == 3 && output[3] == 4,
         "halves of both parts, and the whole of one");
  expect(fabsf(lse[0] - 0.6931472f) < 1e-6f && lse[1] == 7, "the logarithms of both sums");
  attn_kernel_free(kernel);
}

int main(void) {
  testAppend();
  testMerge();
  return failures != 0;
}
