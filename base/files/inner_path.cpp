#include "base/files/inner_path.h"

#include <algorithm>

#include "base/text/strings.h"

namespace sluice {
namespace {

constexpr size_t kLongestPart = 240;  // file systems take 255 bytes; endings such as ".tmp" come after it

bool has_control_character(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7F; });
}

}  // namespace

std::string fault_of_inner_path(std::string_view path) {
  if (path.empty()) return "it is empty";
  if (has_control_character(path)) return "it holds a control character";
  if (!is_utf8(path)) return "it is not UTF-8";
  if (path.front() == '/') return "it is absolute";
  for (const std::string& part : split(path, '/')) {
    if (part.empty()) return "it has an empty part";
    if (part == "." || part == "..") return "it has the part " + sluice::quoted(part);
    if (part.size() > kLongestPart) return "a part of it is longer than " + std::to_string(kLongestPart) + " bytes";
  }
  return {};
}

}  // namespace sluice
