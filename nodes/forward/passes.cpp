#include "nodes/forward/passes.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "base/error.h"

namespace sluice::nodes {
namespace {

// Each unit of `order` goes into the first pass that has room for it.
std::vector<std::vector<size_t>> first_fit(std::span<const size_t> order, std::span<const int64_t> tokens, int64_t limit) {
  std::vector<std::vector<size_t>> passes;
  std::vector<int64_t> room;  // of each pass
  for (const size_t unit : order) {
    const auto fits = std::ranges::find_if(room, [&](int64_t left) { return left >= tokens[unit]; });
    const auto pass = static_cast<size_t>(fits - room.begin());
    if (fits == room.end()) {
      passes.emplace_back();
      room.push_back(limit);
    }
    passes[pass].push_back(unit);
    room[pass] -= tokens[unit];
  }
  return passes;
}

}  // namespace

std::vector<std::vector<size_t>> cut_into_passes(std::span<const int64_t> tokens, int64_t limit) {
  for (const int64_t unit : tokens) {
    SLUICE_CHECK(unit <= limit, std::to_string(unit) + " tokens do not fit a pass of " + std::to_string(limit));
  }
  std::vector<size_t> order(tokens.size());
  std::iota(order.begin(), order.end(), size_t{0});
  auto in_order = first_fit(order, tokens, limit);
  if (in_order.size() < 3) return in_order;  // where two are enough in order, one is not enough for all
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return tokens[a] > tokens[b]; });
  auto by_size = first_fit(order, tokens, limit);
  if (by_size.size() >= in_order.size()) return in_order;
  for (std::vector<size_t>& pass : by_size) std::ranges::sort(pass);
  return by_size;
}

std::vector<std::vector<size_t>> passes_of(const engine::Layout& layout, std::span<const size_t> chosen, int64_t limit) {
  std::vector<int64_t> tokens;
  for (const size_t sample : chosen) tokens.push_back(layout.token_offsets[sample + 1] - layout.token_offsets[sample]);
  auto passes = cut_into_passes(tokens, limit);
  for (std::vector<size_t>& pass : passes) {
    for (size_t& place : pass) place = chosen[place];
  }
  return passes;
}

}  // namespace sluice::nodes
