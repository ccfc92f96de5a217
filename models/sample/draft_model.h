#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "models/config/config.h"
#include "models/config/precision.h"
#include "models/layers/sampling.h"
#include "models/sample/block_pool.h"
#include "models/sample/generation_backend.h"
#include "models/sample/packed_weights.h"
#include "models/sample/scheduler.h"

namespace sluice::models {

/// Which model guesses for another one. It has its vocabulary.
struct DraftOptions {
  ModelConfig config;
  Precision precision = Precision::kFloat32;  // of its weights, and of its KV cache
  at::Device device = at::kCPU;               // where both are
  std::optional<double> cost = {};  // of a guess, as a part of that of a step (DraftAgreement); none: by the bytes that are read
};

/// A model that guesses what samples of another one say next (speculative sampling, Leviathan et al. 2023, arXiv 2211.17192). It
/// draws each token with the number that the sample's stream has for it, as that is sampled, so that the two agree as often as
/// their distributions let them where both are asked the same: what was accepted or not by a number of its own there is no need
/// for.
///
/// Its keys and values lie in blocks of the same numbers as those of the model that it guesses for: whoever has a block there has
/// it here, and what is shared, copied and given back there is so here. It reads a text when it is to guess what follows and not
/// before: of a prompt that several samples have in common one of them, and nothing of samples for which nobody guesses.
///
/// What it guesses depends on the text, the number and its weights alone. Owns a backend. Not thread-safe.
class DraftModel {
 public:
  /// `sampling` is that of the model that it guesses for. `blocks` of `block_size` tokens; at most `step_tokens` are read at a
  /// time. Throws UserError when there is no memory for them.
  DraftModel(const DraftOptions& options, const SamplingOptions& sampling, int64_t block_size, int64_t blocks,
             int64_t step_tokens);

  /// As GenerationBackend has them.
  void reserve(int64_t positions) { backend_->reserve(positions); }
  void set_sampling(const SamplingOptions& sampling) { backend_->set_sampling(sampling); }

  /// Of blocks of `pool`; before anything of the step is computed.
  void copy_block(int32_t from, int32_t to, const BlockPool& pool);

  /// Fills in Sample::drafts of those that have room for some: their next tokens. They decode one token in the step at hand, and
  /// have blocks for it and the drafts. Throws UserError naming the sample when its logits are not finite.
  void guess(const PackedWeights& weights, std::span<const std::unique_ptr<Sample>> running, const BlockPool& pool);

  int64_t bytes_per_block() const { return backend_->bytes_per_block(); }
  const ModelConfig& config() const { return config_; }

 private:
  struct Guessing {
    Sample* sample = nullptr;
    RandomStream stream;  // from the token that is guessed next
    int64_t read = 0;     // tokens with keys and values
    int64_t reads = 0;    // more, in the round at hand
  };

  int64_t read_in(int32_t block, const BlockPool& pool) const;
  int64_t read_of(const Sample& sample, const BlockPool& pool) const;
  bool read_texts(const PackedWeights& weights, const BlockPool& pool);
  void note_read(const Guessing& of, const BlockPool& pool);
  bool guess_next(const PackedWeights& weights, size_t number);

  const ModelConfig config_;
  const int64_t block_size_, step_tokens_;
  std::unique_ptr<GenerationBackend> backend_;

  // Of each block: of the prompt whose it is so many tokens were read, since it was taken for that time; and in which round it
  // was written last.
  struct Block {
    int64_t read = 0;
    int64_t taken = -1;
    int64_t round = -1;
  };
  std::vector<Block> blocks_;
  int64_t round_ = 0;

  // Of the step at hand.
  std::vector<Guessing> guessing_;
  std::vector<DecodeSequence> batch_;
  std::vector<TokenDraw> draws_;
  std::vector<SampledToken> drawn_;
};

}  // namespace sluice::models
