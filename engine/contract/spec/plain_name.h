#pragma once

#include <algorithm>
#include <string_view>

namespace sluice::engine {

/// Letters, digits, '_' and '-', as a bare key of TOML has: names of nodes and models appear in metrics, file names and graphs,
/// those of parameters in front of every value.
inline bool is_plain_name(std::string_view name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return !name.empty() && std::ranges::all_of(name, is_plain);
}

}  // namespace sluice::engine
