/*===- attn.h - the C interface of attn --------------------------------------------------------===*
 *
 * Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===------------------------------------------------------------------------------------------===*
 *
 *   attn_kernel *kernel;
 *   if (attn_compile(source, NULL, &kernel) != ATTN_OK)
 *     fprintf(stderr, "%s\n", attn_last_message());
 *   const attn_tensor *tensors[] = {&query, &key, &value, &output};
 *   if (attn_run(kernel, tensors, 4, NULL) != ATTN_OK)
 *     fprintf(stderr, "%s\n", attn_last_message());
 *   attn_kernel_free(kernel);
 *
 * Every function may be called from any number of threads at once, except that a handle must not be
 * freed while it is in use. The child of a fork may go on calling on the CPU; a fork waits for what
 * other threads are compiling. Everything here keeps its meaning: later versions add functions,
 * options and codes. C99 and C++.
 *
 *===------------------------------------------------------------------------------------------===*/

#ifndef ATTN_C_ATTN_H
#define ATTN_C_ATTN_H

#if !defined(__cplusplus) && (!defined(__STDC_VERSION__) || __STDC_VERSION__ < 199901L)
#error "attn-c/attn.h: expected C99 or later (-std=c99)"
#endif

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ATTN_EXPORT __attribute__((visibility("default")))
#else
#define ATTN_EXPORT
#endif

/*===- Version
 * ---------------------------------------------------------------------------------===*/

/** Changes only when something here changes its meaning. */
#define ATTN_ABI_VERSION 1

/** "0.1.0"; lives as long as the library. */
ATTN_EXPORT const char *attn_version(void);
/** The ATTN_ABI_VERSION that the library was built with. */
ATTN_EXPORT int32_t attn_abi_version(void);

/*===- Errors
 * ----------------------------------------------------------------------------------===*/

typedef enum attn_code {
  ATTN_OK = 0,
  /** An argument of the call: a count, type, rank, extent, stride, alignment, option. */
  ATTN_INVALID_ARGUMENT = 1,
  ATTN_NO_DRIVER = 2,
  /** The device is not there. */
  ATTN_NO_DEVICE = 3,
  ATTN_UNSUPPORTED_DEVICE = 4,
  ATTN_DRIVER_TOO_OLD = 5,
  /** A source that does not parse, verify or compile. */
  ATTN_INVALID_KERNEL = 6,
  ATTN_RESOURCE_LIMIT = 7,
  ATTN_OUT_OF_MEMORY = 8,
  ATTN_CAPTURE_IN_PROGRESS = 9,
  ATTN_DRIVER_FAILURE = 10
} attn_code;

/** "invalid argument". */
ATTN_EXPORT const char *attn_code_name(attn_code code);

/** About the last call in this thread that failed, and until the next one that fails: one line,
 *  "where: expected X, got Y", and the nearest change that would be accepted (may be empty). */
ATTN_EXPORT const char *attn_last_message(void);
ATTN_EXPORT const char *attn_last_hint(void);

/*===- Tensors
 * ---------------------------------------------------------------------------------===*/

/** DLPack's numbers (dlpack.h is not needed). kDLInt, kDLUInt, kDLFloat, kDLBfloat, kDLBool. */
enum { ATTN_DL_INT = 0, ATTN_DL_UINT = 1, ATTN_DL_FLOAT = 2, ATTN_DL_BFLOAT = 4, ATTN_DL_BOOL = 6 };
enum { ATTN_DL_FLOAT8_E4M3FN = 10, ATTN_DL_FLOAT8_E5M2 = 12 };
/** kDLCPU, kDLCUDA, kDLCUDAHost, kDLCUDAManaged. */
enum { ATTN_DL_CPU = 1, ATTN_DL_CUDA = 2, ATTN_DL_CUDA_HOST = 3, ATTN_DL_CUDA_MANAGED = 13 };

/** Field by field a DLTensor of DLPack: `(const attn_tensor *)&managed->dl_tensor` is valid. Its
 *  memory belongs to the caller. Strides are in elements; null means row-major. */
typedef struct attn_tensor {
  void *data;
  struct {
    int32_t device_type;
    int32_t device_id;
  } device;
  int32_t ndim;
  struct {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
  } dtype;
  int64_t *shape;
  int64_t *strides;
  uint64_t byte_offset;
} attn_tensor;

/*===- Options
 * ---------------------------------------------------------------------------------===*/

typedef struct attn_options attn_options;

ATTN_EXPORT attn_code attn_options_create(attn_options **options);
/** Sets one of
 *    device   cpu, cuda (the GPU of the calling thread's current context, or 0), or cuda:1
 *    target   the kind of GPU to compile for, such as sm_90a; empty for the device's
 *    cpu      a processor in LLVM's spelling, such as x86-64-v3; empty for this machine's
 *    threads  the most threads of a call; 0 for all
 *    block-m, block-n   query rows of a block, keys of a step; 0 for the device's rule
 *    splits   parts that the keys of a block are split into; more than 1 costs a second kernel and
 *             memory for the parts during a call
 *    fixed-split   keys of a part, counted from the first key, so that the bits of a row depend on
 *             nothing but the row, its keys, its mask and its scale: not on the batch, nor on the
 *             room of a cache; a multiple of block-n, which follows it where that is 0. 0: none
 *    fused    on or off: whether blocks of a GPU that own keys add to gradients of queries, in any
 *             order, where there are such blocks; on, the default, costs memory for that gradient
 *             in f32; off gives the same bits each time
 *    pack     on GPUs, slots for the query heads that share a key head: 2, 4, 8, 16, 32 or 64, for
 *             calls with few rows, which then read keys and values once for a group; 0 for those
 *             of the rule
 *    way      on GPUs, which kernels there are, between which each call chooses by its extents:
 *             auto (all of the rule: for decoding, for few rows, for few keys, for short
 *             sequences, and for other calls), lengths (for short sequences, and for others), or
 *             one for all calls: short, long, few (at most 128 rows with many keys), narrow
 *             (many rows with at most 80 keys, or 129 to 160) or groups (gradients that split the
 *             query heads of a group). Where there are several, each is compiled when a call first
 *             takes it, or by attn_prepare
 *    lazy     on or off: whether not even the kernel of most calls is compiled before a call
 *             takes it
 *    stay     on GPUs, whether blocks stay, one for each multiprocessor, and take one tile of rows
 *             after the other: auto (where that was measured to be faster), or on or off (one
 *             kernel for all calls)
 *    reserve  on GPUs, multiprocessors that blocks that stay leave to other kernels, as to those
 *             that move data between GPUs; 0. Results are the same bits
 *    balance  on GPUs, on or off: whether sequences get parts of their keys by their lengths, where
 *             calls with few rows split keys and a mask bounds those of each sequence; off
 *    slack    on GPUs, by which factor 2^slack, from 0 to 16, the maximum of a row may lag before
 *             what is summed is scaled. -1, the default, and 0 for none; 8 is 1 % faster, 3 % at
 *             D = 256, for 1.04 times the rounding error (1.2 where few weights are most of a sum)
 *    search   on GPUs, rows of the calls that a search of block-m and block-n times: sizes of which
 *             models say that they spill or wait for memory are refused; 0 for no search
 *    entry    the function to compile; empty when there is only one
 *    cache    on or off: whether code is kept on disk for the next process; $ATTN_CACHE=0 is off
 *             too
 *    cache-dir  where; empty for $ATTN_CACHE_DIR, then $XDG_CACHE_HOME/attn or ~/.cache/attn */
ATTN_EXPORT attn_code attn_options_set(attn_options *options, const char *key, const char *value);
ATTN_EXPORT void attn_options_free(attn_options *options);

/*===- Sources
 * ---------------------------------------------------------------------------------===*/

enum { ATTN_CAUSAL_NO = 0, ATTN_CAUSAL_TOP_LEFT = 1, ATTN_CAUSAL_BOTTOM_RIGHT = 2 };

/** Where the rows or keys of a call stand in the whole: at their own numbers, from an origin on, or
 *  where a table says. */
enum { ATTN_POSITIONS_OWN = 0, ATTN_POSITIONS_ORIGIN = 1, ATTN_POSITIONS_TABLE = 2 };

/** A common attention, for attn_write_source. Start from ATTN_SPEC_INIT: no bound of a window is
 *  -1, not 0.
 *
 *  The function takes these in this order, of which * are there where the spec says so:
 *
 *    query        type  (B, H, M, D)
 *    key          type  (B, Hkv, N, D); with pages key_cache, (Np, P, Hkv, D)
 *    value        type  (B, Hkv, N, Dv); with pages value_cache, (Np, P, Hkv, Dv)
 *    page_table*  i32   (B, C), with pages
 *    row_positions*, key_positions*
 *                 i32   (1) for an origin, (M) and (N) for a table
 *    total*       i32   (2), with positions: M and N of the whole
 *    seqused_k*   i32   (B), with lengths
 *    query_ids*   i32   (B, M), with documents
 *    key_ids*     i32   (B, N), with documents
 *    slopes*      f32   (H), with ALiBi
 *    seed*        i64   (1), with dropout
 *    q_descale*, k_descale*, v_descale*
 *                 f32   (B, S), with a type of 8 bits: scales of its elements. S divides the
 *                       heads. Each head reads its own scale, or that of its group.
 *    scale*       f32   a scalar
 *    sink*        f32   (H)
 *
 *  and gives output, (B, H, M, Dv) of the type, or output_type where that has 8 bits, and lse*,
 *  f32 of shape (B, H, M).
 *
 *  With is_gradient it also takes output, lse and d_output, and gives d_query, d_key, d_value,
 *  d_sink* and d_slopes*, each of the shape of what it is the gradient of.
 *
 *  With is_ragged the first arguments are others.
 *
 *    rows_query                  type  (T, H, D), the rows of all sequences
 *    rows_key, rows_value        type  (Tk, Hkv, D) and (Tk, Hkv, Dv)
 *    cu_seqlens_q, cu_seqlens_k  i32   (B + 1), where each begins and the last one ends
 *    max_seqlen_q, max_seqlen_k  i8    (M) and (N): their sizes are the most rows and keys of a
 *                                      sequence, and nothing reads them
 *
 *  Then come descales*, slopes*, seed*, scale* and sink*. The results are rows_output, (T, H, Dv),
 * and rows_lse*, (T, H). A longer sequence is cut, and results of rows that are in no sequence are
 * not written. */
typedef struct attn_spec {
  /** sizeof(attn_spec), so that a later library knows what the program has. */
  size_t size;
  /** Of query, key, value and output: "f16", "bf16" or "f32". Or "f8E4M3FN" or "f8E5M2", of query,
   *  key and value. */
  const char *type;
  /** D of query and key; Dv of value and output, 0 for D. */
  int64_t head_dim, value_dim;
  /** Keys at or before the row's own position, counted from the first row and key or the last. */
  int32_t causal;
  /** Whether calls give the factor of the products, otherwise 1/sqrt(D), and one more logit for
   *  each head. */
  int32_t has_scale, has_sink;
  /** A second result if not 0: the natural logarithm of the sum of exponentials. */
  int32_t returns_lse;
  /** Keys before and after the row's own position, counted from the bottom-right; -1 is no bound.
   */
  int64_t window_left, window_right;
  /** P, the keys of a page; 0 where keys and values lie in one piece. Key n of sequence b is row
   *  n mod P of page page_table[b, n / P], so that N is C * P. Pages may be shared and in any
   *  order, with heads before or after rows: strides are free but for the last dimension's. An
   *  entry that no kept key needs may hold anything; nothing outside of the caches is read,
   *  whatever the table holds. */
  int64_t page_size;
  /** Whether each sequence has its own number of keys, seqused_k[b], those of its own rows
   *  included. Bottom-right then counts from the last of these keys. Fewer than 0 are none, and
   *  more than N are N, though rows still count from the number that was given. */
  int32_t has_lengths;
  /** Whether query, key and value are rows of sequences of any lengths, one after the other.
   *  Bottom-right then counts from the last row and key of each. On a GPU there are at most 65535.
   *  Not together with pages, lengths or documents. */
  int32_t is_ragged;
  /** Scores s become softcap * tanh(s / softcap); 0: they stay. */
  double softcap;
  /** The probability with which a weight becomes 0, and otherwise weight / (1 - p); 0: none. Which
   *  ones is a function of the seed and of positions alone, so that gradients drop the same. */
  double dropout;
  /** Whether slopes[h] times the distance of a key from the row's own position is taken off a
   *  score, after the cap. Positions count from the bottom-right. */
  int32_t has_alibi;
  /** Whether rows keep the keys of their own document alone: query_ids[b, m] == key_ids[b, n]. */
  int32_t has_documents;
  /** The gradients of the attention of the same spec instead of the attention: from its output, its
   *  lse and the gradient of its output. Not together with pages or is_ragged. */
  int32_t is_gradient;
  /** With is_gradient: whether d_query, d_key and d_value are f32, whatever the type: sums of
   *  several such gradients are rounded once then. */
  int32_t has_wide_gradients;
  /** Of the output where the type has 8 bits: "f16", "bf16" or "f32"; null for "bf16". Where it has
   *  16: "f32", or else the type. */
  const char *output_type;
  /** A call may have some rows and keys of a whole, as a GPU of several does, or a part of a
   * prompt. Causal, windows, ALiBi and dropout then count in the whole, and ids of documents are
   * read there: query_ids is (B, total[0]), key_ids is (B, total[1]). Tables do not decrease; the
   * keys that a broken promise keeps are unspecified. Not together with pages, lengths or
   * is_ragged. */
  int32_t row_positions, key_positions;
} attn_spec;

#define ATTN_SPEC_INIT                                                                             \
  {sizeof(attn_spec),                                                                              \
   "f32",                                                                                          \
   0,                                                                                              \
   0,                                                                                              \
   ATTN_CAUSAL_NO,                                                                                 \
   0,                                                                                              \
   0,                                                                                              \
   0,                                                                                              \
   -1,                                                                                             \
   -1,                                                                                             \
   0,                                                                                              \
   0,                                                                                              \
   0,                                                                                              \
   0,                                                                                              \
   0,                                                                                              \
   0,                                                                                              \
   0,                                                                                              \
   0,                                                                                              \
   0,                                                                                              \
   NULL,                                                                                           \
   0,                                                                                              \
   0}

/** The attention as a source for attn_compile, freed with attn_string_free. Score and mask
 * functions are source that the program writes itself. Head dimensions and bounds that are none are
 * found when the source is compiled. */
ATTN_EXPORT attn_code attn_write_source(const attn_spec *spec, char **source);

/*===- Kernels
 * ---------------------------------------------------------------------------------===*/

typedef struct attn_kernel attn_kernel;

/** Compiles a function on tensors in the `attn` dialect. `options` may be null. The same source and
 *  options give the same code again, without compiling. */
ATTN_EXPORT attn_code attn_compile(const char *source, const attn_options *options,
                                   attn_kernel **kernel);
/** Null is allowed. */
ATTN_EXPORT void attn_kernel_free(attn_kernel *kernel);

ATTN_EXPORT size_t attn_kernel_num_arguments(const attn_kernel *kernel);
ATTN_EXPORT size_t attn_kernel_num_results(const attn_kernel *kernel);

/** An argument or result; lives as long as the kernel. */
typedef struct attn_value {
  const char *name;
  /** "f32". */
  const char *type;
  /** A number: pass a tensor with ndim 0 in host memory. */
  int32_t is_scalar;
  int32_t ndim;
  /** `ndim` extents; -1 is decided by each call. */
  const int64_t *shape;
} attn_value;

/** Describes argument `index`, or, from attn_kernel_num_arguments on, a result. */
ATTN_EXPORT attn_code attn_kernel_value(const attn_kernel *kernel, size_t index, attn_value *value);

/** Milliseconds that compiling took; 0 when the code was on disk. */
ATTN_EXPORT double attn_kernel_compile_ms(const attn_kernel *kernel);
/** Milliseconds that linking took, or the driver of a GPU to load the code and to assemble what it
 *  had not seen. */
ATTN_EXPORT double attn_kernel_load_ms(const attn_kernel *kernel);
/** Whether the code was found on disk. */
ATTN_EXPORT int32_t attn_kernel_is_from_disk(const attn_kernel *kernel);
/** The GPU that the code is on, by the driver's number; -1 for the CPU. */
ATTN_EXPORT int32_t attn_kernel_ordinal(const attn_kernel *kernel);
/** A problem that was repaired on the way, such as a damaged file in the cache; null past the last
 *  one. Lives as long as the kernel. */
ATTN_EXPORT const char *attn_kernel_remark(const attn_kernel *kernel, size_t index);

/** Calls the kernel with its arguments and then its results, which it fills. All are checked before
 *  any memory is touched; no address is kept. On the CPU `stream` is ignored, and the results are
 *  filled on return. On a GPU, tensors are in its memory, and `stream` is a CUstream or
 *  cudaStream_t of it (null is the legacy default stream). The call returns when the kernels are
 *  queued: it waits for nothing, and a graph can capture it. It allocates nothing unless keys are
 *  split, and then memory in the order of the stream. */
ATTN_EXPORT attn_code attn_run(const attn_kernel *kernel, const attn_tensor *const *tensors,
                               size_t count, void *stream);

/** attn_run with memory of the device for what kernels of one call leave for each other, so that
 *  nothing is allocated: attn_workspace_size says how much. It lies at a multiple of 256 bytes, may
 *  hold anything, and is the call's until the stream has passed. Null with 0 bytes is attn_run. */
ATTN_EXPORT attn_code attn_run_in(const attn_kernel *kernel, const attn_tensor *const *tensors,
                                  size_t count, void *stream, void *workspace, size_t bytes);
/** attn_run_in with a workspace in which an earlier call of the same kernel, with tensors of the
 * same shapes, has left what follows from lengths, masks and the tensors that masks read: lists of
 * tiles, and parts of keys. The kernels that compute it are not launched, as in all layers of a
 * model but the first. Where these have changed since, results are wrong, and no access is. */
ATTN_EXPORT attn_code attn_run_planned(const attn_kernel *kernel, const attn_tensor *const *tensors,
                                       size_t count, void *stream, void *workspace, size_t bytes);
/** The bytes of workspace that a call with tensors of these shapes takes; 0 for most. Compiles what
 *  such calls take. Addresses may be null. */
ATTN_EXPORT attn_code attn_workspace_size(const attn_kernel *kernel,
                                          const attn_tensor *const *tensors, size_t count,
                                          size_t *bytes);

/** Compiles what calls with tensors of these shapes take, so that none of them waits and a graph
 * can capture them; without tensors (null, 0), what any call may take. Addresses may be null. */
ATTN_EXPORT attn_code attn_prepare(const attn_kernel *kernel, const attn_tensor *const *tensors,
                                   size_t count);
/** The name of the kernel among those of a GPU that calls with tensors of these shapes take, as
 *  attn_explain_way lists them; empty for that of most calls. Freed with attn_string_free. */
ATTN_EXPORT attn_code attn_choose_way(const attn_kernel *kernel, const attn_tensor *const *tensors,
                                      size_t count, char **way);

/** Tells a function, in one line, of each kernel that is compiled or loaded from disk because a
 * call takes it, in the thread of that call; null ends it. */
typedef void (*attn_log)(const char *line, void *data);
ATTN_EXPORT void attn_set_log(attn_log log, void *data);

/** The most threads that calls on the CPU share, the calling one included, from the next call on:
 *  of all kernels and all threads of the process. 0 is the default: the cores that the process may
 *  use, and no more than $OMP_NUM_THREADS. */
ATTN_EXPORT attn_code attn_set_num_threads(int32_t count);
/** The number in force. */
ATTN_EXPORT int32_t attn_get_num_threads(void);

/** Compiles for cuda and stops before the driver, which need not be there: PTX, and a plan of how
 *  to launch it (JSON). Both are freed with attn_string_free. */
ATTN_EXPORT attn_code attn_emit(const char *source, const attn_options *options, char **ptx,
                                char **plan);

/** Explains how a source is compiled: the decisions, and the IR after the room `until`. Rooms are
 *  "problem", "grid" and "online", and for cuda also "tile", "placed", "async", "thread" and "ptx".
 *  The text is freed with attn_string_free. */
ATTN_EXPORT attn_code attn_explain(const char *source, const attn_options *options,
                                   const char *until, char **text);
/** attn_explain of the kernel of that name, where calls choose between several; empty for that of
 * most calls. The text lists all of them, with the calls that take each. */
ATTN_EXPORT attn_code attn_explain_way(const char *source, const attn_options *options,
                                       const char *until, const char *way, char **text);
ATTN_EXPORT void attn_string_free(char *text);

/** The keys of a tile of rows, in multiples of a tile of keys but for the last. Some row keeps a
 * key of [begin, end) and none outside, as far as the analysis of masks can tell. All rows keep all
 * of [full_begin, full_end). */
typedef struct attn_mask_range {
  int64_t begin, full_begin, full_end, end;
} attn_mask_range;

/** Which tiles the mask of a source keeps, as its kernels find it; no kernel is compiled. `source`
 * is a function with one attention. `arguments` are the `count` ones of a call, without its
 * results. The memory of query, key and value is not read. Other tensors are in host memory.
 * `ranges` has room for `capacity` of them: one for each tile of `tile_rows` rows of each head of
 * each batch, batches outside. */
ATTN_EXPORT attn_code attn_mask_ranges(const char *source, const attn_tensor *const *arguments,
                                       size_t count, int64_t tile_rows, int64_t tile_keys,
                                       attn_mask_range *ranges, size_t capacity);

/*===- Caches
 * ----------------------------------------------------------------------------------===*/

/** Keys and values of a batch of sequences. Addresses are reserved for the longest sequences, and
 *  memory is mapped to them only as far as sequences have grown. Kernels see dense
 *  tensors whose addresses never change, so that captured graphs stay valid.
 *
 *  Reading where nothing is mapped is a fault, not a wrong number. A tile of keys may reach 256
 *  tokens past the last key that a row keeps, so that many more have memory than a sequence was
 *  grown to. The lengths that kernels are given must not be above these. Nothing here can be
 *  captured. */
typedef struct attn_cache attn_cache;

typedef struct attn_cache_spec {
  /** sizeof(attn_cache_spec). */
  size_t size;
  /** Of one sequence there are `tokens` at most. */
  int64_t sequences, tokens, layers, key_heads, head_dim;
  /** 0: head_dim. */
  int64_t value_dim;
  /** "f16", "bf16", "f32", "f8E4M3FN" or "f8E5M2". */
  const char *type;
  /** "cpu", "cuda" (GPU 0) or "cuda:1". */
  const char *device;
  /** The arrangement in memory. "layers": the tokens of one layer, which kernels read at full
   * speed. "tokens": all layers of a token, which leaves less memory over for each sequence, and
   * rows far apart. */
  const char *order;
} attn_cache_spec;

#define ATTN_CACHE_SPEC_INIT {sizeof(attn_cache_spec), 0, 0, 0, 0, 0, 0, "bf16", "cpu", "layers"}

/** Reserves the addresses; no memory yet. */
ATTN_EXPORT attn_code attn_cache_create(const attn_cache_spec *spec, attn_cache **cache);
/** Null is allowed. Kernels that read the cache must have ended. Memory that was exported stays. */
ATTN_EXPORT void attn_cache_free(attn_cache *cache);
/** Gives the first `tokens` of a sequence memory, where they have none. Tokens that are there stay
 * where they are, so kernels may run meanwhile. New memory holds anything. Without memory
 *  (ATTN_OUT_OF_MEMORY) the sequence is as long as it was. */
ATTN_EXPORT attn_code attn_cache_grow(attn_cache *cache, int64_t sequence, int64_t tokens);
/** Lets an empty sequence begin with the memory of the first `tokens` of another. `shared` becomes
 *  how many of them whole pieces of memory hold, 0 to `tokens`. Nobody may write to these any more;
 *  the rest is the caller's to copy. */
ATTN_EXPORT attn_code attn_cache_share(attn_cache *cache, int64_t from, int64_t to, int64_t tokens,
                                       int64_t *shared);
/** Ends a sequence: it is empty from now on, and its memory serves others as soon as `stream` has
 *  passed (a CUstream or cudaStream_t; of no meaning on the CPU). */
ATTN_EXPORT attn_code attn_cache_release(attn_cache *cache, int64_t sequence, void *stream);
/** Gives memory back that no sequence has. */
ATTN_EXPORT attn_code attn_cache_trim(attn_cache *cache);
/** The keys or the values of a layer, (B, Hkv, N, D). Shape and strides live as long as the
 *  cache. */
ATTN_EXPORT attn_code attn_cache_tensor(const attn_cache *cache, int64_t layer, int32_t is_value,
                                        attn_tensor *tensor);
/** The same as a DLManagedTensor of DLPack, which keeps the cache alive until its deleter is
 *  called. */
ATTN_EXPORT attn_code attn_cache_export(const attn_cache *cache, int64_t layer, int32_t is_value,
                                        void **managed);
/** How many tokens of a sequence have memory; -1 where there is no such sequence. */
ATTN_EXPORT int64_t attn_cache_tokens(const attn_cache *cache, int64_t sequence);
/** Bytes of memory: those of sequences, and those that wait for one. */
ATTN_EXPORT int64_t attn_cache_bytes(const attn_cache *cache);
/** Tokens of one sequence that a piece of memory holds, of the keys of one layer or, in the order
 *  of tokens, of all that a token has. At least 1. */
ATTN_EXPORT int64_t attn_cache_piece_tokens(const attn_cache *cache);

#ifdef __cplusplus
}
#endif

#endif /* ATTN_C_ATTN_H */
