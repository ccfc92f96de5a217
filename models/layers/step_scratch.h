#pragma once

#include <cstdint>
#include <vector>

#include "models/config/precision.h"
#include "models/kernels/row_kernels.h"
#include "models/layers/column_share.h"
#include "models/layers/feed_forward/routes.h"
#include "models/memory/grown_buffer.h"

namespace sluice::models {

/// The rows of one step of generation that a part of a layer reads, and where its result goes.
struct StepRows {
  const void* x = nullptr;  // [tokens, H], an operand
  int64_t tokens = 0;
  float* out = nullptr;       // [tokens, H]; does not overlap x
  bool accumulate = false;    // add to what is in `out`
  ColumnShare share = {};     // of the matrices; `out` gets the columns of its place, and the others are left alone
  LayerRoutes routes = {};    // of the rows, which a mixture has to take
  int32_t* chosen = nullptr;  // [tokens,K]: those that it takes; null: nobody asks
};

/// Memory for what a part of a layer computes in between, in places that it numbers from 0: allocates only when a place has to
/// grow, and then forgets what it held.
class StepScratch {
 public:
  float* floats(size_t place, int64_t count) { return at(wide_, place).at_least(count); }

  int32_t* ints(size_t place, int64_t count) { return at(ints_, place).at_least(count); }

  /// Memory for rows that a product reads.
  OperandRows operand(size_t place, Precision precision, int64_t count) {
    if (precision == Precision::kBfloat16) return {.narrow = at(narrow_, place).at_least(count)};
    return {.wide = floats(place, count)};
  }

 private:
  template <class Buffers>
  static typename Buffers::value_type& at(Buffers& buffers, size_t place) {
    if (place >= buffers.size()) buffers.resize(place + 1);
    return buffers[place];
  }

  std::vector<GrownBuffer<int32_t>> ints_;
  std::vector<GrownBuffer<float>> wide_;
  std::vector<GrownBuffer<Bfloat16>> narrow_;
};

}  // namespace sluice::models
