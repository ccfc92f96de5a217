#include "models/layers/fresh_weights.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "base/error.h"
#include "base/random.h"

namespace sluice::models {
namespace {

using Kind = ExpectedWeight::Kind;

at::Tensor random_matrix(const ExpectedWeight& weight, const ModelConfig& config, uint64_t seed) {
  const at::Tensor result = at::empty(weight.shape, at::kFloat);
  RandomStream random(seed, stream_of_name(weight.name));
  float* data = result.mutable_data_ptr<float>();
  for (int64_t i = 0; i < result.numel(); ++i) data[i] = static_cast<float>(config.initializer_range * random.normal());
  return result;
}

}  // namespace

// FNV-1a
uint64_t stream_of_name(const std::string& name) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

at::Tensor fresh_weight(const ExpectedWeight& weight, const ModelConfig& config, uint64_t seed) {
  switch (weight.kind) {
    case Kind::kNorm:  // Gemma counts its norms from one
      return config.norm == NormKind::kRmsFromOne ? at::zeros(weight.shape, at::kFloat) : at::ones(weight.shape, at::kFloat);
    case Kind::kBias:
      return at::zeros(weight.shape, at::kFloat);
    // Zeros: every value is 0 at first, so that the first advantages are the plain returns and not the noise of a random
    // critic. The gradient of the head does not vanish there, so it learns from the first step on.
    case Kind::kValueHead:
      return at::zeros(weight.shape, at::kFloat);
    case Kind::kMatrix:
    case Kind::kHead:
      return random_matrix(weight, config, seed);
  }
  throw InternalError("unknown kind of weight");
}

}  // namespace sluice::models
