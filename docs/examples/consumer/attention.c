/* Causal attention from C: cc attention.c $(pkg-config --cflags --libs attn) */
#include <attn-c/attn.h>
#include <stdio.h>
#include <stdlib.h>

enum { B = 1, H = 2, S = 128, D = 64, COUNT = B * H * S * D };

static const char source[] =
    "func.func @attention(%q: tensor<?x?x?x64xf32>, %k: tensor<?x?x?x64xf32>,\n"
    "                     %v: tensor<?x?x?x64xf32>) -> tensor<?x?x?x64xf32> {\n"
    "  %o = attn.attention %q, %k, %v variants [#attn.causal<bottom_right>]\n"
    "     : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> "
    "tensor<?x?x?x64xf32>\n"
    "  return %o : tensor<?x?x?x64xf32>\n"
    "}\n";

static void check(attn_code code) {
  if (code == ATTN_OK)
    return;
  fprintf(stderr, "%s: %s %s\n", attn_code_name(code), attn_last_message(), attn_last_hint());
  exit(1);
}

/** Row-major (B, H, S, D) in host memory. */
static attn_tensor describe(float *data, int64_t *shape) {
  attn_tensor tensor = {0};
  tensor.data = data;
  tensor.device.device_type = ATTN_DL_CPU;
  tensor.ndim = 4;
  tensor.dtype.code = ATTN_DL_FLOAT;
  tensor.dtype.bits = 32;
  tensor.dtype.lanes = 1;
  tensor.shape = shape;
  return tensor;
}

int main(void) {
  static float q[COUNT], k[COUNT], v[COUNT], o[COUNT];
  int64_t shape[] = {B, H, S, D};
  for (int i = 0; i < COUNT; ++i) {
    q[i] = (float)(i % 7) - 3;
    k[i] = (float)(i % 5) - 2;
    v[i] = (float)(i % 11) - 5;
  }

  attn_kernel *kernel;
  check(attn_compile(source, NULL, &kernel));
  attn_tensor tensors[] = {describe(q, shape), describe(k, shape), describe(v, shape),
                           describe(o, shape)};
  const attn_tensor *addresses[] = {&tensors[0], &tensors[1], &tensors[2], &tensors[3]};
  check(attn_run(kernel, addresses, 4, NULL));
  attn_kernel_free(kernel);

  /* The first row sees the first key alone. */
  for (int d = 0; d < D; ++d)
    if (o[d] != v[d]) {
      fprintf(stderr, "column %d: expected %f, got %f\n", d, v[d], o[d]);
      return 1;
    }
  printf("C: attn %s, row 0 is value 0\n", attn_version());
  return 0;
}
