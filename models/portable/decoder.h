#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "models/config/config.h"
#include "models/config/precision.h"
#include "models/cuda/own_step.h"
#include "models/kernels/rotary.h"
#include "models/layers/decode_sequence.h"
#include "models/layers/weights.h"
#include "models/portable/paged_attention.h"
#include "models/portable/texts.h"

namespace sluice::models::portable {

/// Who computes where the device has kernels of ours (abilities.h): models/cuda/ on a GPU.
enum class DecodeKernels {
  kLibrary,  // LibTorch's operators alone
  kOwn,      // all of ours that there are for the config and the precision
};

struct DecoderOptions {
  Precision precision = Precision::kFloat32;  // of products and of the KV cache; see LayerMaths
  at::Device device = at::kCPU;
  int64_t block_size = 16;  // tokens
  int64_t blocks = 0;
  DecodeKernels kernels = DecodeKernels::kOwn;
  const OwnKernels* own_kernels = nullptr;  // ours; null: those of the device
  bool keeps_texts = false;                 // ids beside keys and values, 8 bytes a token, for texts()
};

/// The forward pass of generation on any device: what models/layers/decode_sequence.h is on the CPU, with the KV cache that
/// belongs to it. Blocks are numbers that the caller gives out. No gradient. Allocates in every step. Not thread-safe.
///
/// A row depends, in its last bits, on what else is in the step: the library picks its algorithms by size.
class Decoder {
 public:
  /// Throws UserError when the device has no memory for the cache.
  Decoder(const ModelConfig& config, const DecoderOptions& options);

  /// Writes keys and values of the new tokens into their blocks and returns the logits that follow the last token of each
  /// sequence with wants_logits, [S,V] float32 in order, on the device, until the next step; undefined where none wants any.
  /// Waits for nothing.
  ///
  /// weights: operand_copy(), on the device. The same from a sequence's first step to its last.
  /// routes: of a mixture: becomes [T, RouteForm::token_bytes()], uint8 on the host, of the new tokens, which it waits for. Null:
  /// they are not wanted.
  at::Tensor step(const Weights& weights, std::span<const DecodeSequence> sequences, at::Tensor* routes = nullptr);

  /// All tokens of the sequences with wants_logits, in order, once step() has had their new ones. Must keep texts. At least one.
  Texts texts(std::span<const DecodeSequence> sequences) const;

  /// Copies all of block `from` to block `to`.
  void copy_block(int32_t from, int32_t to);

 private:
  // A step as numbers, and which of its sequences have one new token, or several.
  struct Numbers {
    OwnStep::Rows rows;
    std::vector<int64_t> first_row;  // of each sequence
    std::vector<size_t> single, several;
  };
  // Sequences with the same number of new tokens. Tensors are on the device.
  struct Batch {
    at::Tensor rows;       // [S*n] of their tokens among those of the step
    at::Tensor table;      // [S,W] blocks
    at::Tensor positions;  // [S,n] of their tokens
  };
  // Who attends to what: sequences with several new tokens are packed where flash attention takes them, else each is a batch.
  struct Attention {
    std::vector<Batch> batches;
    std::optional<PackedSequences> packed;
  };

  Numbers numbers_of(std::span<const DecodeSequence> sequences) const;
  at::Tensor step_in_operators(const Weights& weights, std::span<const DecodeSequence> sequences, const Numbers& numbers,
                               at::Tensor* routes);
  at::Tensor step_by_own_kernels(const Weights& weights, std::span<const DecodeSequence> sequences, const Numbers& numbers);
  Batch batch_of(std::span<const DecodeSequence> sequences, std::span<const size_t> chosen,
                 std::span<const int64_t> first_row) const;
  PackedSequences packed(std::span<const DecodeSequence> sequences, const Numbers& numbers) const;
  Attention attention_of_several(std::span<const DecodeSequence> sequences, const Numbers& numbers) const;
  bool packs() const;
  std::vector<at::Tensor> angles_of(std::span<const int64_t> positions);
  void attend(const Attention& attention, const at::Tensor& query, int64_t layer, const at::Tensor& out) const;
  at::Tensor attended(const Batch& batch, const at::Tensor& query, int64_t layer) const;

  ModelConfig config_;
  DecoderOptions options_;
  bool own_attention_;
  at::Tensor keys_, values_;         // [layers,blocks,block_size,Nk,D]
  at::Tensor ids_;                   // [blocks,block_size] of tokens; undefined where no texts are kept
  std::vector<RotaryTable> rotary_;  // for each rope_at() of the config, of the positions that steps have reached
  std::unique_ptr<OwnStep> own_;
};

}  // namespace sluice::models::portable
