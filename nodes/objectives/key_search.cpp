#include "nodes/objectives/key_search.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace sluice::nodes {

namespace {

// A look tells keys apart by the bits from its shift up to that of the one before.
constexpr std::array<int, kSearchLooks + 1> kShifts{32, 21, 10, 0};

int shift_of(int look) { return kShifts[static_cast<size_t>(look) + 1]; }
size_t bins_of(int look) { return size_t{1} << (kShifts[static_cast<size_t>(look)] - shift_of(look)); }

double value_of(uint32_t key) { return std::bit_cast<float>(key); }

// The sum of `count` values whose keys exceed `first` by `above` together. Keys of a bin have one exponent, so that their values
// grow evenly.
double sum_of_bin(uint32_t first, double count, double above) {
  return count * value_of(first) + (above == 0 ? 0 : above * (value_of(first + 1) - value_of(first)));
}

}  // namespace

KeysBelow search_behind(std::span<const double> found, size_t others) {
  if (found.size() <= others) return {};
  SLUICE_CHECK(found.size() == others + 3, "what was found is no search");
  return {.first = found[others], .count = found[others + 1], .sum = found[others + 2]};
}

std::optional<uint32_t> key_found(std::span<const double> found, size_t others) {
  SLUICE_CHECK(found.size() > others, "no key was searched for");
  const KeysBelow search = search_behind(found, others);
  if (search.first == KeysBelow::kNone) return {};
  return static_cast<uint32_t>(search.first);
}

std::vector<double> with_search(std::span<const double> found, size_t others, const KeysBelow& search) {
  std::vector<double> all(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(others));
  all.insert(all.end(), {search.first, search.count, search.sum});
  return all;
}

// [0, bins): how many keys are in the bin; [bins, 2 bins): by how much they exceed its first one, together.
void count_keys(int look, const KeysBelow& before, std::span<const uint32_t> keys, std::vector<int64_t>& counts) {
  if (before.first == KeysBelow::kNone) return;
  const int shift = shift_of(look);
  const size_t bins = bins_of(look);
  const auto above = [&](uint32_t key) { return static_cast<uint64_t>(key) >> kShifts[static_cast<size_t>(look)]; };
  const uint64_t left = above(static_cast<uint32_t>(before.first));
  counts.resize(std::max(counts.size(), 2 * bins));
  for (const uint32_t key : keys) {
    if (above(key) != left) continue;
    const size_t bin = (key >> shift) & (bins - 1);
    ++counts[bin];
    counts[bins + bin] += key & ((uint32_t{1} << shift) - 1);
  }
}

KeysBelow narrowed(int look, const KeysBelow& before, std::span<const int64_t> counts, const KeyReached& reached) {
  const size_t bins = bins_of(look);
  KeysBelow below = before;
  for (size_t bin = 0; bin < bins && !counts.empty(); ++bin) {
    if (counts[bin] == 0) continue;
    const uint32_t first = static_cast<uint32_t>(before.first) | static_cast<uint32_t>(bin << shift_of(look));
    const auto count = static_cast<double>(counts[bin]), above = static_cast<double>(counts[bins + bin]);
    const double count_with = below.count + count, sum_with = below.sum + sum_of_bin(first, count, above);
    if (reached(count_with, sum_with)) return {.first = static_cast<double>(first), .count = below.count, .sum = below.sum};
    below.count = count_with, below.sum = sum_with;
  }
  below.first = KeysBelow::kNone;
  return below;
}

}  // namespace sluice::nodes
