/*===- capi.c - the C interface, from C99 ------------------------------------------------------===*
 *
 * Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===------------------------------------------------------------------------------------------===*/

#include "attn-c/attn.h"
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

#define EXPECT(condition)                                                                          \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: expected %s; last message: %s\n", __FILE__, __LINE__, #condition,    \
              attn_last_message());                                                                \
      ++failures;                                                                                  \
    }                                                                                              \
  } while (0)

/** The call fails with the code, a message that starts as given, and no line break in it. */
#define EXPECT_ERROR(call, wanted, start)                                                          \
  do {                                                                                             \
    attn_code code = (call);                                                                       \
    if (code != (wanted) || strncmp(attn_last_message(), start, strlen(start)) != 0 ||             \
        strchr(attn_last_message(), '\n')) {                                                       \
      fprintf(stderr, "%s:%d: expected %s: %s...; got %s: %s\n", __FILE__, __LINE__,               \
              attn_code_name(wanted), start, attn_code_name(code), attn_last_message());           \
      ++failures;                                                                                  \
    }                                                                                              \
  } while (0)

static const char *const source = "func.func @f(%query: tensor<?x?x?x4xf32>, %key: "
                                  "tensor<?x?x?x4xf32>, %value: tensor<?x?x?x4xf32>,"
                                  "             %scale: f32, %table: tensor<?x?xf32>) -> "
                                  "(tensor<?x?x?x4xf32>, tensor<?x?x?xf32>) {\n"
                                  "  %o, %lse = attn.attention %query, %key, %value scale(%scale)\n"
                                  "    score(%s, %b, %h, %m, %n) {\n"
                                  "      %x = tensor.extract %table[%h, %n] : tensor<?x?xf32>\n"
                                  "      %t = arith.addf %s, %x : f32\n"
                                  "      attn.yield %t : f32\n"
                                  "    }\n"
                                  "    : tensor<?x?x?x4xf32>, tensor<?x?x?x4xf32>, "
                                  "tensor<?x?x?x4xf32> -> tensor<?x?x?x4xf32>, tensor<?x?x?xf32>\n"
                                  "  return %o, %lse : tensor<?x?x?x4xf32>, tensor<?x?x?xf32>\n"
                                  "}\n";

enum { B = 1, H = 2, M = 3, N = 5, D = 4, kCount = 7 };

/** A call that is right, for each test to spoil. */
typedef struct Call {
  float query[B * H * M * D], key[B * N * D], value[B * N * D], scale, table[H * N];
  float output[B * H * M * D], lse[B * H * M];
  int64_t shapes[kCount][4];
  attn_tensor tensors[kCount];
  const attn_tensor *addresses[kCount];
} Call;

static void set(Call *call, int index, float *data, int32_t ndim, int64_t a, int64_t b, int64_t c,
                int64_t d) {
  int64_t shape[4] = {a, b, c, d};
  attn_tensor *tensor = &call->tensors[index];
  memset(tensor, 0, sizeof(*tensor));
  memcpy(call->shapes[index], shape, sizeof(shape));
  tensor->data = data;
  tensor->device.device_type = ATTN_DL_CPU;
  tensor->ndim = ndim;
  tensor->dtype.code = ATTN_DL_FLOAT;
  tensor->dtype.bits = 32;
  tensor->dtype.lanes = 1;
  tensor->shape = call->shapes[index];
  call->addresses[index] = tensor;
}

static void fill(float *data, size_t count) {
  for (size_t i = 0; i < count; ++i)
    data[i] = (float)rand() / (float)RAND_MAX - 0.5f;
}

static void reset(Call *call) {
  fill(call->query, B * H * M * D);
  fill(call->key, B * N * D);
  fill(call->value, B * N * D);
  fill(call->table, H * N);
  call->scale = 0.7f;
  set(call, 0, call->query, 4, B, H, M, D);
  set(call, 1, call->key, 4, B, 1, N, D);
  set(call, 2, call->value, 4, B, 1, N, D);
  set(call, 3, &call->scale, 0, 0, 0, 0, 0);
  set(call, 4, call->table, 2, H, N, 0, 0);
  set(call, 5, call->output, 4, B, H, M, D);
  set(call, 6, call->lse, 3, B, H, M, 0);
}

static attn_code run(const attn_kernel *kernel, const Call *call) {
  return attn_run(kernel, call->addresses, kCount, NULL);
}

/** The largest error of the output and lse. */
static double getError(const Call *call) {
  double worst = 0;
  for (int h = 0; h < H; ++h)
    for (int m = 0; m < M; ++m) {
      double sum = 0, output[D] = {0};
      for (int n = 0; n < N; ++n) {
        double s = 0;
        for (int d = 0; d < D; ++d)
          s += (double)call->query[(h * M + m) * D + d] * call->key[n * D + d];
        double p = exp(s * call->scale + call->table[h * N + n]);
        sum += p;
        for (int d = 0; d < D; ++d)
          output[d] += p * call->value[n * D + d];
      }
      for (int d = 0; d < D; ++d)
        worst = fmax(worst, fabs(output[d] / sum - call->output[(h * M + m) * D + d]));
      worst = fmax(worst, fabs(log(sum) - call->lse[h * M + m]));
    }
  return worst;
}

static void testSuccess(const attn_kernel *kernel, Call *call) {
  attn_value value;
  EXPECT(attn_kernel_num_arguments(kernel) == 5 && attn_kernel_num_results(kernel) == 2);
  EXPECT(attn_kernel_value(kernel, 0, &value) == ATTN_OK);
  EXPECT(!strcmp(value.name, "query") && !strcmp(value.type, "f32") && value.ndim == 4);
  EXPECT(value.shape[0] == -1 && value.shape[3] == D && !value.is_scalar);
  EXPECT(attn_kernel_value(kernel, 3, &value) == ATTN_OK && value.is_scalar && value.ndim == 0);
  EXPECT(attn_kernel_value(kernel, 6, &value) == ATTN_OK && !strcmp(value.name, "lse"));
  EXPECT(attn_kernel_compile_ms(kernel) > 0);
  reset(call);
  EXPECT(run(kernel, call) == ATTN_OK);
  EXPECT(getError(call) < 1e-5);
  /* byte_offset is added to the address. */
  call->tensors[0].data = (char *)call->query - 16;
  call->tensors[0].byte_offset = 16;
  EXPECT(run(kernel, call) == ATTN_OK && getError(call) < 1e-5);
}

static void testCalls(const attn_kernel *kernel, Call *call) {
#define SPOIL(change, start)                                                                       \
  do {                                                                                             \
    reset(call);                                                                                   \
    change;                                                                                        \
    EXPECT_ERROR(run(kernel, call), ATTN_INVALID_ARGUMENT, start);                                 \
  } while (0)

  int64_t strides[4] = {H * M * D, M * D, D, 2}, still[4] = {0, 0, 0, 1};
  int64_t overlapping[4] = {H * M * D, M * D, 3, 1}, wrapping[4] = {H * M * D, INT64_MIN, D, 1};
  int64_t far[4] = {H * M * D, INT64_C(1) << 62, D, 1};
  SPOIL(call->addresses[1] = NULL, "key: expected an address, got null");
  SPOIL(call->tensors[1].data = NULL, "key: expected an address of data, got a null address");
  SPOIL(call->tensors[1].shape = NULL, "key: expected a shape, got a null address");
  SPOIL(call->tensors[1].dtype.bits = 16, "key: expected elements of f32, got f16");
  SPOIL(call->tensors[1].dtype.bits = 24,
        "key: expected elements of f16, bf16, f32, f64, f8E4M3FN, f8E5M2, bool, i8, i32 or i64, "
        "got DLPack type code 2 "
        "of 24 bits and 1 lanes");
  SPOIL(call->tensors[1].dtype.bits = 0, "key: expected elements of f16, bf16, f32, f64, f8E4M3FN, "
                                         "f8E5M2, bool, i8, i32 or i64, got DLPack type code 2 "
                                         "of 0 bits and 1 lanes");
  SPOIL(call->tensors[1].dtype.lanes = 4, "key: expected elements of f16, bf16, f32");
  SPOIL(call->tensors[1].ndim = 3, "key: expected 4 dimensions, got 3");
  SPOIL(call->tensors[1].device.device_type = ATTN_DL_CUDA,
        "key: expected a tensor in host memory");
  SPOIL(call->tensors[0].strides = strides,
        "query: expected a contiguous last dimension, got a stride of 2");
  SPOIL(call->tensors[5].strides = still,
        "output: expected elements of their own, got a stride of 0");
  SPOIL(call->tensors[5].strides = overlapping,
        "output: expected elements of their own, got strides of (24, 12, 3, 1)");
  SPOIL(call->tensors[5].strides = wrapping,
        "output: expected elements inside of the address space, got strides of "
        "(24, -9223372036854775808, 4, 1) for shape (1, 2, 3, 4)");
  SPOIL(call->tensors[0].strides = far, "query: expected elements inside of the address space");
  SPOIL(call->tensors[5].data = call->query,
        "output: expected memory of its own, got memory that query has too");
  SPOIL(call->tensors[5].data = call->table,
        "output: expected memory of its own, got memory that table has too");
  SPOIL(call->tensors[6].data = call->output + 1,
        "lse: expected memory of its own, got memory that output has too");
  SPOIL(call->tensors[0].byte_offset = 2,
        "query: expected data aligned to its elements of 4 bytes");
  SPOIL(call->shapes[0][3] = 8,
        "query: expected 4 in dimension 3, which the function was compiled for");
  SPOIL(call->shapes[1][2] = -1, "key: expected extents from 0 to 2^29 - 1");
  SPOIL(call->shapes[1][0] = 2, "key: expected B=1 as in query in dimension 0");
  SPOIL(call->shapes[2][2] = 4, "value: expected N=5 as in key in dimension 2");
  SPOIL(call->shapes[5][2] = 2, "output: expected M=3 as in query in dimension 2");
  SPOIL(call->shapes[6][1] = 1, "lse: expected H=2 as in query in dimension 1");
  SPOIL(call->shapes[4][1] = 4, "table: expected at least N=5 elements in dimension 1");
  SPOIL((call->shapes[0][1] = call->shapes[5][1] = call->shapes[6][1] = call->shapes[4][0] = 3,
         call->shapes[1][1] = call->shapes[2][1] = 2),
        "query: expected H to be a multiple of Hkv, got H=3 and Hkv=2");
  SPOIL(call->tensors[3].dtype.bits = 64, "scale: expected a number or a tensor of rank 0");
  reset(call);
  EXPECT_ERROR(attn_run(kernel, call->addresses, 3, NULL), ATTN_INVALID_ARGUMENT,
               "call: expected 5 arguments and 2 results, got 3 values");
  EXPECT_ERROR(attn_run(NULL, call->addresses, kCount, NULL), ATTN_INVALID_ARGUMENT, "kernel: ");
  /* A CPU has nothing to plan. */
  EXPECT(attn_run_planned(kernel, call->addresses, kCount, NULL, NULL, 0) == ATTN_OK);
  EXPECT_ERROR(attn_run_planned(kernel, call->addresses, kCount, NULL, NULL, 1),
               ATTN_INVALID_ARGUMENT, "workspace: ");
  EXPECT_ERROR(attn_run(kernel, NULL, kCount, NULL), ATTN_INVALID_ARGUMENT, "tensors: ");
}

static void testThreads(const attn_kernel *kernel, Call *call) {
  int32_t count = attn_get_num_threads();
  EXPECT(count > 0);
  for (int32_t threads = 1; threads < 4; ++threads) {
    EXPECT(attn_set_num_threads(threads) == ATTN_OK && attn_get_num_threads() == threads);
    reset(call);
    EXPECT(run(kernel, call) == ATTN_OK && getError(call) < 1e-5);
  }
  EXPECT_ERROR(attn_set_num_threads(-1), ATTN_INVALID_ARGUMENT,
               "threads: expected a number from 0 to 4096, got -1");
  EXPECT_ERROR(attn_set_num_threads(4097), ATTN_INVALID_ARGUMENT,
               "threads: expected a number from 0 to 4096, got 4097");
  EXPECT(attn_set_num_threads(0) == ATTN_OK && attn_get_num_threads() == count);
}

static void testCompile(void) {
  attn_kernel *kernel = NULL;
  attn_options *options = NULL;
  EXPECT_ERROR(attn_compile(NULL, NULL, &kernel), ATTN_INVALID_ARGUMENT, "source: ");
  EXPECT_ERROR(attn_compile(source, NULL, NULL), ATTN_INVALID_ARGUMENT, "kernel: ");
  EXPECT_ERROR(attn_compile("func.func @f(", NULL, &kernel), ATTN_INVALID_KERNEL, "source:1:13: ");
  EXPECT_ERROR(attn_compile("", NULL, &kernel), ATTN_INVALID_KERNEL,
               "source: expected one public function");
  EXPECT_ERROR(attn_compile("func.func @f(%q: tensor<1x1x1x4xf32>, %k: tensor<1x1x1x8xf32>) -> "
                            "tensor<1x1x1x8xf32> {\n"
                            "  %o = attn.attention %q, %k, %k\n"
                            "    : tensor<1x1x1x4xf32>, tensor<1x1x1x8xf32>, tensor<1x1x1x8xf32> "
                            "-> tensor<1x1x1x8xf32>\n"
                            "  return %o : tensor<1x1x1x8xf32>\n}",
                            NULL, &kernel),
               ATTN_INVALID_KERNEL, "source:2:8: 'attn.attention' op ");
  EXPECT(!kernel);
  EXPECT(attn_options_create(&options) == ATTN_OK);
  EXPECT_ERROR(attn_options_set(options, "colour", "red"), ATTN_INVALID_ARGUMENT,
               "options: expected device");
  EXPECT_ERROR(attn_options_set(options, "threads", "two"), ATTN_INVALID_ARGUMENT,
               "threads: expected a number");
  EXPECT_ERROR(attn_options_set(options, "device", "abacus"), ATTN_INVALID_ARGUMENT,
               "device: expected cpu, cuda or cuda:NUMBER");
  EXPECT_ERROR(attn_options_set(options, "device", "cuda:x"), ATTN_INVALID_ARGUMENT,
               "device: expected cpu, cuda or cuda:NUMBER, got 'cuda:x'");
  EXPECT_ERROR(attn_options_set(options, "device", "cpu:0"), ATTN_INVALID_ARGUMENT, "device: ");
  EXPECT_ERROR(attn_options_set(options, "cache", "maybe"), ATTN_INVALID_ARGUMENT,
               "cache: expected on or off");
  EXPECT_ERROR(attn_options_set(options, NULL, ""), ATTN_INVALID_ARGUMENT, "key: ");
  EXPECT(attn_options_set(options, "entry", "g") == ATTN_OK);
  EXPECT_ERROR(attn_compile(source, options, &kernel), ATTN_INVALID_KERNEL,
               "source: expected a function @g");
  EXPECT(attn_options_set(options, "entry", "f") == ATTN_OK);
  EXPECT(attn_options_set(options, "cpu", "z80") == ATTN_OK);
  EXPECT_ERROR(attn_compile(source, options, &kernel), ATTN_INVALID_ARGUMENT,
               "cpu: expected a CPU");
  EXPECT(attn_options_set(options, "cpu", "") == ATTN_OK);
  EXPECT(attn_options_set(options, "splits", "0") == ATTN_OK);
  EXPECT_ERROR(attn_compile(source, options, &kernel), ATTN_INVALID_ARGUMENT,
               "splits: expected a number from 1");
  EXPECT(attn_options_set(options, "splits", "1") == ATTN_OK);
  EXPECT(attn_options_set(options, "way", "medium") == ATTN_OK);
  EXPECT_ERROR(attn_compile(source, options, &kernel), ATTN_INVALID_ARGUMENT,
               "way: expected auto, lengths, short, long, few, narrow or groups, got 'medium'");
  EXPECT(attn_options_set(options, "way", "auto") == ATTN_OK);
  EXPECT(attn_options_set(options, "stay", "true") == ATTN_OK);
  EXPECT_ERROR(attn_compile(source, options, &kernel), ATTN_INVALID_ARGUMENT,
               "stay: expected auto, on or off, got 'true'");
  EXPECT(attn_options_set(options, "stay", "auto") == ATTN_OK);
  EXPECT(attn_options_set(options, "slack", "17") == ATTN_OK);
  EXPECT_ERROR(attn_compile(source, options, &kernel), ATTN_INVALID_ARGUMENT,
               "slack: expected a number from 0 to 16, or -1, got 17");
  attn_options_free(options);
  attn_kernel_free(NULL);
}

/** Up to the driver everything works without a GPU; what needs one says what it looked for. */
static void testCuda(void) {
  static const char *const half =
      "func.func @f(%q: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {\n"
      "  %o = attn.attention %q, %q, %q : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16>, "
      "tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xbf16>\n"
      "  return %o : tensor<?x?x?x64xbf16>\n}";
  static const char *const wide =
      "func.func @f(%q: tensor<?x?x?x64xf32>) -> tensor<?x?x?x64xf32> {\n"
      "  %o = attn.attention %q, %q, %q : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, "
      "tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>\n"
      "  return %o : tensor<?x?x?x64xf32>\n}";
  attn_kernel *kernel = NULL;
  attn_options *options = NULL;
  char *ptx = NULL, *plan = NULL, *text = NULL;
  attn_code code;
  EXPECT(attn_options_create(&options) == ATTN_OK);
  EXPECT(attn_options_set(options, "device", "cuda:0") == ATTN_OK);
  EXPECT(attn_options_set(options, "cache", "off") == ATTN_OK);
  EXPECT(attn_emit(half, options, &ptx, &plan) == ATTN_OK);
  EXPECT(ptx && strstr(ptx, ".target sm_90a") && plan && strstr(plan, "\"kernels\""));
  attn_string_free(ptx);
  attn_string_free(plan);
  EXPECT_ERROR(attn_emit(source, options, &ptx, &plan), ATTN_INVALID_KERNEL,
               "source:2:14: 'attn.attention' op expected head dimensions in multiples of 8");
  EXPECT(!ptx && !plan);
  /* Elements of f32 are split by kernels before the attention. */
  EXPECT(attn_emit(wide, options, &ptx, &plan) == ATTN_OK);
  EXPECT(ptx && strstr(ptx, "_parts") && plan && strstr(plan, "_parts"));
  attn_string_free(ptx);
  attn_string_free(plan);
  EXPECT_ERROR(attn_emit(half, options, NULL, &plan), ATTN_INVALID_ARGUMENT, "ptx: ");
  EXPECT(attn_explain(half, options, "thread", &text) == ATTN_OK);
  EXPECT(text && strstr(text, "// floors") && strstr(text, "llvm.func"));
  attn_string_free(text);
  code = attn_compile(half, options, &kernel);
  if (code == ATTN_OK) {
    /* A tensor of the host is refused before the driver sees it. */
    static float data[64];
    int64_t shape[4] = {1, 1, 1, 64};
    attn_tensor tensor = {data, {ATTN_DL_CPU, 0}, 4, {ATTN_DL_BFLOAT, 16, 1}, shape, NULL, 0};
    const attn_tensor *tensors[] = {&tensor, &tensor};
    EXPECT(attn_kernel_ordinal(kernel) == 0 && attn_kernel_load_ms(kernel) > 0);
    EXPECT_ERROR(attn_run(kernel, tensors, 2, NULL), ATTN_INVALID_ARGUMENT,
                 "q: expected a tensor on cuda:0, got DLPack device type 1");
    tensor.device.device_type = ATTN_DL_CUDA;
    tensor.device.device_id = 7;
    EXPECT_ERROR(attn_run(kernel, tensors, 2, NULL), ATTN_INVALID_ARGUMENT,
                 "q: expected a tensor on cuda:0, got one on cuda:7");
  } else {
    EXPECT(code == ATTN_NO_DRIVER || code == ATTN_NO_DEVICE || code == ATTN_UNSUPPORTED_DEVICE);
    EXPECT(!strncmp(attn_last_message(), "expected a", 10) && *attn_last_hint());
  }
  attn_kernel_free(kernel);
  attn_options_free(options);
}

static void testExplain(void) {
  char *text = NULL;
  EXPECT(attn_explain(source, NULL, "online", &text) == ATTN_OK);
  EXPECT(text && strstr(text, "// schedule") && strstr(text, "attn.online_attention"));
  attn_string_free(text);
  EXPECT_ERROR(attn_explain(source, NULL, "attic", &text), ATTN_INVALID_ARGUMENT, "until: ");
  EXPECT_ERROR(attn_explain("?", NULL, "grid", &text), ATTN_INVALID_KERNEL, "source:1:1: ");
  EXPECT(!text);
}

static void testWriteSource(void) {
  attn_spec spec = ATTN_SPEC_INIT;
  char *text = NULL;
  attn_kernel *kernel = NULL;
  spec.type = "bf16";
  spec.head_dim = 16;
  spec.value_dim = 8;
  spec.causal = ATTN_CAUSAL_TOP_LEFT;
  spec.window_left = 0;
  spec.has_scale = spec.has_sink = spec.returns_lse = 1;
  EXPECT(attn_write_source(&spec, &text) == ATTN_OK);
  EXPECT(text &&
         strstr(text, "variants [#attn.causal<top_left>, #attn.window<0, -1, bottom_right>]"));
  EXPECT(attn_compile(text, NULL, &kernel) == ATTN_OK);
  EXPECT(attn_kernel_num_arguments(kernel) == 5 && attn_kernel_num_results(kernel) == 2);
  attn_kernel_free(kernel);
  attn_string_free(text);
  spec.causal = ATTN_CAUSAL_NO;
  spec.window_left = -1;
  EXPECT(attn_write_source(&spec, &text) == ATTN_OK && text && !strstr(text, "variants"));
  attn_string_free(text);

  EXPECT_ERROR(attn_write_source(NULL, &text), ATTN_INVALID_ARGUMENT, "spec: expected an address");
  EXPECT_ERROR(attn_write_source(&spec, NULL), ATTN_INVALID_ARGUMENT,
               "source: expected an address");
  spec.causal = 3;
  EXPECT_ERROR(attn_write_source(&spec, &text), ATTN_INVALID_ARGUMENT, "spec: causal: expected");
  spec.causal = ATTN_CAUSAL_BOTTOM_RIGHT;
  spec.type = "f64";
  EXPECT_ERROR(attn_write_source(&spec, &text), ATTN_INVALID_ARGUMENT, "spec: type: expected f16");
  spec.type = NULL;
  EXPECT_ERROR(attn_write_source(&spec, &text), ATTN_INVALID_ARGUMENT, "spec: type: expected f16");
  spec.size = 8;
  EXPECT_ERROR(attn_write_source(&spec, &text), ATTN_INVALID_ARGUMENT, "spec: expected size");
  EXPECT(!text);

  /* A program from before there were pages: what comes after its spec is not read. */
  spec.type = "f32";
  spec.size = offsetof(attn_spec, page_size);
  spec.page_size = -7;
  spec.has_lengths = 1;
  EXPECT(attn_write_source(&spec, &text) == ATTN_OK && text && !strstr(text, "paged") &&
         !strstr(text, "seqused_k"));
  attn_string_free(text);
  spec.size = sizeof(spec);
  EXPECT_ERROR(attn_write_source(&spec, &text), ATTN_INVALID_ARGUMENT,
               "spec: page_size: expected a number of keys from 0 on, got -7");
  spec.page_size = 0;
  spec.is_ragged = 1;
  EXPECT_ERROR(attn_write_source(&spec, &text), ATTN_INVALID_ARGUMENT,
               "spec: is_ragged: expected no pages, lengths or documents");

  /* Nor have programs from before there were gradients. */
  attn_spec training = ATTN_SPEC_INIT;
  training.head_dim = 16;
  training.softcap = 30;
  training.has_alibi = training.is_gradient = 1;
  training.size = offsetof(attn_spec, softcap);
  EXPECT(attn_write_source(&training, &text) == ATTN_OK && text && !strstr(text, "softcap") &&
         !strstr(text, "attention_grad"));
  attn_string_free(text);
  training.size = sizeof(training);
  EXPECT(attn_write_source(&training, &text) == ATTN_OK && text &&
         strstr(text, "#attn.softcap<3.0") && strstr(text, "#attn.alibi<bottom_right>") &&
         strstr(text, "attn.attention_grad") && strstr(text, "d_wrt(tensor<?xf32>)"));
  attn_string_free(text);
  training.type = "bf16";
  training.output_type = "f32";
  training.has_wide_gradients = 1;
  EXPECT(attn_write_source(&training, &text) == ATTN_OK && text &&
         strstr(text, "%output: tensor<?x?x?x16xf32>") &&
         strstr(text, "%d_output: tensor<?x?x?x16xbf16>") &&
         strstr(text, "d_query(tensor<?x?x?x16xf32>)"));
  attn_string_free(text);
  training.page_size = 8;
  EXPECT_ERROR(attn_write_source(&training, &text), ATTN_INVALID_ARGUMENT,
               "spec: is_gradient: expected keys and values in one piece");
  training.page_size = 0;
  training.dropout = 2;
  EXPECT_ERROR(attn_write_source(&training, &text), ATTN_INVALID_ARGUMENT,
               "spec: dropout: expected a probability from 0 to 1, got 2");
}

enum { kPages = 6, kPage = 3, kEntries = 2, kBatch = 2 };

/** Compiles and calls the attention of a spec, whose tensors are in `data` by their shapes. */
static void runSpec(const attn_spec *spec, void *const *data, int64_t (*shapes)[4],
                    const int32_t *ranks, int count) {
  attn_tensor own[9];
  const attn_tensor *tensors[9];
  attn_value value;
  attn_kernel *kernel = NULL;
  char *text = NULL;
  EXPECT(attn_write_source(spec, &text) == ATTN_OK && attn_compile(text, NULL, &kernel) == ATTN_OK);
  attn_string_free(text);
  if (!kernel)
    return;
  for (int i = 0; i < count; ++i) {
    attn_tensor tensor = {
        data[i], {ATTN_DL_CPU, 0}, ranks[i], {ATTN_DL_FLOAT, 32, 1}, shapes[i], NULL, 0};
    EXPECT(attn_kernel_value(kernel, (size_t)i, &value) == ATTN_OK && value.ndim == ranks[i]);
    tensor.dtype.code = value.type[0] == 'i' ? ATTN_DL_INT : ATTN_DL_FLOAT;
    tensor.dtype.bits = strcmp(value.type, "i8") ? 32 : 8;
    own[i] = tensor;
    tensors[i] = &own[i];
  }
  EXPECT(attn_run(kernel, tensors, (size_t)count, NULL) == ATTN_OK);
  if (spec->page_size) {
    shapes[1][1] = kPage + 1;
    EXPECT_ERROR(attn_run(kernel, tensors, (size_t)count, NULL), ATTN_INVALID_ARGUMENT,
                 "key_cache: expected 3 in dimension 1, which the function was compiled for");
    shapes[1][1] = kPage;
    shapes[3][0] = 1;
    EXPECT_ERROR(attn_run(kernel, tensors, (size_t)count, NULL), ATTN_INVALID_ARGUMENT,
                 "page_table: expected B=2 as in query in dimension 0");
  }
  attn_kernel_free(kernel);
}

/** Keys in pages are the same keys in one piece. */
static void testPages(void) {
  enum { kKeys = kPage * kEntries, kRow = H * D };
  static float query[kBatch * H * M * D], keys[kPages * kPage * kRow],
      values[kPages * kPage * kRow];
  static float key[kBatch * kKeys * kRow], value[kBatch * kKeys * kRow];
  static float ofPages[kBatch * H * M * D], whole[kBatch * H * M * D];
  /* The second entry of the second sequence is nobody's. */
  int32_t table[kBatch * kEntries] = {4, 1, 3, -1}, lengths[kBatch] = {5, 3};
  void *const paged[] = {query, keys, values, table, lengths, ofPages};
  void *const dense[] = {query, key, value, lengths, whole};
  int64_t pagedShapes[][4] = {
      {kBatch, H, M, D}, {kPages, kPage, H, D}, {kPages, kPage, H, D}, {kBatch, kEntries},
      {kBatch},          {kBatch, H, M, D}};
  int64_t denseShapes[][4] = {
      {kBatch, H, M, D}, {kBatch, H, kKeys, D}, {kBatch, H, kKeys, D}, {kBatch}, {kBatch, H, M, D}};
  const int32_t pagedRanks[] = {4, 4, 4, 2, 1, 4}, denseRanks[] = {4, 4, 4, 1, 4};
  attn_spec spec = ATTN_SPEC_INIT;
  fill(query, sizeof(query) / sizeof(*query));
  fill(keys, sizeof(keys) / sizeof(*keys));
  fill(values, sizeof(values) / sizeof(*values));
  for (int row = 0; row < kBatch * H * kKeys; ++row) {
    int n = row % kKeys, h = row / kKeys % H, b = row / kKeys / H;
    int page = table[b * kEntries + n / kPage];
    for (int d = 0; d < D && page >= 0; ++d) {
      int from = ((page * kPage + n % kPage) * H + h) * D + d;
      key[row * D + d] = keys[from];
      value[row * D + d] = values[from];
    }
  }
  spec.head_dim = D;
  spec.causal = ATTN_CAUSAL_BOTTOM_RIGHT;
  spec.has_lengths = 1;
  runSpec(&spec, dense, denseShapes, denseRanks, 5);
  spec.page_size = kPage;
  memset(ofPages, 0xff, sizeof(ofPages));
  runSpec(&spec, paged, pagedShapes, pagedRanks, 6);
  for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); ++i)
    EXPECT(fabs((double)ofPages[i] - whole[i]) < 1e-6);
  /* The first row of the second sequence keeps its first key alone. */
  for (int d = 0; d < D; ++d)
    EXPECT(fabs(ofPages[H * M * D + d] - (double)values[3 * kPage * kRow + d]) < 1e-6);
}

/** Some rows and keys of a whole are those rows of the whole, where their keys are there. */
static void testPositions(void) {
  enum { kWhole = 6, kFirst = 2, kPart = kWhole - kFirst, kRows = 2 };
  static float query[H * kWhole * D], key[H * kWhole * D], value[H * kWhole * D];
  static float whole[H * kWhole * D], part[H * kRows * D];
  static float q[H * kRows * D], k[H * kPart * D], v[H * kPart * D];
  int32_t rows[kRows] = {4, 5}, first[1] = {kFirst}, total[2] = {kWhole, kWhole};
  void *const all[] = {query, key, value, whole};
  void *const some[] = {q, k, v, rows, first, total, part};
  int64_t allShapes[][4] = {
      {1, H, kWhole, D}, {1, H, kWhole, D}, {1, H, kWhole, D}, {1, H, kWhole, D}};
  int64_t someShapes[][4] = {
      {1, H, kRows, D}, {1, H, kPart, D}, {1, H, kPart, D}, {kRows}, {1}, {2}, {1, H, kRows, D}};
  const int32_t allRanks[] = {4, 4, 4, 4}, someRanks[] = {4, 4, 4, 1, 1, 1, 4};
  attn_spec spec = ATTN_SPEC_INIT;
  char *text = NULL;
  fill(query, sizeof(query) / sizeof(*query));
  fill(key, sizeof(key) / sizeof(*key));
  fill(value, sizeof(value) / sizeof(*value));
  for (int h = 0; h < H; ++h) {
    for (int row = 0; row < kRows; ++row)
      memcpy(q + (h * kRows + row) * D, query + (h * kWhole + rows[row]) * D, D * sizeof(float));
    memcpy(k + h * kPart * D, key + (h * kWhole + kFirst) * D, kPart * D * sizeof(float));
    memcpy(v + h * kPart * D, value + (h * kWhole + kFirst) * D, kPart * D * sizeof(float));
  }
  spec.head_dim = D;
  spec.causal = ATTN_CAUSAL_BOTTOM_RIGHT;
  spec.window_left = 2;
  runSpec(&spec, all, allShapes, allRanks, 4);
  spec.row_positions = ATTN_POSITIONS_TABLE;
  spec.key_positions = ATTN_POSITIONS_ORIGIN;
  runSpec(&spec, some, someShapes, someRanks, 7);
  for (int i = 0; i < H * kRows * D; ++i) {
    int d = i % D, row = i / D % kRows, h = i / D / kRows;
    EXPECT(fabs((double)part[i] - whole[(h * kWhole + rows[row]) * D + d]) < 1e-6);
  }
  spec.has_lengths = 1;
  EXPECT_ERROR(attn_write_source(&spec, &text), ATTN_INVALID_ARGUMENT,
               "spec: row_positions: expected no pages, lengths or sequences beside positions");
  spec.key_positions = 3;
  EXPECT_ERROR(attn_write_source(&spec, &text), ATTN_INVALID_ARGUMENT,
               "spec: key_positions: expected a number from 0 to 2, got 3");
}

/** Rows of sequences are each sequence by itself; rows of none stay as they are. */
static void testSequences(void) {
  enum { kRows = 9, kKeys = 8, kRow = H * D };
  static float query[kRows * kRow], key[kKeys * kRow], value[kKeys * kRow];
  static float output[kRows * kRow], alone[kRows * kRow], of[kRows * H], lse[kRows * H];
  static float q[kRows * kRow], k[kKeys * kRow], v[kKeys * kRow];
  /* The second sequence has no row, and two rows are in no sequence. */
  const int32_t rows[] = {1, 4, 4, 8}, keys[] = {0, 2, 3, 8};
  char most[kRows];
  void *const ragged[] = {query, key, value, (void *)rows, (void *)keys, most, most, output, lse};
  int64_t shapes[][4] = {{kRows, H, D}, {kKeys, H, D}, {kKeys, H, D}, {4},       {4},
                         {5},           {6},           {kRows, H, D}, {kRows, H}};
  const int32_t ranks[] = {3, 3, 3, 1, 1, 1, 1, 3, 2};
  attn_spec spec = ATTN_SPEC_INIT;
  fill(query, sizeof(query) / sizeof(*query));
  fill(key, sizeof(key) / sizeof(*key));
  fill(value, sizeof(value) / sizeof(*value));
  memset(output, 0, sizeof(output));
  spec.head_dim = D;
  spec.causal = ATTN_CAUSAL_BOTTOM_RIGHT;
  spec.returns_lse = 1;
  spec.is_ragged = 1;
  runSpec(&spec, ragged, shapes, ranks, 9);
  spec.is_ragged = 0;
  for (int b = 0; b < 3; ++b) {
    int m = rows[b + 1] - rows[b], n = keys[b + 1] - keys[b];
    void *const dense[] = {q, k, v, alone, of};
    int64_t denseShapes[][4] = {{1, H, m, D}, {1, H, n, D}, {1, H, n, D}, {1, H, m, D}, {1, H, m}};
    const int32_t denseRanks[] = {4, 4, 4, 4, 3};
    if (m == 0)
      continue;
    for (int h = 0; h < H; ++h)
      for (int row = 0; row < (m > n ? m : n); ++row) {
        size_t bytes = D * sizeof(float);
        if (row < m)
          memcpy(q + (h * m + row) * D, query + ((rows[b] + row) * H + h) * D, bytes);
        if (row < n)
          memcpy(k + (h * n + row) * D, key + ((keys[b] + row) * H + h) * D, bytes);
        if (row < n)
          memcpy(v + (h * n + row) * D, value + ((keys[b] + row) * H + h) * D, bytes);
      }
    runSpec(&spec, dense, denseShapes, denseRanks, 5);
    for (int i = 0; i < H * m * D; ++i) {
      int d = i % D, row = i / D % m, h = i / D / m;
      EXPECT(fabs((double)alone[i] - output[((rows[b] + row) * H + h) * D + d]) < 1e-6);
    }
    for (int i = 0; i < H * m; ++i)
      EXPECT(of[i] == lse[(rows[b] + i % m) * H + i / m] ||
             fabs((double)of[i] - lse[(rows[b] + i % m) * H + i / m]) < 1e-6);
  }
  for (int i = 0; i < kRow; ++i)
    EXPECT(output[i] == 0 && output[8 * kRow + i] == 0);
}

/** No mask: all keys of all tiles, of 2 rows and of 4 keys. */
static void testMaskRanges(Call *call) {
  enum { kArguments = 5, kRanges = B * H * 2 };
  attn_mask_range ranges[kRanges];
#define RANGES(source, arguments, ranges, capacity)                                                \
  attn_mask_ranges(source, arguments, kArguments, 2, 4, ranges, capacity)
#define REFUSE(change, call_, start)                                                               \
  do {                                                                                             \
    reset(call);                                                                                   \
    change;                                                                                        \
    EXPECT_ERROR(call_, ATTN_INVALID_ARGUMENT, start);                                             \
  } while (0)
  reset(call);
  memset(ranges, 0xff, sizeof(ranges));
  EXPECT(RANGES(source, call->addresses, ranges, kRanges) == ATTN_OK);
  for (int i = 0; i < kRanges; ++i)
    EXPECT(ranges[i].begin == 0 && ranges[i].full_begin == 0 && ranges[i].full_end >= N &&
           ranges[i].end == 8);
  /* Of query, key and value no memory is read. */
  for (int i = 0; i < 3; ++i) {
    call->tensors[i].data = NULL;
    call->tensors[i].device.device_type = ATTN_DL_CUDA;
  }
  EXPECT(RANGES(source, call->addresses, ranges, kRanges) == ATTN_OK);

  const attn_tensor *const *given = call->addresses;
  REFUSE((void)0, RANGES(NULL, given, ranges, kRanges), "source: expected an address, got null");
  REFUSE((void)0, RANGES(source, NULL, ranges, kRanges), "arguments: expected an address");
  REFUSE((void)0, RANGES(source, given, NULL, kRanges), "ranges: expected an address");
  REFUSE((void)0, RANGES(source, given, ranges, kRanges - 1),
         "capacity: expected room for 4 ranges, got 3");
  EXPECT_ERROR(RANGES("func.func", given, ranges, kRanges), ATTN_INVALID_KERNEL, "source:1:");
  REFUSE(call->addresses[4] = NULL, RANGES(source, given, ranges, kRanges),
         "argument 4: expected an address, got null");
  REFUSE(call->tensors[4].dtype.bits = 24, RANGES(source, given, ranges, kRanges),
         "argument 4: expected elements of f16, bf16, f32");
  REFUSE(call->tensors[4].device.device_type = ATTN_DL_CUDA, RANGES(source, given, ranges, kRanges),
         "argument 4: expected a tensor in host memory, got DLPack device type 2");
  REFUSE(call->tensors[4].data = NULL, RANGES(source, given, ranges, kRanges),
         "table: expected a tensor in host memory, got none");
  REFUSE(call->tensors[0].shape = NULL, RANGES(source, given, ranges, kRanges),
         "query: expected a shape, got a null address");
  REFUSE(call->shapes[0][2] = -1, RANGES(source, given, ranges, kRanges),
         "query: expected extents from 0 to 2^29 - 1");
#undef REFUSE
#undef RANGES
}

static const char *const gradient =
    "!m = tensor<?x?x?x4xf32>\n"
    "!r = tensor<?x?x?xf32>\n"
    "func.func @g(%q: !m, %k: !m, %v: !m, %output: !m, %lse: !r, %d_output: !m) -> (!m, !m) {\n"
    "  %dk, %dv = attn.attention_grad %q, %k, %v, %output, %lse, %d_output\n"
    "    : !m, !m, !m, !m, !r, !m -> d_key(!m) d_value(!m)\n"
    "  return %dk, %dv : !m, !m\n"
    "}\n";

/** Of one key all weights are 1: the values get the sum of what comes back, the key gets nothing.
 */
static void testGradient(Call *call) {
  static float lse[H * M], up[B * H * M * D], keys[D], values[D];
  static float output[B * H * M * D];
  const attn_tensor *tensors[8];
  attn_tensor own[8];
  attn_kernel *kernel = NULL;
  reset(call);
  fill(up, B * H * M * D);
  for (int row = 0; row < H * M; ++row) {
    double s = 0;
    for (int d = 0; d < D; ++d) {
      s += (double)call->query[row * D + d] * call->key[d];
      output[row * D + d] = call->value[d];
    }
    lse[row] = (float)(s / sqrt((double)D));
  }
  float *const data[8] = {call->query, call->key, call->value, output, lse, up, keys, values};
  const int64_t heads[8] = {H, 1, 1, H, H, H, 1, 1}, rows[8] = {M, 1, 1, M, M, M, 1, 1};
  int64_t shapes[8][4];
  for (int i = 0; i < 8; ++i) {
    int64_t shape[4] = {B, heads[i], rows[i], D};
    own[i] = call->tensors[0];
    memcpy(shapes[i], shape, sizeof(shape));
    own[i].data = data[i];
    own[i].shape = shapes[i];
    own[i].ndim = i == 4 ? 3 : 4;
    tensors[i] = &own[i];
  }
  EXPECT(attn_compile(gradient, NULL, &kernel) == ATTN_OK);
  if (!kernel)
    return;
  EXPECT(attn_kernel_num_arguments(kernel) == 6 && attn_kernel_num_results(kernel) == 2);
  EXPECT(attn_run(kernel, tensors, 8, NULL) == ATTN_OK);
  for (int d = 0; d < D; ++d) {
    double sum = 0;
    for (int row = 0; row < H * M; ++row)
      sum += up[row * D + d];
    EXPECT(fabs(keys[d]) < 1e-5 && fabs(values[d] - sum) < 1e-5);
  }
  shapes[5][2] = M + 1;
  EXPECT_ERROR(attn_run(kernel, tensors, 8, NULL), ATTN_INVALID_ARGUMENT, "d_output: ");
  attn_kernel_free(kernel);
}

/** Decoding from a cache that grows, beside the same keys in one piece. */
static void testCache(void) {
  enum { kMost = 2000, kDim = 32 };
  static float query[2 * kDim], keys[kMost * kDim], values[kMost * kDim];
  static float output[2 * kDim], expected[2 * kDim];
  attn_cache_spec spec = ATTN_CACHE_SPEC_INIT;
  attn_spec attention = ATTN_SPEC_INIT;
  attn_cache *cache = NULL;
  attn_kernel *kernel = NULL;
  attn_tensor key, value;
  int64_t shared = -1;
  char *text = NULL;
  void *managed = NULL;
  int i, n, b;
  EXPECT_ERROR(attn_cache_create(NULL, &cache), ATTN_INVALID_ARGUMENT, "spec: expected an address");
  EXPECT_ERROR(attn_cache_create(&spec, &cache), ATTN_INVALID_ARGUMENT,
               "spec: sequences: expected a number from 1");
  spec.sequences = 2;
  spec.tokens = kMost;
  spec.layers = spec.key_heads = 1;
  EXPECT_ERROR(attn_cache_create(&spec, &cache), ATTN_INVALID_ARGUMENT, "spec: head_dim: expected");
  spec.head_dim = kDim;
  spec.value_dim = -1;
  EXPECT_ERROR(attn_cache_create(&spec, &cache), ATTN_INVALID_ARGUMENT,
               "spec: value_dim: expected 0");
  spec.value_dim = 0;
  spec.type = "i8";
  EXPECT_ERROR(attn_cache_create(&spec, &cache), ATTN_INVALID_ARGUMENT, "spec: type: expected f16");
  spec.type = "f32";
  spec.device = "tpu";
  EXPECT_ERROR(attn_cache_create(&spec, &cache), ATTN_INVALID_ARGUMENT,
               "spec: device: expected cpu, cuda or cuda:NUMBER, got tpu");
  spec.device = "cpu";
  spec.order = "heads";
  EXPECT_ERROR(attn_cache_create(&spec, &cache), ATTN_INVALID_ARGUMENT,
               "spec: order: expected layers or tokens, got heads");
  spec.order = "layers";
  spec.size = 8;
  EXPECT_ERROR(attn_cache_create(&spec, &cache), ATTN_INVALID_ARGUMENT, "spec: expected size ");
  spec.size = sizeof(spec);
  EXPECT(attn_cache_create(&spec, &cache) == ATTN_OK);
  attention.head_dim = kDim;
  attention.has_lengths = 1;
  EXPECT(attn_write_source(&attention, &text) == ATTN_OK);
  EXPECT(text && attn_compile(text, NULL, &kernel) == ATTN_OK);
  attn_string_free(text);
  if (!cache || !kernel)
    return;
  EXPECT(attn_cache_grow(cache, 0, 700) == ATTN_OK && attn_cache_grow(cache, 1, 3) == ATTN_OK);
  EXPECT(attn_cache_grow(cache, 0, kMost) == ATTN_OK && attn_cache_tokens(cache, 0) == kMost);
  EXPECT(attn_cache_bytes(cache) > 0 && attn_cache_piece_tokens(cache) == 512);
  EXPECT(attn_cache_tensor(cache, 0, 0, &key) == ATTN_OK);
  EXPECT(attn_cache_tensor(cache, 0, 1, &value) == ATTN_OK);
  EXPECT_ERROR(attn_cache_tensor(cache, 1, 0, &key), ATTN_INVALID_ARGUMENT,
               "layer: expected a number from 0 to 0, got 1");
  fill(query, 2 * kDim);
  fill(keys, kMost * kDim);
  fill(values, kMost * kDim);
  for (b = 0; b < 2; ++b)
    for (n = 0; n < (b ? 3 : kMost); ++n)
      for (i = 0; i < kDim; ++i) {
        ((float *)key.data)[b * key.strides[0] + n * key.strides[2] + i] = keys[n * kDim + i];
        ((float *)value.data)[b * value.strides[0] + n * value.strides[2] + i] =
            values[n * kDim + i];
      }
  {
    int64_t rows[4] = {2, 1, 1, kDim}, whole[4] = {2, 1, kMost, kDim}, two[1] = {2};
    int64_t repeated[4] = {0, 0, kDim, 1};
    int32_t lengths[2] = {kMost, 3};
    attn_tensor q = {query, {ATTN_DL_CPU, 0}, 4, {ATTN_DL_FLOAT, 32, 1}, rows, NULL, 0};
    attn_tensor o = {output, {ATTN_DL_CPU, 0}, 4, {ATTN_DL_FLOAT, 32, 1}, rows, NULL, 0};
    attn_tensor k = {keys, {ATTN_DL_CPU, 0}, 4, {ATTN_DL_FLOAT, 32, 1}, whole, repeated, 0};
    attn_tensor v = {values, {ATTN_DL_CPU, 0}, 4, {ATTN_DL_FLOAT, 32, 1}, whole, repeated, 0};
    attn_tensor e = {expected, {ATTN_DL_CPU, 0}, 4, {ATTN_DL_FLOAT, 32, 1}, rows, NULL, 0};
    attn_tensor used = {lengths, {ATTN_DL_CPU, 0}, 1, {ATTN_DL_INT, 32, 1}, two, NULL, 0};
    const attn_tensor *grown[] = {&q, &key, &value, &used, &o}, *dense[] = {&q, &k, &v, &used, &e};
    EXPECT(attn_run(kernel, grown, 5, NULL) == ATTN_OK);
    EXPECT(attn_run(kernel, dense, 5, NULL) == ATTN_OK);
    EXPECT(!memcmp(output, expected, sizeof(output)));
  }
  EXPECT(attn_cache_export(cache, 0, 1, &managed) == ATTN_OK && managed);
  EXPECT(attn_cache_release(cache, 1, NULL) == ATTN_OK);
  EXPECT(attn_cache_share(cache, 0, 1, 1500, &shared) == ATTN_OK && shared == 1024);
  EXPECT(((float *)key.data)[key.strides[0] + 1023 * key.strides[2]] == keys[1023 * kDim]);
  EXPECT_ERROR(attn_cache_share(cache, 0, 1, 1, &shared), ATTN_INVALID_ARGUMENT,
               "to: expected an empty sequence");
  EXPECT_ERROR(attn_cache_grow(cache, 2, 1), ATTN_INVALID_ARGUMENT, "sequence: expected");
  EXPECT(attn_cache_release(cache, 0, NULL) == ATTN_OK && attn_cache_trim(cache) == ATTN_OK);
  EXPECT(attn_cache_tokens(cache, 2) == -1);
  attn_cache_free(cache);
  /* What was exported is there until its owner ends. */
  EXPECT(((float *)((attn_tensor *)managed)->data)[value.strides[0]] == values[0]);
  {
    struct Managed {
      attn_tensor tensor;
      void *owner;
      void (*deleter)(struct Managed *self);
    } *tensor = managed;
    tensor->deleter(tensor);
  }
  attn_cache_free(NULL);
  attn_kernel_free(kernel);
}

int main(void) {
  static Call call;
  attn_kernel *kernel = NULL, *again = NULL;
  attn_options *options = NULL;
  attn_value value;
  EXPECT(attn_abi_version() == ATTN_ABI_VERSION && strchr(attn_version(), '.'));
  EXPECT(!strcmp(attn_code_name(ATTN_INVALID_KERNEL), "invalid kernel"));
  /* Compiled here, whatever the disk has. */
  EXPECT(attn_options_create(&options) == ATTN_OK);
  EXPECT(attn_options_set(options, "cache", "off") == ATTN_OK);
  EXPECT(attn_compile(source, options, &kernel) == ATTN_OK);
  if (!kernel)
    return 1;
  testSuccess(kernel, &call);
  testCalls(kernel, &call);
  testThreads(kernel, &call);
  EXPECT_ERROR(attn_kernel_value(kernel, 7, &value), ATTN_INVALID_ARGUMENT,
               "index: expected a number below 7");
  testCompile();
  testExplain();
  testWriteSource();
  testPages();
  testPositions();
  testSequences();
  testMaskRanges(&call);
  testGradient(&call);
  testCache();
  testCuda();
  EXPECT(attn_kernel_ordinal(kernel) == -1 && attn_kernel_load_ms(kernel) > 0);
  EXPECT(!attn_kernel_is_from_disk(kernel) && !attn_kernel_remark(kernel, 0));
  /* The code outlives the first handle. */
  EXPECT(attn_compile(source, options, &again) == ATTN_OK);
  attn_options_free(options);
  attn_kernel_free(kernel);
  testSuccess(again, &call);
  attn_kernel_free(again);
  if (!failures)
    printf("all right\n");
  return failures != 0;
}
