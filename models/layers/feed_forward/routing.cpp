#include "models/layers/feed_forward/routing.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "models/kernels/parallel.h"

namespace sluice::models {
namespace {

constexpr int64_t kRoutedNumbers = 1 << 12, kMovedNumbers = 1 << 14;  // some 10 us of work

int64_t grain_of(int64_t numbers, int64_t size) { return std::max<int64_t>(1, numbers / std::max<int64_t>(1, size)); }

// The K largest of a row, by insertion: K is small, and most logits are below all of them.
void choose(const float* logits, int64_t count, int64_t wanted, int32_t* chosen) {
  int64_t have = 0;
  for (int64_t expert = 0; expert < count; ++expert) {
    const auto larger = [&](int64_t place) { return logits[expert] > logits[chosen[place]]; };
    if (have == wanted && !larger(have - 1)) continue;
    int64_t place = have < wanted ? have++ : have - 1;
    for (; place > 0 && larger(place - 1); --place) chosen[place] = chosen[place - 1];
    chosen[place] = static_cast<int32_t>(expert);
  }
  std::sort(chosen, chosen + wanted);
}

// In float32, whatever the precision: as all families have it.
void soften(float* logits, int64_t count) {
  float top = logits[0];
  for (int64_t i = 1; i < count; ++i) top = std::max(top, logits[i]);
  float sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += logits[i] = std::exp(logits[i] - top);
  for (int64_t i = 0; i < count; ++i) logits[i] /= sum;
}

void weigh_token(const ExpertsConfig& experts, float* logits, const int32_t* chosen, float* weights) {
  soften(logits, experts.count);
  float sum = 0;
  for (int64_t k = 0; k < experts.per_token; ++k) sum += weights[k] = logits[chosen[k]];
  if (!experts.normalised) return;
  for (int64_t k = 0; k < experts.per_token; ++k) weights[k] /= sum;
}

// With the mean of `of_weights` under the weights m: where they sum to one, the gradient of the softmax of the chosen logits
// alone; else that of the softmax over all, of which the others have no gradient of their own. Shares have one of their own.
void route_token_backward(const ExpertsConfig& experts, const float* shares, const int32_t* chosen, const float* weights,
                          const float* of_weights, const float* of_shares, float* grad) {
  float mean = 0, mean_of_shares = 0;
  for (int64_t k = 0; k < experts.per_token; ++k) mean += weights[k] * of_weights[k];
  for (int64_t expert = 0; of_shares != nullptr && expert < experts.count; ++expert)
    mean_of_shares += shares[expert] * of_shares[expert];
  for (int64_t expert = 0; expert < experts.count; ++expert) {
    const float share = shares[expert];
    grad[expert] = experts.normalised ? 0 : -share * mean;
    if (of_shares != nullptr) grad[expert] += share * (of_shares[expert] - mean_of_shares);
  }
  for (int64_t k = 0; k < experts.per_token; ++k)
    grad[chosen[k]] = weights[k] * (experts.normalised ? of_weights[k] - mean : of_weights[k]) + grad[chosen[k]];
}

template <class Weight>
void add_scaled(const ExpertRows& rows, const float* y, int64_t size, float* out, int64_t stride, const Weight& weight) {
  parallel_ranges(rows.count, grain_of(kMovedNumbers, size), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      float* const to = out + rows.token(row) * stride;
      const float* const from = y + row * size;
      const float by = weight(row);
      for (int64_t i = 0; i < size; ++i) to[i] += by * from[i];
    }
  });
}

}  // namespace

void route(const ExpertsConfig& experts, int64_t tokens, const RouterRows& rows, const LayerRoutes& given) {
  const int64_t count = experts.count, per_token = experts.per_token;
  parallel_ranges(tokens, grain_of(kRoutedNumbers, count), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      float* const logits = rows.logits + t * count;
      int32_t* const chosen = rows.chosen + t * per_token;
      if (!given.read(t, chosen)) choose(logits, count, per_token, chosen);
      weigh_token(experts, logits, chosen, rows.weights + t * per_token);
    }
  });
}

void route_backward(const ExpertsConfig& experts, int64_t tokens, const RouterRows& rows, const float* of_weights,
                    const float* of_shares, float* grad) {
  const int64_t count = experts.count, per_token = experts.per_token;
  parallel_ranges(tokens, grain_of(kRoutedNumbers, count), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      route_token_backward(experts, rows.logits + t * count, rows.chosen + t * per_token, rows.weights + t * per_token,
                           of_weights + t * per_token, of_shares, grad + t * count);
    }
  });
}

void sigmoid(float* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) x[i] = 1 / (1 + std::exp(-x[i]));
}

void sort_by_expert(const ExpertsConfig& experts, int64_t tokens, const int32_t* chosen, int32_t* places, int32_t* first) {
  const int64_t entries = tokens * experts.per_token;
  std::fill_n(first, experts.count + 1, 0);
  for (int64_t i = 0; i < entries; ++i) ++first[chosen[i] + 1];
  for (int64_t e = 0; e < experts.count; ++e) first[e + 1] += first[e];
  for (int64_t i = 0; i < entries; ++i) places[first[chosen[i]]++] = static_cast<int32_t>(i);
  for (int64_t e = experts.count; e > 0; --e) first[e] = first[e - 1];  // each was moved to its end
  first[0] = 0;
}

void gather(const ExpertRows& rows, Precision precision, const void* x, int64_t size, void* out) {
  const int64_t bytes = size * bytes_of(precision);
  parallel_ranges(rows.count, grain_of(kMovedNumbers, size), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      std::memcpy(static_cast<char*>(out) + row * bytes, static_cast<const char*>(x) + rows.token(row) * bytes,
                  static_cast<size_t>(bytes));
  });
}

void add_weighted(const ExpertRows& rows, const float* y, int64_t size, float* out) { add_weighted(rows, y, size, out, size); }

void add_weighted(const ExpertRows& rows, const float* y, int64_t size, float* out, int64_t stride) {
  add_scaled(rows, y, size, out, stride, [&](int64_t row) { return rows.weight(row); });
}

void add_rows(const ExpertRows& rows, const float* y, int64_t size, float* out) {
  add_scaled(rows, y, size, out, size, [](int64_t) { return 1.0f; });
}

}  // namespace sluice::models
