#include "text/jinja/text_parts.h"

#include <algorithm>

#include "text/jinja/parameters.h"
#include "text/jinja/unicode.h"

namespace sluice::text::jinja {
namespace {

bool is_line_break(char32_t c) {
  return (c >= 0xA && c <= 0xD) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

}  // namespace

std::string stripped(Sandbox& sandbox, std::string_view text, const Value& characters, bool left, bool right) {
  if (characters.is_missing() || characters.is_none()) {
    sandbox.work(text.size());
    return std::string(unicode::strip(text, left, right));
  }
  const std::string_view set = string_of(characters, "strip");
  sandbox.expect(set.size() * 4);
  sandbox.spend(1 + text.size() * (1 + set.size()) / 32);
  return std::string(unicode::strip(text, unicode::decode(set), left, right));
}

std::string replaced(Sandbox& sandbox, std::string_view text, std::string_view old, std::string_view fresh, int64_t limit) {
  sandbox.work(text.size());
  std::string out;
  if (old.empty()) {  // before every character and at the end
    for (size_t i = 0; limit != 0; --limit) {
      sandbox.expect(out.size() + fresh.size());
      out += fresh;
      if (i >= text.size()) return out;
      const size_t begin = i;
      unicode::next(text, i);
      out += text.substr(begin, i - begin);
      if (limit == 1) return out += text.substr(i);
    }
    return std::string(text);
  }
  size_t begin = 0;
  for (size_t at = text.find(old); at != std::string_view::npos && limit != 0; at = text.find(old, begin), --limit) {
    sandbox.expect(out.size() + fresh.size() + text.size());
    out += text.substr(begin, at - begin);
    out += fresh;
    begin = at + old.size();
  }
  return out += text.substr(begin);
}

std::vector<std::string_view> split_words(Sandbox& sandbox, std::string_view text, int64_t limit, bool from_end) {
  std::vector<std::string_view> parts;
  text = unicode::strip(text, !from_end, from_end);
  while (!text.empty()) {
    sandbox.spend();
    if (limit-- == 0) {
      // What is left keeps its blanks at the far end only.
      parts.push_back(unicode::strip(text, !from_end, from_end));
      break;
    }
    size_t cut = from_end ? text.size() : 0;
    while (from_end ? cut > 0 : cut < text.size()) {
      size_t next = cut;
      const char32_t c = from_end ? unicode::previous(text, next) : unicode::next(text, next);
      if (unicode::is_space(c)) break;
      cut = next;
    }
    parts.push_back(from_end ? text.substr(cut) : text.substr(0, cut));
    text = unicode::strip(from_end ? text.substr(0, cut) : text.substr(cut), !from_end, from_end);
  }
  if (from_end) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> split_text(Sandbox& sandbox, std::string_view text, std::string_view separator, int64_t limit,
                                         bool from_end) {
  std::vector<std::string_view> parts;
  while (limit-- != 0) {
    sandbox.spend();
    const size_t at = from_end ? text.rfind(separator) : text.find(separator);
    if (at == std::string_view::npos) break;
    parts.push_back(from_end ? text.substr(at + separator.size()) : text.substr(0, at));
    text = from_end ? text.substr(0, at) : text.substr(at + separator.size());
  }
  parts.push_back(text);
  if (from_end) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> split_lines(Sandbox& sandbox, std::string_view text, bool keep_ends) {
  sandbox.work(text.size());
  std::vector<std::string_view> lines;
  size_t begin = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t end = i;
    const char32_t c = unicode::next(text, i);
    if (!is_line_break(c)) continue;
    if (c == '\r' && i < text.size() && text[i] == '\n') ++i;
    sandbox.spend();
    lines.push_back(text.substr(begin, (keep_ends ? i : end) - begin));
    begin = i;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

}  // namespace sluice::text::jinja
