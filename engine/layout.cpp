#include "engine/layout.h"

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
  for (size_t i = 1; i < offsets.size(); ++i) ranges.push_back({static_cast<size_t>(offsets[i - 1]), static_cast<size_t>(offsets[i])});
  return ranges;
}

}  // namespace

size_t Layout::count(Extent extent) const {
  switch (extent) {
    case Extent::kToken: return tokens();
    case Extent::kAction: return actions();
    case Extent::kSample: return samples();
    case Extent::kGroup: return groups();
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

void Layout::end_group() { group_offsets.push_back(static_cast<int64_t>(samples())); }

void Layout::append(const Layout& other) {
  const int64_t base = token_offsets.back();
  append_offsets(group_offsets, other.group_offsets);
  append_offsets(token_offsets, other.token_offsets);
  append_offsets(action_offsets, other.action_offsets);
  for (const int64_t token : other.action_tokens) action_tokens.push_back(base + token);
}

std::vector<Range> Layout::samples_by_group() const { return ranges_of(group_offsets); }
std::vector<Range> Layout::tokens_by_sample() const { return ranges_of(token_offsets); }
std::vector<Range> Layout::actions_by_sample() const { return ranges_of(action_offsets); }

}  // namespace sluice::engine
