#include "models/sample/step_decoder.h"

#include "models/portable/decoder.h"
#include "models/sample/kv_cache.h"

namespace sluice::models {
namespace {

class OnCpu final : public StepDecoder {
 public:
  OnCpu(const ModelConfig& config, const StepPlace& place)
      : StepDecoder(config, place), cache_(config, place.block_size, place.blocks, place.precision), decoder_(config) {}

  void reserve(int64_t positions) override { decoder_.reserve(positions); }
  void copy_block(int32_t from, int32_t to) override { cache_.copy_block(from, to); }

  std::span<const float> step(const PackedWeights& weights, std::span<const DecodeSequence> sequences) override {
    return decoder_.step(weights, cache_, sequences);
  }

 private:
  KvCache cache_;
  Decoder decoder_;
};

class OnDevice final : public StepDecoder {
 public:
  OnDevice(const ModelConfig& config, const StepPlace& place)
      : StepDecoder(config, place),
        decoder_(config,
                 {.precision = place.precision, .device = place.device, .block_size = place.block_size, .blocks = place.blocks}) {
  }

  void reserve(int64_t) override {}
  void copy_block(int32_t from, int32_t to) override { decoder_.copy_block(from, to); }

  std::span<const float> step(const PackedWeights& weights, std::span<const DecodeSequence> sequences) override {
    return decoder_.step(weights.on_device(), sequences);
  }

 private:
  portable::Decoder decoder_;
};

}  // namespace

std::unique_ptr<StepDecoder> StepDecoder::make(const ModelConfig& config, const StepPlace& place) {
  if (place.device.is_cpu()) return std::make_unique<OnCpu>(config, place);
  return std::make_unique<OnDevice>(config, place);
}

}  // namespace sluice::models
