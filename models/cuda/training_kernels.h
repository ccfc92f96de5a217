#pragma once

#include <cstdint>

// What our kernels of training are given: plain structs, as own_kernels.h has them. All pointers are to memory of the device,
// contiguous. Work is for a stream of a GPU: cudaStream_t, null: the default one. An operand is what a product reads: bfloat16
// where `bfloat16` says so, else float. Nothing of no rows is done.
namespace sluice::models {

/// y = x / rms(x) * w of each row; w is 1 + weight with from_one.
struct RmsNormArguments {
  const float* x = nullptr;       // [rows, size]
  const float* weight = nullptr;  // [size]
  void* out = nullptr;            // [rows, size], an operand
  float* inverses = nullptr;      // [rows] of the rms
  bool bfloat16 = false, from_one = false;
  float eps = 0;
  int64_t rows = 0, size = 0;
  int32_t device = 0;
  void* stream = nullptr;
};

/// Its backward. Of the weight come partial sums: row i is that of the rows i, i + slices, ...
struct RmsNormBackwardArguments {
  const void* grad = nullptr;  // [rows, size], as `out` was
  const float *x = nullptr, *weight = nullptr, *inverses = nullptr;
  float* of_x = nullptr;       // [rows, size]; null: not wanted
  float* of_weight = nullptr;  // [slices, size]; null: not wanted
  bool bfloat16 = false, from_one = false;
  int64_t rows = 0, size = 0, slices = 0;
  int32_t device = 0;
  void* stream = nullptr;
};

enum class GateKind : int32_t { kSilu, kGeluTanh, kGelu };

/// out = activation(gate) * up
struct GatedArguments {
  const float *gate = nullptr, *up = nullptr;  // [count]
  void* out = nullptr;                         // [count], an operand
  bool bfloat16 = false;
  GateKind kind = GateKind::kSilu;
  int64_t count = 0;
  int32_t device = 0;
  void* stream = nullptr;
};

struct GatedBackwardArguments {
  const void* grad = nullptr;  // [count], as `out` was
  const float *gate = nullptr, *up = nullptr;
  void *of_gate = nullptr, *of_up = nullptr;     // [count] of one type, which is bfloat16 only where that of grad is
  bool bfloat16 = false, narrow_result = false;  // the type of grad; that of the results
  GateKind kind = GateKind::kSilu;
  int64_t count = 0;
  int32_t device = 0;
  void* stream = nullptr;
};

/// The first `dims` numbers of each head rotated, the halves of these against each other; the others as they are. `back`: the
/// other way, which is the backward.
struct RotaryArguments {
  const void* x = nullptr;        // [tokens, heads, head_dim]
  const float* angles = nullptr;  // [tokens, dims] dims / 2 cosines, then as many sines
  void* out = nullptr;
  bool bfloat16_in = false, bfloat16_out = false, back = false;
  int64_t tokens = 0;
  int32_t heads = 0, head_dim = 0, dims = 0;
  int32_t device = 0;
  void* stream = nullptr;
};

/// A number after a product with the head becomes z = softcap * tanh(logit / softcap) / temperature; softcap 0: logit /
/// temperature.
struct LogitScaling {
  float inverse_temperature = 1, softcap = 0, inverse_softcap = 0;
};

/// Of each row under softmax(z): the logarithm of the target's probability, that of the sum of all e^z, and the entropy.
struct LogitRowsArguments {
  const float* logits = nullptr;     // [rows, vocabulary]
  const int64_t* targets = nullptr;  // [rows]
  float *logprobs = nullptr, *log_sums = nullptr;
  float* entropies = nullptr;  // null: not wanted
  LogitScaling scaling;
  int64_t rows = 0, vocabulary = 0;
  int32_t device = 0;
  void* stream = nullptr;
};

/// The gradient of the logits from those of logprobs and entropies.
struct LogitSlopesArguments {
  const float* logits = nullptr;
  const int64_t* targets = nullptr;
  const float *log_sums = nullptr, *entropies = nullptr;
  const float *of_logprobs = nullptr, *of_entropies = nullptr;  // [rows] each; null: zeros
  void* slopes = nullptr;                                       // [rows, vocabulary], an operand; one of floats may be `logits`
  bool bfloat16 = false;
  LogitScaling scaling;
  int64_t rows = 0, vocabulary = 0;
  int32_t device = 0;
  void* stream = nullptr;
};

/// AdamWFactors (models/kernels/adamw_kernel.h) on a stretch of the buffers; leaves the gradients zero. What is sampled from is
/// written in the same pass over memory.
struct AdamWArguments {
  float *weights = nullptr, *gradients = nullptr, *first_moments = nullptr, *second_moments = nullptr;  // [count]
  void* written = nullptr;  // [count], the new weights as an operand; null: not wanted
  bool bfloat16 = false;
  float gradient_scale = 1, new_first = 0, new_second = 0, kept = 1, step_size = 0, root_scale = 1, epsilon = 0;
  int64_t count = 0;
  int32_t device = 0;
  void* stream = nullptr;
};

/// The sum of the squares, in double precision.
constexpr int64_t kSquaresOfABlock = 1 << 16;
struct SquaresArguments {
  const float* values = nullptr;  // [count]
  double* partial = nullptr;      // [ceil(count / kSquaresOfABlock)]
  double* total = nullptr;        // [1]
  int64_t count = 0;
  int32_t device = 0;
  void* stream = nullptr;
};

/// As OwnKernels has them.
struct TrainingKernels {
  const char* (*rms_norm)(const RmsNormArguments& arguments) = nullptr;
  const char* (*rms_norm_backward)(const RmsNormBackwardArguments& arguments) = nullptr;
  const char* (*gated)(const GatedArguments& arguments) = nullptr;
  const char* (*gated_backward)(const GatedBackwardArguments& arguments) = nullptr;
  const char* (*rotary)(const RotaryArguments& arguments) = nullptr;
  const char* (*logit_rows)(const LogitRowsArguments& arguments) = nullptr;
  const char* (*logit_slopes)(const LogitSlopesArguments& arguments) = nullptr;
  const char* (*adamw)(const AdamWArguments& arguments) = nullptr;
  const char* (*squares)(const SquaresArguments& arguments) = nullptr;
};

}  // namespace sluice::models
