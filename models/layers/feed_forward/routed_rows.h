#pragma once

#include <cstdint>

#include "models/layers/feed_forward/routing.h"

namespace sluice::models {

/// The rows of a pass or of a step in the order of their experts, and of the tokens within one: T K entries, as sort_by_expert()
/// leaves them. Pointers.
struct RoutedRows {
  const int32_t* places = nullptr;  // [T K], in [T,K]
  const int32_t* first = nullptr;   // [E + 1]: entries of expert e are [first[e], first[e + 1])
  const float* weights = nullptr;   // [T,K]: what the expert counts for the token
  int64_t per_token = 1;            // K

  int64_t begin_of(int64_t expert) const { return first[expert]; }
  int64_t end_of(int64_t expert) const { return first[expert + 1]; }

  ExpertRows of(int64_t expert) const { return entries(begin_of(expert), end_of(expert) - begin_of(expert)); }
  ExpertRows entries(int64_t begin, int64_t count) const {
    return {.places = places + begin, .count = count, .per_token = per_token, .weights = weights};
  }
};

}  // namespace sluice::models
