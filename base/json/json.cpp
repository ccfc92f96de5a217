#include "base/json/json.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/files/file.h"
#include "base/json/json_events.h"
#include "base/text/utf8.h"

namespace sluice {
namespace {

constexpr size_t kDeepest = 512;     // nlohmann destroys values recursively
constexpr size_t kMostKeys = 4'096;  // its ordered objects search for a key from the first to the last

SourceSpan span_at(std::string_view text, const std::string& name, size_t byte, int64_t first_line) {
  const auto first = static_cast<int>(first_line);
  auto source = std::make_shared<SourceText>(SourceText{.name = name, .text = std::string(text), .first_line = first});
  const std::string_view before = text.substr(0, std::min(byte == 0 ? 0 : byte - 1, text.size()));
  const auto line = first + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
  const size_t start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  const std::string_view passed = before.substr(start);
  return {source, line, static_cast<int>(count_code_points(passed)) + 1, 1};
}

// Follows the nesting without building anything. A text that is not JSON it leaves to the parser.
class LimitReader : public JsonEvents {
 public:
  bool too_deep = false, too_wide = false;

  bool start_object(size_t) { return open(); }
  bool start_array(size_t) { return open(); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string&) { return !(too_wide = ++keys_.back() > kMostKeys); }

 private:
  bool open() {
    keys_.push_back(0);
    return !(too_deep = keys_.size() > kDeepest);
  }

  bool close() {
    keys_.pop_back();
    return true;
  }

  std::vector<size_t> keys_;  // of each open object or array
};

// What a text has too much of, if it is JSON at all.
std::optional<std::string> limit_that_is_passed(std::string_view text) {
  size_t openings = 0, colons = 0;
  for (const char c : text) openings += c == '[' || c == '{', colons += c == ':';
  if (openings <= kDeepest && colons <= kMostKeys) return std::nullopt;
  LimitReader reader;
  Json::sax_parse(text, &reader);
  if (reader.too_deep) return "nests deeper than " + std::to_string(kDeepest) + " levels";
  if (reader.too_wide) return "has an object of more than " + std::to_string(kMostKeys) + " keys";
  return std::nullopt;
}

}  // namespace

std::string reason_of_json_error(const std::string& what) {
  if (what.find("invalid literal") != std::string::npos) return "this is not a JSON value";
  const size_t string = what.find("invalid string: ");
  if (string != std::string::npos) return what.substr(string, what.find("; last read") - string);
  const size_t unexpected = what.find("unexpected ");
  return unexpected == std::string::npos ? "this is not JSON" : what.substr(unexpected);
}

Json parse_json(std::string_view text, const std::string& name, int64_t first_line) {
  if (const auto passed = limit_that_is_passed(text)) throw UserError(name + " " + *passed);
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw UserError(Problem{.where = span_at(text, name, error.byte, first_line),
                            .message = "invalid JSON",
                            .caret = reason_of_json_error(error.what()),
                            .notes = {},
                            .help = {}});
  } catch (const Json::out_of_range&) {  // 1e999; the library does not say where
    throw UserError(name + " holds a number that is too large for a double");
  }
}

Json json_or_discarded(std::string_view text) {
  if (limit_that_is_passed(text)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

Json read_json(const std::filesystem::path& path) { return parse_json(read_file(path), path.string()); }

}  // namespace sluice
