#include "engine/contract/columns/layout.h"

#include "base/error.h"

namespace sluice::engine {
namespace {

void append_offsets(std::vector<int64_t>& offsets, const std::vector<int64_t>& more) {
  const int64_t base = offsets.back();
  for (size_t i = 1; i < more.size(); ++i) offsets.push_back(base + more[i]);
}

std::vector<Range> ranges_of(const std::vector<int64_t>& offsets) {
  std::vector<Range> ranges;
  ranges.reserve(offsets.size() - 1);
  for (size_t i = 1; i < offsets.size(); ++i)
    ranges.push_back({static_cast<size_t>(offsets[i - 1]), static_cast<size_t>(offsets[i])});
  return ranges;
}

}  // namespace

size_t Layout::count(Extent extent) const {
  switch (extent) {
    case Extent::kToken:
      return tokens();
    case Extent::kAction:
      return actions();
    case Extent::kSample:
      return samples();
    case Extent::kGroup:
      return groups();
  }
  return 0;
}

void Layout::add_sample(int64_t tokens, int64_t actions) {
  SLUICE_CHECK(actions >= 0 && tokens >= 0 && (actions == 0 || actions < tokens), "a sample's first token cannot be an action");
  const int64_t end = token_offsets.back() + tokens;
  for (int64_t token = end - actions; token < end; ++token) action_tokens.push_back(token);
  token_offsets.push_back(end);
  action_offsets.push_back(static_cast<int64_t>(action_tokens.size()));
}

void Layout::add_sample(int64_t tokens, std::span<const int64_t> actions) {
  const int64_t begin = token_offsets.back();
  for (size_t i = 0; i < actions.size(); ++i) {
    SLUICE_CHECK(actions[i] > (i == 0 ? 0 : actions[i - 1]) && actions[i] < tokens,
                 "actions of a sample ascend from its second token");
    action_tokens.push_back(begin + actions[i]);
  }
  token_offsets.push_back(begin + tokens);
  action_offsets.push_back(static_cast<int64_t>(action_tokens.size()));
}

void Layout::end_group() { group_offsets.push_back(static_cast<int64_t>(samples())); }

void Layout::append(const Layout& other) {
  const int64_t base = token_offsets.back();
  append_offsets(group_offsets, other.group_offsets);
  append_offsets(token_offsets, other.token_offsets);
  append_offsets(action_offsets, other.action_offsets);
  for (const int64_t token : other.action_tokens) action_tokens.push_back(base + token);
}

Layout Layout::selected(std::span<const uint8_t> keep) const {
  Layout kept;
  for (size_t g = 0; g < groups(); ++g) {
    if (keep[g] == 0) continue;
    for (int64_t s = group_offsets[g]; s < group_offsets[g + 1]; ++s) {
      const auto sample = static_cast<size_t>(s);
      const int64_t shift = kept.token_offsets.back() - token_offsets[sample];
      for (int64_t a = action_offsets[sample]; a < action_offsets[sample + 1]; ++a) {
        kept.action_tokens.push_back(action_tokens[static_cast<size_t>(a)] + shift);
      }
      kept.token_offsets.push_back(token_offsets[sample + 1] + shift);
      kept.action_offsets.push_back(static_cast<int64_t>(kept.action_tokens.size()));
    }
    kept.end_group();
  }
  return kept;
}

std::vector<Range> Layout::entries_of(std::span<const uint8_t> keep, Extent extent) const {
  std::vector<Range> ranges;
  for (size_t g = 0; g < groups(); ++g) {
    if (keep[g] == 0) continue;
    const auto first = static_cast<size_t>(group_offsets[g]), last = static_cast<size_t>(group_offsets[g + 1]);
    switch (extent) {
      case Extent::kGroup:
        ranges.push_back({g, g + 1});
        break;
      case Extent::kSample:
        ranges.push_back({first, last});
        break;
      case Extent::kToken:
        ranges.push_back({static_cast<size_t>(token_offsets[first]), static_cast<size_t>(token_offsets[last])});
        break;
      case Extent::kAction:
        ranges.push_back({static_cast<size_t>(action_offsets[first]), static_cast<size_t>(action_offsets[last])});
        break;
    }
  }
  return ranges;
}

std::vector<Range> Layout::samples_by_group() const { return ranges_of(group_offsets); }
std::vector<Range> Layout::tokens_by_sample() const { return ranges_of(token_offsets); }
std::vector<Range> Layout::actions_by_sample() const { return ranges_of(action_offsets); }

}  // namespace sluice::engine
