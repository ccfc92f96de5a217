#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sluice::text {

/// The tokens <0x00> to <0xFF>, which spell what a vocabulary of characters lacks. Immutable.
class FallbackBytes {
 public:
  /// None of them.
  FallbackBytes() { ids_.fill(-1); }

  /// Those of them that `vocabulary` has.
  explicit FallbackBytes(const std::unordered_map<std::string, int32_t>& vocabulary);

  bool has(unsigned char byte) const { return ids_[byte] >= 0; }

  /// Appends the ids of all bytes of `text`, or nothing and returns false if one of them has no token.
  bool append(std::string_view text, std::vector<int32_t>& ids) const;

 private:
  std::array<int32_t, 256> ids_;
};

}  // namespace sluice::text
