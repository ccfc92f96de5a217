#include "text/tokenizer/fallback_bytes.h"

#include <algorithm>
#include <cstdio>

namespace sluice::text {
namespace {

std::string fallback_token(int byte) {
  char text[8];
  std::snprintf(text, sizeof text, "<0x%02X>", byte);
  return text;
}

}  // namespace

FallbackBytes::FallbackBytes(const std::unordered_map<std::string, int32_t>& vocabulary) : FallbackBytes() {
  for (int byte = 0; byte < 256; ++byte) {
    const auto token = vocabulary.find(fallback_token(byte));
    if (token != vocabulary.end()) ids_[byte] = token->second;
  }
}

bool FallbackBytes::append(std::string_view text, std::vector<int32_t>& ids) const {
  if (!std::ranges::all_of(text, [this](char byte) { return has(static_cast<unsigned char>(byte)); })) return false;
  for (const char byte : text) ids.push_back(ids_[static_cast<unsigned char>(byte)]);
  return true;
}

}  // namespace sluice::text
