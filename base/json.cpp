#include "base/json.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"

namespace sluice {
namespace {

constexpr int kDeepest = 512;  // nlohmann destroys values recursively

SourceSpan span_at(std::string_view text, const std::string& name, size_t byte) {
  auto source = std::make_shared<SourceText>(SourceText{name, std::string(text)});
  const std::string_view before = text.substr(0, std::min(byte == 0 ? 0 : byte - 1, text.size()));
  const auto line = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
  const size_t start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  const std::string_view passed = before.substr(start);
  const auto code_points =
      std::count_if(passed.begin(), passed.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
  return {source, line, static_cast<int>(code_points) + 1, 1};
}

}  // namespace

std::string reason_of_json_error(const std::string& what) {
  if (what.find("invalid literal") != std::string::npos) return "this is not a JSON value";
  const size_t string = what.find("invalid string: ");
  if (string != std::string::npos) return what.substr(string, what.find("; last read") - string);
  const size_t unexpected = what.find("unexpected ");
  return unexpected == std::string::npos ? "this is not JSON" : what.substr(unexpected);
}

Json parse_json(std::string_view text, const std::string& name) {
  bool too_deep = false;
  const auto limit_depth = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > kDeepest) too_deep = true;
    return depth <= kDeepest;
  };
  try {
    Json value = Json::parse(text, limit_depth);
    if (too_deep) throw UserError(name + " nests deeper than " + std::to_string(kDeepest) + " levels");
    return value;
  } catch (const Json::parse_error& error) {
    throw UserError(Problem{.where = span_at(text, name, error.byte),
                            .message = "invalid JSON",
                            .caret = reason_of_json_error(error.what()),
                            .notes = {},
                            .help = {}});
  } catch (const Json::out_of_range&) {  // 1e999; the library does not say where
    throw UserError(name + " holds a number that is too large for a double");
  }
}

Json read_json(const std::filesystem::path& path) { return parse_json(read_file(path), path.string()); }

}  // namespace sluice
