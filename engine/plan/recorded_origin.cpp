#include "engine/plan/recorded_origin.h"

#include <charconv>
#include <vector>

#include "base/text/strings.h"

namespace sluice::engine {
namespace {

// Of a value of an effective pipeline; nothing: no file has it.
std::optional<std::string> recorded_file(const SourceSpan& where) {
  const std::vector<std::string> lines = split(where.source->text, '\n');
  const auto number = static_cast<size_t>(where.line);
  if (number == 0 || number > lines.size()) return std::nullopt;
  const std::string origin = recorded_origin(lines[number - 1]);
  const auto place = place_of_origin(origin.substr(0, origin.find("; ")));  // what is written within it is of other layers
  return place ? std::optional(place->file) : std::nullopt;
}

}  // namespace

std::optional<OriginPlace> place_of_origin(const std::string& origin) {
  const size_t colon = origin.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  OriginPlace place{.file = origin.substr(0, colon)};
  const char* end = origin.data() + origin.size();
  const auto [stop, fault] = std::from_chars(origin.data() + colon + 1, end, place.line);
  return fault == std::errc() && stop == end && place.line > 0 ? std::optional(place) : std::nullopt;
}

std::string recorded_origin(const std::string& line) {
  constexpr std::string_view kComment = "  # ";
  const size_t comment = line.rfind(kComment);
  return comment == std::string::npos ? std::string() : line.substr(comment + kComment.size());
}

bool were_written_together(const SourceSpan& one, const SourceSpan& other) {
  if (one.source != other.source) return false;
  if (one.source == nullptr || !one.source->text.starts_with(kConfigHeading)) return true;
  const auto file = recorded_file(one);
  return file && file == recorded_file(other);
}

}  // namespace sluice::engine
