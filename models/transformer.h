#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <span>

#include "models/config/config.h"
#include "models/head.h"
#include "models/weights.h"

namespace sluice::models {

struct LoadOptions {
  Head head = Head::kLanguageModel;
  bool random_init = false;           // only config.json and the tokenizer of the folder are used
  uint64_t seed = 0;                  // of the random initialisation; a value head that the folder does not have is zero
  bool trainable = false;             // every weight gets requires_grad
  at::ScalarType dtype = at::kFloat;  // of the weights; kBFloat16: for forward passes only
};

/// A decoder-only transformer with the maths that its ModelConfig says. Owns its weights. Ragged in, ragged out: samples lie back
/// to back, there is no padding. Not thread-safe while a gradient is computed; forward passes without gradient may run from
/// several threads as long as nobody changes the weights.
///
/// Weights may be of a narrower dtype than float32 (bfloat16, float16) where none needs a gradient. They take half the memory, and
/// everything is computed in that dtype, rounded where transformers rounds (narrow_forward.h).
class Transformer {
 public:
  /// Reads a Hugging Face folder. Throws UserError naming file and tensor (missing, wrong shape or dtype, left over).
  static Transformer load(const std::filesystem::path& folder, const LoadOptions& options);

  Transformer(ModelConfig config, Weights weights) : config_(std::move(config)), weights_(std::move(weights)) {}

  /// Final hidden states (after the last norm) of every token.
  ///
  /// tokens         [T]    int64, 0 <= id < V
  /// sample_offsets [S+1]  sample s is tokens[offsets[s]..offsets[s+1]); positions count from 0 in each sample, which has at most
  ///                       as many tokens as a table of learned positions
  /// returns        [T,H]  float32; differentiable in the weights that need a gradient
  at::Tensor hidden_states(const at::Tensor& tokens, std::span<const int64_t> sample_offsets) const;

  const ModelConfig& config() const { return config_; }
  const Weights& weights() const { return weights_; }
  Weights& weights() { return weights_; }

 private:
  ModelConfig config_;
  Weights weights_;
};

}  // namespace sluice::models
