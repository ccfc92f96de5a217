#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <span>

#include "models/config/config.h"
#include "models/sample/decoder.h"
#include "models/sample/packed_weights.h"

namespace sluice::models {

/// Where the steps of generation are computed, and the KV cache that they use. Blocks are numbers that the caller gives out.
struct StepPlace {
  at::Device device = at::kCPU;
  Precision precision = Precision::kFloat32;  // of the weights and the cache
  int64_t block_size = 16;                    // tokens, a multiple of 16
  int64_t blocks = 0;
};

/// What the generation engine asks for logits: the decoder of the CPU (decoder.h), or that of any other device
/// (library/decoder.h), with its cache. Not thread-safe.
class StepDecoder {
 public:
  virtual ~StepDecoder() = default;
  StepDecoder(const StepDecoder&) = delete;
  StepDecoder& operator=(const StepDecoder&) = delete;

  /// Throws UserError when there is no memory for the cache.
  static std::unique_ptr<StepDecoder> make(const ModelConfig& config, const StepPlace& place);

  /// Makes room for samples of so many positions.
  virtual void reserve(int64_t positions) = 0;

  /// Copies all of block `from` to block `to`.
  virtual void copy_block(int32_t from, int32_t to) = 0;

  /// Decoder::step() with weights that were packed where this one computes.
  virtual std::span<const float> step(const PackedWeights& weights, std::span<const DecodeSequence> sequences) = 0;

  int64_t block_size() const { return place_.block_size; }
  int64_t blocks() const { return place_.blocks; }
  int64_t bytes_per_block() const { return block_bytes_; }
  int64_t bytes_held() const { return blocks() * block_bytes_; }  // by the cache, whether in use or not

 protected:
  StepDecoder(const ModelConfig& config, const StepPlace& place)
      : place_(place), block_bytes_(kv_bytes(config, place.block_size, place.precision)) {}

 private:
  StepPlace place_;
  int64_t block_bytes_;
};

}  // namespace sluice::models
