#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace sluice::nodes {

/// How far the search for a key has come: where the keys begin among which it is, and what all smaller ones are. After the last
/// look `first` is the key itself, or kNone where there is none.
struct KeysBelow {
  static constexpr double kNone = 0x1p32;  // above every key

  double first = 0;
  double count = 0;  // of the keys below `first`
  double sum = 0;    // of their values
};

/// Among the numbers that an objective has found, the state of its search is after `others` of them; a search that has not begun
/// is not there.
KeysBelow search_behind(std::span<const double> found, size_t others);

/// The key that was found; nothing where the condition holds for none. Throws InternalError if no search was made.
std::optional<uint32_t> key_found(std::span<const double> found, size_t others);

std::vector<double> with_search(std::span<const double> found, size_t others, const KeysBelow& search);

/// The search for one key among those of all samples of an optimizer step, wherever they are: the smallest at which a condition
/// on all keys up to it holds. In each of its looks the keys that are left are counted by their next bits, in bins that are the
/// same everywhere, so the sums of all ranks are those of one; after the last look the key is found to the bit. A sort would
/// need all keys in one place.
///
/// A key is 32 bits; its value is the float that has them, so that keys of floats from 0 up are in the order of their values.
constexpr int kSearchLooks = 3;

/// Adds those of `keys` that are still in question to `counts`. `before`: {} in look 0.
void count_keys(int look, const KeysBelow& before, std::span<const uint32_t> keys, std::vector<int64_t>& counts);

/// Whether the key is reached, from number and sum of the values of all keys up to it; false first, then true for all above.
using KeyReached = std::function<bool(double count, double sum)>;

/// Where the search is after look `look`.
KeysBelow narrowed(int look, const KeysBelow& before, std::span<const int64_t> counts, const KeyReached& reached);

/// Keys of floats of either sign in their order; their values are not those of the floats. And the float of such a key.
inline uint32_t ordered_key(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000U;
}
inline float float_of_ordered(uint32_t key) { return std::bit_cast<float>(key >> 31 != 0 ? key & 0x7FFFFFFFU : ~key); }

}  // namespace sluice::nodes
