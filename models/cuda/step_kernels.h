#pragma once

#include <cstdint>

#include "models/cuda/own_kernels.h"

// What a step of generation is made of, but for attention: plain structs, as in own_kernels.h. Rows are new tokens. Products read
// bfloat16 and give float32, as portable::wide_product() does; what is between them is float32. All matrices are contiguous and
// begin at multiples of 16 bytes, and their rows have a multiple of kOfRows numbers.
namespace sluice::models {

constexpr int32_t kOfRows = 32, kMostOfRow = 8192;  // the latter of the residual stream

/// y = x w^T, or added to what y holds.
struct StepProductArguments {
  const void* x = nullptr;  // [rows, inputs] bfloat16
  const void* w = nullptr;  // [outputs, inputs] bfloat16
  float* y = nullptr;       // [rows, outputs], rows `apart` numbers from each other
  int32_t rows = 0, inputs = 0, outputs = 0, apart = 0;
  void* library = nullptr;  // of open_library()
  int32_t device = 0;
  void* stream = nullptr;
};

/// The residual stream and what is read of it, row by row: first x = `embedding` of the row's token, or x += `added`, normalised
/// where there is `after`; then read = x, normalised where there is `before`.
struct ResidualArguments {
  float* x = nullptr;  // [rows, size]

  const void* embedding = nullptr;  // [V, size] bfloat16, and
  const int32_t* tokens = nullptr;  // [rows], and
  float embedding_scale = 1;        // on it; or
  const float* added = nullptr;     // [rows, size], or null: x stays as it is
  const float* bias = nullptr;      // [size] of what is added, or null
  const float* after = nullptr;     // [size] weights of its norm, or null
  const float* before = nullptr;    // [size] weights of the norm of what is read, or null
  const int32_t* chosen = nullptr;  // [rows] of x, of which `read` is; null: 0, 1, ...
  void* read = nullptr;             // [rows, size] bfloat16
  bool from_one = false;            // NormKind::kRmsFromOne
  float eps = 0;
  int32_t rows = 0, size = 0;
  int32_t device = 0;
  void* stream = nullptr;
};

/// Queries, keys and values of a layer as attention takes them: biases added, heads normalised, rotated, rounded; keys and values
/// into their places in the cache.
struct HeadsArguments {
  const float* projected = nullptr;  // [rows, (N_q + 2 N_k) D]: queries, keys, values
  const float *query_bias = nullptr, *key_bias = nullptr, *value_bias = nullptr;  // [N D], or null
  const float *query_norm = nullptr, *key_norm = nullptr;                         // [D] of the norm of each head, or null
  const float* angles = nullptr;                                                  // [positions, rotary_dims]: RotaryTable's rows
  const int32_t* positions = nullptr;                                             // [rows]
  const int32_t* slots = nullptr;                                                 // [rows] of the cache; below 0: none
  void* query = nullptr;                                                          // [rows, N_q, D] bfloat16
  void *keys = nullptr, *values = nullptr;                                        // [slots, N_k, D] bfloat16
  bool from_one = false;
  bool neighbours = false;  // ModelConfig::rotary_neighbours
  float eps = 0;
  int32_t rows = 0, heads = 0, kv_heads = 0, head_dim = 0, rotary_dims = 0;  // rotary_dims: of each head, from the first
  int32_t device = 0;
  void* stream = nullptr;
};

/// out = act(gate) up, or act(up) where there is no gate.
struct GateArguments {
  const float* projected = nullptr;                      // [rows, 2 size]: gate, up; or [rows, size]: up
  const float *gate_bias = nullptr, *up_bias = nullptr;  // [size], or null
  void* out = nullptr;                                   // [rows, size] bfloat16
  bool gated = true;
  GateKind gate = GateKind::kSilu;
  int32_t rows = 0, size = 0;
  int32_t device = 0;
  void* stream = nullptr;
};

/// The gate of products: `of` says where they go, x and the matrices [size, inputs] where they come from. Few rows need no memory
/// for the products; others have it in of.projected, for all of their rows.
struct GatedProductArguments {
  const void* x = nullptr;                    // [rows, inputs] bfloat16
  const void *gate = nullptr, *up = nullptr;  // bfloat16; gate: null where of.gated is not
  int32_t inputs = 0;
  float* projected = nullptr;  // that of.projected is
  GateArguments of;
  void* library = nullptr;
};

/// A token for each draw, from the softmax of logits times `scale`.
struct DrawArguments {
  const float* logits = nullptr;    // [R, vocabulary]
  const int32_t* rows = nullptr;    // [draws] of them
  const double* uniform = nullptr;  // [draws] in [0, 1); below 0: the likeliest
  void* scratch = nullptr;          // of draw_bytes()

  // [draws, 3]: the id, -1 where a logit of the row is not finite; how far its logit is above the largest; the sum of
  // e^((logit - largest) scale).
  double* out = nullptr;
  float scale = 1;
  int32_t draws = 0, vocabulary = 0;
  int32_t device = 0;
  void* stream = nullptr;
};

/// Part of OwnKernels.
struct StepKernels {
  /// Products of many rows are the library's (cuBLAS), which is opened for a device once for all of them, with `bytes` of memory
  /// there for its work.
  const char* (*open_library)(int32_t device, void* memory, int64_t bytes, void** library) = nullptr;
  void (*close_library)(void* library) = nullptr;

  const char* (*product)(const StepProductArguments& arguments) = nullptr;
  const char* (*residual)(const ResidualArguments& arguments) = nullptr;
  const char* (*heads)(const HeadsArguments& arguments) = nullptr;
  const char* (*gated_product)(const GatedProductArguments& arguments) = nullptr;
  int64_t (*draw_bytes)(const DrawArguments& arguments) = nullptr;
  const char* (*draw)(const DrawArguments& arguments) = nullptr;

  /// What is enqueued on `stream`, which is made for that, until end_recording() is recorded and not done. Memory that it uses
  /// must stay where it is as long as the recording does.
  const char* (*begin_recording)(int32_t device, void** stream) = nullptr;
  const char* (*end_recording)(int32_t device, void* stream, void** recording) = nullptr;
  const char* (*play)(int32_t device, void* recording, void* stream) = nullptr;  // there
  void (*forget)(void* recording) = nullptr;
};

}  // namespace sluice::models
