#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/contract/columns/column.h"

namespace sluice::engine {

/// How the entries of a micro-batch belong together: G groups of S samples of T tokens, A of which are actions. All ragged, no
/// padding. A plain value; offsets start with 0 and end with the total.
struct Layout {
  std::vector<int64_t> group_offsets{0};   // [G+1] into samples
  std::vector<int64_t> token_offsets{0};   // [S+1] into tokens
  std::vector<int64_t> action_offsets{0};  // [S+1] into actions
  std::vector<int64_t> action_tokens;      // [A] the token that each action is, ascending; never the first token of a sample

  size_t groups() const { return group_offsets.size() - 1; }
  size_t samples() const { return token_offsets.size() - 1; }
  size_t tokens() const { return static_cast<size_t>(token_offsets.back()); }
  size_t actions() const { return action_tokens.size(); }
  size_t count(Extent extent) const;

  /// Appends a sample to the last group: `tokens` tokens of which the last `actions` are actions.
  void add_sample(int64_t tokens, int64_t actions);

  /// Likewise, with the tokens of the sample that are actions: ascending, from 1.
  void add_sample(int64_t tokens, std::span<const int64_t> actions);

  /// Ends the group of the samples added since the last call (may be none).
  void end_group();

  /// Appends all of `other`.
  void append(const Layout& other);

  /// The groups for which `keep` [G] is not 0, in their order.
  Layout selected(std::span<const uint8_t> keep) const;

  /// Where the entries of those groups are in a column of this extent, in order.
  std::vector<Range> entries_of(std::span<const uint8_t> keep, Extent extent) const;

  std::vector<Range> samples_by_group() const;
  std::vector<Range> tokens_by_sample() const;
  std::vector<Range> actions_by_sample() const;
};

}  // namespace sluice::engine
