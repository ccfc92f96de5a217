#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/gradient_cut.h"
#include "comm/transfers.h"
#include "engine/contract/world/gradient_group.h"

namespace sluice::comm {

/// Adds gradients over the ranks, one at a time. In each round a rank sends its parts of each owner's piece, adds the parts of
/// all ranks of its own piece in the order of the tree, and sends the sum to all, if all are to have it. While one round is
/// added, the parts of the next ones are on their way.
///
/// The bits depend on the slots alone: each float is added once, by its owner, as the tree says. A rank with one part sends as
/// much as in an all-reduce in a ring, straight out of the gradient and into it; only parts of others for a rank's own piece are
/// staged.
///
/// Uses `transfers`, which it does not own. Belongs to one thread. Throws what Transfers throws; then the gradient is half done.
class GradientSum {
 public:
  static constexpr int kBatches = 2 * GradientCut::kRounds;  // of the transfers

  GradientSum(const GradientCut& cut, Transfers& transfers);

  /// As the GradientGroup has them; each returns when it is done.
  void all_reduce(std::span<float* const> parts, int64_t count) { run(parts, count, Result::kWhole, nullptr); }
  void reduce_scatter(std::span<float* const> parts, int64_t count, const engine::GradientGroup::Added& added) {
    run(parts, count, Result::kOwned, added);
  }

 private:
  enum class Result { kWhole, kOwned };  // of the sum, on each rank

  void run(std::span<float* const> parts, int64_t count, Result result, const engine::GradientGroup::Added& added);
  int incoming(int64_t round) const { return static_cast<int>(round % GradientCut::kRounds); }
  int others(int64_t round) const { return GradientCut::kRounds + incoming(round); }
  float* staged(int64_t round, int part) const;
  std::vector<float*> values(int64_t round, FloatRange piece) const;

  void exchange_parts(int64_t round);
  void add(int64_t round, const engine::GradientGroup::Added& added);
  void add_block(std::vector<float*>& values, float* sum, int64_t count);
  void add_stretch(const std::vector<float*>& values, int64_t begin, int64_t count, float* sum);
  void finish(int64_t round);
  bool holds_sum(size_t part, int owner) const;

  const GradientCut& cut_;
  Transfers& transfers_;
  std::unique_ptr<float[]> staging_;
  std::vector<float> partial_;  // sums of a stretch, one for each part
  std::vector<float*> parts_;   // of the sum that runs
  int64_t count_ = 0;           // likewise
  Result result_ = Result::kWhole;
};

}  // namespace sluice::comm
