#include "models/generation/sampler.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "models/generation/kernels_elementwise.h"

namespace sluice::models {
namespace {

constexpr int64_t kRun = 256;  // weights with one partial total: the walk to a draw skips whole runs

void require(bool holds, const char* what, double value) {
  if (!holds) throw UserError(std::string(what) + ", not " + std::to_string(value));
}

// The largest logit's lowest id, or -1 when a logit is not finite.
int64_t likeliest(std::span<const float> logits) {
  int64_t best = 0;
  float bad = 0;  // x * 0 is NaN for an infinity or a NaN
  for (size_t i = 0; i < logits.size(); ++i) {
    bad += logits[i] * 0.0f;
    if (logits[i] > logits[best]) best = static_cast<int64_t>(i);
  }
  return bad == 0.0f ? best : -1;
}

}  // namespace

Sampler::Sampler(const SamplingOptions& options) : options_(options) {
  require(options.temperature >= 0 && std::isfinite(options.temperature), "temperature must be at least 0", options.temperature);
  require(options.top_k >= 0, "top_k must be at least 0", static_cast<double>(options.top_k));
  require(options.top_p > 0 && options.top_p <= 1, "top_p must be above 0 and at most 1", options.top_p);
}

SampledToken Sampler::sample(std::span<const float> logits, RandomStream& stream) {
  const int64_t best = likeliest(logits);
  if (best < 0) throw UserError("logits are not finite", "the model has diverged: look at its loss, lower the learning rate");

  const bool greedy = options_.temperature == 0;
  const double temperature = greedy ? 1.0 : options_.temperature;
  const int64_t size = static_cast<int64_t>(logits.size());
  weights_.resize(logits.size());
  exponentials(logits.data(), size, logits[best], static_cast<float>(1.0 / temperature), weights_.data());
  partial_totals_.clear();
  for (int64_t first = 0; first < size; first += kRun) {
    double run = 0;
    for (int64_t i = first; i < std::min(first + kRun, size); ++i) run += weights_[i];
    partial_totals_.push_back(run);
  }
  double total = 0;
  for (const double run : partial_totals_) total += run;

  const bool whole = options_.top_k == 0 && options_.top_p == 1.0;
  const int64_t id = greedy ? best : whole ? draw(total, stream) : draw_truncated(logits, total, stream);
  return {id, static_cast<float>((double{logits[id]} - logits[best]) / temperature - std::log(total))};
}

int64_t Sampler::draw(double total, RandomStream& stream) const {
  double left = stream.uniform() * total;
  size_t run = 0;
  while (run + 1 < partial_totals_.size() && left >= partial_totals_[run]) left -= partial_totals_[run++];
  const int64_t first = static_cast<int64_t>(run) * kRun;
  const int64_t end = std::min<int64_t>(first + kRun, static_cast<int64_t>(weights_.size()));
  int64_t last_possible = first;  // rounding may leave a little over after the last weight
  for (int64_t i = first; i < end; ++i) {
    if (weights_[i] == 0) continue;
    last_possible = i;
    if (left < weights_[i]) return i;
    left -= weights_[i];
  }
  return last_possible;
}

int64_t Sampler::draw_truncated(std::span<const float> logits, double total, RandomStream& stream) {
  const auto less_likely = [&](int32_t a, int32_t b) { return logits[a] != logits[b] ? logits[a] < logits[b] : a > b; };
  heap_.resize(logits.size());
  for (size_t i = 0; i < heap_.size(); ++i) heap_[i] = static_cast<int32_t>(i);
  std::make_heap(heap_.begin(), heap_.end(), less_likely);

  // Takes tokens off the heap, likeliest first, until `count` are kept or they weigh `mass`.
  kept_.clear();
  double kept = 0;
  const auto keep = [&](size_t count, double mass) {
    while (kept_.size() < count && (kept_.empty() || kept < mass)) {
      std::pop_heap(heap_.begin(), heap_.end() - static_cast<int64_t>(kept_.size()), less_likely);
      kept_.push_back(heap_[heap_.size() - 1 - kept_.size()]);
      kept += weights_[kept_.back()];
    }
  };
  if (options_.top_k == 0) {
    keep(heap_.size(), options_.top_p * total);
  } else {
    keep(std::min<size_t>(options_.top_k, heap_.size()), INFINITY);
    const double target = options_.top_p * kept;  // top_p is a share of what top_k left
    double nucleus = weights_[kept_[0]];
    size_t count = 1;
    while (count < kept_.size() && nucleus < target) nucleus += weights_[kept_[count++]];
    kept_.resize(count);
    kept = nucleus;
  }

  double left = stream.uniform() * kept;
  for (const int32_t id : kept_) {
    if (left < weights_[id]) return id;
    left -= weights_[id];
  }
  return kept_[0];  // only rounding comes here
}

}  // namespace sluice::models
