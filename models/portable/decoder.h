#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/config/config.h"
#include "models/config/precision.h"
#include "models/kernels/rotary.h"
#include "models/layers/decode_sequence.h"
#include "models/layers/weights.h"
#include "models/portable/texts.h"

namespace sluice::models::portable {

/// Who computes the attention of sequences with one new token.
enum class DecodeAttention {
  kLibrary,    // paged_attention()
  kOwnKernel,  // of the device (abilities.h): models/cuda/ on a GPU
};

struct DecoderOptions {
  Precision precision = Precision::kFloat32;  // of products and of the KV cache; see LayerMaths
  at::Device device = at::kCPU;
  int64_t block_size = 16;  // tokens
  int64_t blocks = 0;
  DecodeAttention attention = DecodeAttention::kLibrary;
  bool keeps_texts = false;  // ids beside keys and values, 8 bytes a token, for texts()
};

/// The forward pass of generation on any device: what models/layers/decode_sequence.h is on the CPU, with the KV cache that belongs
/// to it. Blocks are numbers that the caller gives out. No gradient. Allocates in every step. Not thread-safe.
///
/// A row depends, in its last bits, on what else is in the step: the library picks its algorithms by size.
class Decoder {
 public:
  /// Throws UserError when the device has no memory for the cache, or a kernel of ours is asked for that it has not.
  Decoder(const ModelConfig& config, const DecoderOptions& options);

  /// Writes keys and values of the new tokens into their blocks and returns the logits that follow the last token of each
  /// sequence with wants_logits, [S,V] float32 in order, on the device; undefined where none wants any. Waits for nothing.
  ///
  /// weights: operand_copy(), on the device. The same from a sequence's first step to its last.
  at::Tensor step(const Weights& weights, std::span<const DecodeSequence> sequences);

  /// All tokens of the sequences with wants_logits, in order, once step() has had their new ones. Must keep texts. At least one.
  Texts texts(std::span<const DecodeSequence> sequences) const;

  /// Copies all of block `from` to block `to`.
  void copy_block(int32_t from, int32_t to);

  int64_t bytes_held() const { return static_cast<int64_t>(2 * keys_.nbytes()); }  // of the cache

 private:
  // Sequences with the same number of new tokens: those with one together, each of the others alone. Tensors are on the device.
  struct Batch {
    at::Tensor rows;       // [S*n] of their tokens among those of the step
    at::Tensor table;      // [S,W] blocks
    at::Tensor positions;  // [S,n] of their tokens
  };
  // The step at hand. T new tokens.
  struct Step {
    at::Tensor tokens, positions;  // [T]
    at::Tensor slots;              // [T] where keys and values go: block * block_size + place in it
    at::Tensor turns;              // [T,R], or undefined
    at::Tensor last;               // [S] rows whose logits are wanted
    std::vector<Batch> batches;
  };

  Step prepared(std::span<const DecodeSequence> sequences);
  Batch batch_of(std::span<const DecodeSequence> sequences, std::span<const size_t> chosen,
                 std::span<const int64_t> first_row) const;
  at::Tensor turns_of(std::span<const int64_t> positions);
  at::Tensor attended(const Step& step, const at::Tensor& query, int64_t layer) const;
  at::Tensor attended(const Batch& batch, const at::Tensor& query, int64_t layer) const;

  ModelConfig config_;
  DecoderOptions options_;
  at::Tensor keys_, values_;  // [layers,blocks,block_size,Nk,D]
  at::Tensor ids_;            // [blocks,block_size] of tokens; undefined where no texts are kept
  std::optional<RotaryTable> rotary_;
};

}  // namespace sluice::models::portable
