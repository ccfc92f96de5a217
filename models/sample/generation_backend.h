#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "models/config/config.h"
#include "models/layers/sampling.h"
#include "models/sample/decoder.h"
#include "models/sample/packed_weights.h"
#include "models/sample/route_blocks.h"
#include "models/sample/shared_steps.h"

namespace sluice::models {

/// Where and how steps of generation are computed, and the KV cache that they use. Blocks are numbers that the caller gives out.
struct BackendOptions {
  SamplingOptions sampling;
  at::Device device = at::kCPU;
  Precision precision = Precision::kFloat32;  // of the weights and the cache
  int64_t block_size = 16;                    // tokens, a multiple of 16
  int64_t blocks = 0;
  std::shared_ptr<SharedSteps> together = nullptr;  // with other ranks, on the CPU; null: this one alone
  bool keeps_routes = false;                        // of a mixture, beside the cache

  int ranks() const { return together ? together->share().ranks : 1; }

  /// What a block takes: keys and values of the heads that are here, and routes.
  int64_t block_bytes(const ModelConfig& config) const {
    const int64_t routes = keeps_routes ? block_size * route_form(config).token_bytes() : 0;
    return kv_bytes(heads_of(config, ranks()), block_size, precision) + routes;
  }
};

/// What the generation engine asks for the next tokens: it computes the logits of a step and draws from them where they are, so
/// that they need not leave a device. Owns the KV cache, or this rank's part of it. On the CPU decoder.h and sampler.h; on any
/// other device those of portable/, from which two numbers a draw come to the host. Not thread-safe.
class GenerationBackend {
 public:
  virtual ~GenerationBackend() = default;
  GenerationBackend(const GenerationBackend&) = delete;
  GenerationBackend& operator=(const GenerationBackend&) = delete;

  /// Throws UserError when a sampling option is out of range, or there is no memory for the cache.
  static std::unique_ptr<GenerationBackend> make(const ModelConfig& config, const BackendOptions& options);

  /// Makes room for samples of so many positions.
  virtual void reserve(int64_t positions) = 0;

  /// Copies all of block `from` to block `to`.
  virtual void copy_block(int32_t from, int32_t to) = 0;

  /// How tokens are drawn from now on; penalties and what truncates are as they were. Throws UserError when an option is out of
  /// range.
  virtual void set_sampling(const SamplingOptions& sampling) = 0;

  /// Writes keys and values of the new tokens into their blocks, and draws tokens[i] for draws[i].
  ///
  /// weights    packed where this one computes; with other ranks this one's part
  /// sequences  those with wants_logits make row 0, 1, ... of the step's logits
  /// draws      [D], each of one of these rows; its prompt and response are the tokens of the row's sequence
  /// tokens     [D]
  ///
  /// Throws UserError naming the sample of the first draw whose logits are not finite. A step that is not larger than those
  /// before it allocates nothing on the CPU.
  virtual void step(const PackedWeights& weights, std::span<const DecodeSequence> sequences, std::span<const TokenDraw> draws,
                    std::span<SampledToken> tokens) = 0;

  /// The routes (routes.h) of the tokens [begin, end) of a sequence, after what is in `to`. Must keep them.
  void append_routes(std::span<const int32_t> blocks, int64_t begin, int64_t end, std::string& to) const {
    routes_->append(blocks, begin, end, to);
  }
  bool keeps_routes() const { return routes_.has_value(); }

  int64_t block_size() const { return block_size_; }
  int64_t blocks() const { return blocks_; }
  int64_t bytes_per_block() const { return block_bytes_; }
  int64_t bytes_held() const { return blocks() * block_bytes_; }  // by cache and routes, whether in use or not

 protected:
  GenerationBackend(const ModelConfig& config, const BackendOptions& options)
      : block_size_(options.block_size), blocks_(options.blocks), block_bytes_(options.block_bytes(config)) {
    if (options.keeps_routes) routes_.emplace(route_form(config), options.block_size, options.blocks);
  }

  RouteBlocks* routes() { return routes_ ? &*routes_ : nullptr; }

 private:
  const int64_t block_size_, blocks_, block_bytes_;
  std::optional<RouteBlocks> routes_;
};

}  // namespace sluice::models
