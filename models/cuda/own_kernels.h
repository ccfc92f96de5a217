#pragma once

#include <cstdint>

#include "models/cuda/training_kernels.h"

// The seam between our library and the one that nvcc makes of models/cuda/*.cu. No header of CUDA, no tensor: the two agree on
// plain structs, so that the kernels compile in seconds and libsluice_models.so needs nothing of CUDA.
namespace sluice::models {

/// Attention of one new token a sequence over keys and values in blocks. All pointers are to memory of the device, contiguous;
/// N_q is a multiple of N_k.
constexpr int32_t kMostHeadDim = 256;
struct PagedDecodeArguments {
  const void* query = nullptr;       // [S, N_q, D]
  const void* keys = nullptr;        // [blocks, block_size, N_k, D]
  const void* values = nullptr;      // likewise
  const int32_t* table = nullptr;    // [S, table_width]: the blocks of each sequence
  const int32_t* lengths = nullptr;  // [S] tokens that are in the blocks, the new one among them; of 0 the result is zeros
  void* out = nullptr;               // [S, N_q, D]
  bool bfloat16 = false;             // element type of all of them; else float
  int32_t sequences = 0, heads = 0, kv_heads = 0, head_dim = 0;  // D <= kMostHeadDim
  int32_t block_size = 0, table_width = 0;
  int32_t window = 0;  // tokens that a token sees, itself included; 0: all
  float scale = 0;     // on queries times keys
  float softcap = 0;   // see ModelConfig::attention_softcap; 0: none
  int32_t device = 0;  // number of the GPU
};

/// The functions of libsluice_cuda.so. Each enqueues its work on the default stream of the device, where LibTorch's own work is
/// too, and returns a text that says what failed; null: nothing did.
struct OwnKernels {
  int32_t version = 0;  // kOwnKernelsVersion of the library's build
  const char* (*paged_decode_attention)(const PagedDecodeArguments& arguments) = nullptr;
  TrainingKernels training;
};

/// Counts the changes of what is declared here: a library of another build is not used.
constexpr int32_t kOwnKernelsVersion = 3;

/// Loads libsluice_cuda.so from beside this library, if it was built. Throws UserError when it is of another build or cannot be
/// loaded. Behind the CUDA part of LibTorch (device.h).
void load_own_kernels();

/// Null: they were not built, or are not loaded.
const OwnKernels* own_kernels();

}  // namespace sluice::models

/// What libsluice_cuda.so exports.
extern "C" const sluice::models::OwnKernels* sluice_own_kernels();
