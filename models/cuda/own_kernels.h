#pragma once

#include <cstdint>

#include "models/cuda/training_kernels.h"

// The seam between our library and the one that nvcc makes of models/cuda/*.cu. No header of CUDA, no tensor: the two agree on
// plain structs, so that the kernels compile in seconds and libsluice_models.so needs nothing of CUDA.
namespace sluice::models {

constexpr int32_t kMostHeadDim = 256, kOfHeadDim = 8;

/// Attention of one new token a sequence over keys and values in blocks. All pointers are to memory of the device, contiguous;
/// N_q is a multiple of N_k, and D of kOfHeadDim, so that heads begin at multiples of 16 bytes.
struct PagedDecodeArguments {
  const void* query = nullptr;       // [rows, N_q, D]
  const void* keys = nullptr;        // [blocks, block_size, N_k, D]
  const void* values = nullptr;      // likewise
  const int32_t* table = nullptr;    // [S, table_width]: the blocks of each sequence
  const int32_t* lengths = nullptr;  // [S] tokens that are in the blocks, the new one among them; of 0 the result is zeros
  const int32_t* rows = nullptr;     // [S] of query and out; null: 0, 1, ...
  void* out = nullptr;               // [rows, N_q, D]
  float* partials = nullptr;         // memory for what the parts of a sequence give, where there are several
  bool bfloat16 = false;             // element type of all of them; else float
  int32_t sequences = 0, heads = 0, kv_heads = 0, head_dim = 0;  // D <= kMostHeadDim
  int32_t block_size = 0, table_width = 0;
  uint64_t block_inverse = 0;  // inverse_of(block_size)
  int32_t splits = 1;          // parts of each sequence, each a thread block's
  int32_t window = 0;          // tokens that a token sees, itself included; 0: all
  float scale = 0;             // on queries times keys
  float softcap = 0;           // see ModelConfig::attention_softcap; 0: none
  int32_t device = 0;          // number of the GPU
  void* stream = nullptr;      // cudaStream_t; null: the default one
};

/// Of a divisor of numbers below 2^32 / divisor: their quotient is number * inverse >> 32.
constexpr uint64_t inverse_of(int32_t divisor) {
  return ((uint64_t{1} << 32) + static_cast<uint64_t>(divisor) - 1) / static_cast<uint64_t>(divisor);
}

struct StepKernels;  // step_kernels.h

/// The functions of libsluice_cuda.so. Each enqueues its work on the stream of the device that it is told, where LibTorch's own
/// work must be too (streams.h), and returns a text that says what failed; null: nothing did.
struct OwnKernels {
  int32_t version = 0;  // kOwnKernelsVersion of the library's build

  /// Parts of a sequence and numbers of their partials, for so many sequences of `longest` tokens at most. Sets arguments.splits.
  int64_t (*plan_paged_decode)(PagedDecodeArguments& arguments, int64_t longest) = nullptr;
  const char* (*paged_decode_attention)(const PagedDecodeArguments& arguments) = nullptr;
  const StepKernels* step = nullptr;
  TrainingKernels training;
};

/// Counts the changes of what is declared here: a library of another build is not used.
constexpr int32_t kOwnKernelsVersion = 4;

/// Loads libsluice_cuda.so from beside this library, if it was built. Throws UserError when it is of another build or cannot be
/// loaded. After the CUDA part of LibTorch (device.h).
void load_own_kernels();

/// Null: they were not built, or are not loaded.
const OwnKernels* own_kernels();

}  // namespace sluice::models

/// What libsluice_cuda.so exports.
extern "C" const sluice::models::OwnKernels* sluice_own_kernels();
