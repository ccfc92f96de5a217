#include "models/sample/generation_backend.h"

#include <algorithm>

#include "base/error.h"
#include "models/portable/decoder.h"
#include "models/portable/sampler.h"
#include "models/sample/kv_cache.h"
#include "models/sample/sampler.h"

namespace sluice::models {
namespace {

class OnCpu final : public GenerationBackend {
 public:
  OnCpu(const ModelConfig& config, const BackendOptions& options)
      : GenerationBackend(config, options),
        together_(options.together),
        cache_(heads_of(config, options.ranks()), options.block_size, options.blocks, options.precision),
        decoder_(config, together_ ? together_->share() : ColumnShare()),
        sampler_(options.sampling, config.vocab_size) {
    if (together_) together_->open(options.precision, options.block_size, options.blocks);
  }

  void reserve(int64_t positions) override { decoder_.reserve(positions); }
  void copy_block(int32_t from, int32_t to) override {
    cache_.copy_block(from, to);
    if (routes() != nullptr) routes()->copy_block(from, to);
    if (together_) together_->copy_block(from, to);
  }
  void set_sampling(const SamplingOptions& sampling) override { sampler_.set_options(sampling); }

  void step(const PackedWeights& weights, std::span<const DecodeSequence> sequences, std::span<const TokenDraw> draws,
            std::span<SampledToken> tokens) override {
    std::unique_lock<std::mutex> others;
    if (together_) others = together_->begin(weights, sequences);
    sampler_.sample(decoder_.step(weights, cache_, sequences, routes()), draws, tokens);
  }

 private:
  const std::shared_ptr<SharedSteps> together_;
  KvCache cache_;
  Decoder decoder_;
  Sampler sampler_;
};

// Logits stay on the device, and so do the texts that penalties look at.
class OnDevice final : public GenerationBackend {
 public:
  OnDevice(const ModelConfig& config, const BackendOptions& options)
      : GenerationBackend(config, options),
        sampler_(options.sampling),
        penalizes_(options.sampling.penalizes()),
        decoder_(config, {.precision = options.precision,
                          .device = options.device,
                          .block_size = options.block_size,
                          .blocks = options.blocks,
                          .keeps_texts = options.sampling.penalizes()}) {}

  void reserve(int64_t) override {}
  void copy_block(int32_t from, int32_t to) override {
    decoder_.copy_block(from, to);
    if (routes() != nullptr) routes()->copy_block(from, to);
  }
  void set_sampling(const SamplingOptions& sampling) override { sampler_ = portable::Sampler(sampling); }

  void step(const PackedWeights& weights, std::span<const DecodeSequence> sequences, std::span<const TokenDraw> draws,
            std::span<SampledToken> tokens) override {
    const at::Tensor logits = decoder_.step(weights.on_device(), sequences, routes() != nullptr ? &routed_ : nullptr);
    if (routes() != nullptr) keep_routes(sequences);
    if (draws.empty()) return;
    sampler_.sample(logits, penalizes_ ? decoder_.texts(sequences) : portable::Texts(), draws, tokens);
  }

 private:
  void keep_routes(std::span<const DecodeSequence> sequences) {
    const auto* route = routed_.const_data_ptr<uint8_t>();
    const int64_t bytes = routed_.size(1);
    for (const DecodeSequence& sequence : sequences) {
      const int64_t end = sequence.cached + static_cast<int64_t>(sequence.tokens.size());
      for (int64_t position = sequence.cached; position < end; ++position, route += bytes)
        std::copy_n(route, bytes, routes()->at(sequence.blocks[static_cast<size_t>(position / block_size())], position));
    }
  }

  portable::Sampler sampler_;
  const bool penalizes_;
  portable::Decoder decoder_;
  at::Tensor routed_;  // of the last step
};

}  // namespace

std::unique_ptr<GenerationBackend> GenerationBackend::make(const ModelConfig& config, const BackendOptions& options) {
  SLUICE_CHECK(options.device.is_cpu() || !options.together, "ranks sample together on the CPU alone");
  if (options.device.is_cpu()) return std::make_unique<OnCpu>(config, options);
  return std::make_unique<OnDevice>(config, options);
}

}  // namespace sluice::models
