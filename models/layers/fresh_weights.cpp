#include "models/layers/fresh_weights.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "base/error.h"
#include "base/numbers/random.h"
#include "models/kernels/parallel.h"

namespace sluice::models {
namespace {

using Kind = ExpectedWeight::Kind;

constexpr int64_t kDrawn = 1 << 18, kDrawnByOne = 1 << 14;  // at a time, and of these by a thread

// Drawn as float32, some at a time, and rounded to the dtype.
at::Tensor random_matrix(const ExpectedWeight& weight, const ModelConfig& config, uint64_t seed, at::ScalarType dtype) {
  const at::Tensor result = at::empty(weight.shape, dtype), all = result.flatten();
  const at::Tensor drawn = at::empty({std::min(kDrawn, all.numel())}, at::kFloat);
  const RandomStream random(seed, stream_of_name(weight.name));
  float* data = drawn.mutable_data_ptr<float>();
  for (int64_t first = 0; first < all.numel(); first += kDrawn) {
    const int64_t count = std::min(kDrawn, all.numel() - first);
    parallel_ranges(count, kDrawnByOne, [&](int64_t begin, int64_t end) {
      RandomStream part = random;
      part.skip_normals(static_cast<uint32_t>(first + begin));
      for (int64_t i = begin; i < end; ++i) data[i] = static_cast<float>(config.initializer_range * part.normal());
    });
    all.narrow(0, first, count).copy_(drawn.narrow(0, 0, count));
  }
  return result;
}

}  // namespace

// FNV-1a
uint64_t stream_of_name(const std::string& name) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

at::Tensor fresh_weight(const ExpectedWeight& weight, const ModelConfig& config, uint64_t seed, at::ScalarType dtype) {
  switch (weight.kind) {
    case Kind::kNorm:  // Gemma counts its norms from one
      return config.norm == NormKind::kRmsFromOne ? at::zeros(weight.shape, dtype) : at::ones(weight.shape, dtype);
    case Kind::kBias:
      return at::zeros(weight.shape, dtype);
    // Zeros: every value is 0 at first, so that the first advantages are the plain returns and not the noise of a random
    // critic. The gradient of the head does not vanish there, so it learns from the first step on.
    case Kind::kValueHead:
      return at::zeros(weight.shape, dtype);
    case Kind::kMatrix:
    case Kind::kHead:
      return random_matrix(weight, config, seed, dtype);
  }
  throw InternalError("unknown kind of weight");
}

}  // namespace sluice::models
