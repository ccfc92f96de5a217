#pragma once

#include <cstdint>

#include "models/config/config.h"
#include "models/config/precision.h"
#include "models/layers/feed_forward/routes.h"

namespace sluice::models {

// Which tokens go through which expert, and how much each counts: on plain pointers, on the CPU. Training and generation share
// these functions, so both have the same bits. What is said of a token depends on its own row alone, for any number of threads.
// T tokens, E experts, K of them for each token. Nothing here allocates.

/// What a router makes of its logits. Sources: Shazeer et al. 2017, "Outrageously large neural networks", section 2.1; Fedus et
/// al. 2021, "Switch transformers", section 2.1; each family's own softmax (ExpertsConfig::normalised).
struct RouterRows {
  float* logits = nullptr;    // [T,E]; become their softmax
  int32_t* chosen = nullptr;  // [T,K]: the K largest logits, of equal ones the lower expert; in the order of the experts
  float* weights = nullptr;   // [T,K]: what each chosen expert counts
};

/// Fills `chosen` and `weights`. The choice is K distinct experts even where logits are not numbers; where routes are given and
/// not open it is theirs, and the weights are what this router gives to it.
void route(const ExpertsConfig& experts, int64_t tokens, const RouterRows& rows, const LayerRoutes& given = {});

/// The gradient with respect to the logits, grad[T,E], from that with respect to the weights, of_weights[T,K], and, if there is
/// one, that with respect to the softmax, of_shares[E], the same for all of these tokens. The choice has none. `grad` may be the
/// softmax.
void route_backward(const ExpertsConfig& experts, int64_t tokens, const RouterRows& rows, const float* of_weights,
                    const float* of_shares, float* grad);

/// x[count] becomes 1 / (1 + e^-x).
void sigmoid(float* x, int64_t count);

/// Places in chosen[T,K] by expert: places[first[e]..first[e+1]) are those of expert e, in the order of the tokens. `places`
/// has T K numbers, `first` E + 1.
void sort_by_expert(const ExpertsConfig& experts, int64_t tokens, const int32_t* chosen, int32_t* places, int32_t* first);

/// The tokens that go through one expert, in order.
struct ExpertRows {
  const int32_t* places = nullptr;  // [count], in [T,per_token]; null: those from `begin` on, one after the other
  int64_t begin = 0;
  int64_t count = 0;
  int64_t per_token = 1;
  const float* weights = nullptr;  // [T,per_token]: what the expert counts for a token

  int64_t place(int64_t row) const { return places ? places[row] : begin + row; }
  int64_t token(int64_t row) const { return place(row) / per_token; }
  float weight(int64_t row) const { return weights[place(row)]; }

  ExpertRows part(int64_t first, int64_t size) const {
    return {places ? places + first : nullptr, places ? 0 : begin + first, size, per_token, weights};
  }
};

/// out[count,H] = x of the rows' tokens, in the precision of both.
void gather(const ExpertRows& rows, Precision precision, const void* x, int64_t size, void* out);

/// out of each row's token [T,H] += its weight times y[count,H]. The tokens are distinct.
void add_weighted(const ExpertRows& rows, const float* y, int64_t size, float* out);

/// Likewise where rows of `out` are `stride` apart: to some of its columns.
void add_weighted(const ExpertRows& rows, const float* y, int64_t size, float* out, int64_t stride);

/// The same without the weights.
void add_rows(const ExpertRows& rows, const float* y, int64_t size, float* out);

}  // namespace sluice::models
