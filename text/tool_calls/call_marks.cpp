#include "text/tool_calls/call_marks.h"

#include <algorithm>
#include <cctype>

#include "base/text/strings.h"

namespace sluice::text::call_marks {
namespace {

constexpr size_t kNowhere = std::string_view::npos;

bool is_hole(char c) { return c == kId || c == kName || c == kKey; }

bool is_id_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' || c == ':';
}

size_t skip_blanks(std::string_view text, size_t at) {
  while (at < text.size() && is_blank(text[at])) ++at;
  return at;
}

// Whether models may put blanks between the two.
bool is_loose_between(char before, char after) { return before == '>' || before == ']' || after == '<' || after == '['; }

struct Match {
  size_t end = kNowhere;
  std::string_view id = {};
  size_t matched = 0;  // bytes of the mark, where the text has ended
};

// `core` has no blanks around it.
Match match_core(std::string_view core, std::string_view text, size_t at, const Holes& holes) {
  Match match;
  for (size_t i = 0; i < core.size(); ++i) {
    const bool has_blanks = is_blank(core[i]);
    if (has_blanks) i = skip_blanks(core, i);
    if (has_blanks || (i > 0 && is_loose_between(core[i - 1], core[i]))) at = skip_blanks(text, at);
    match.matched = i;
    if (core[i] == kId) {
      const size_t begin = at;
      while (at < text.size() && is_id_character(text[at])) ++at;
      match.id = text.substr(std::min(begin, text.size()), at - begin);
      if (match.id.empty()) return match;
    } else if (is_hole(core[i])) {
      const std::string_view filled = core[i] == kName ? holes.name : holes.key;
      if (!text.substr(std::min(at, text.size())).starts_with(filled)) return {};
      at += filled.size();
    } else if (at >= text.size()) {
      return match;
    } else if (text[at] != core[i]) {
      return {};
    } else {
      ++at;
    }
  }
  match.end = at;
  return match;
}

struct Parts {
  std::string_view before, core, behind;  // blanks, the mark, blanks
};

Parts parts_of(std::string_view mark) {
  const std::string_view core = trim(mark);
  if (core.empty()) return {.before = {}, .core = mark, .behind = {}};
  const auto begin = static_cast<size_t>(core.data() - mark.data());
  return {.before = mark.substr(0, begin), .core = core, .behind = mark.substr(begin + core.size())};
}

// What a search can look for as it is: up to the first blank, hole or bracket that blanks may stand behind.
std::string_view head_of(std::string_view core) {
  size_t end = 1;
  while (end < core.size() && !is_blank(core[end]) && !is_hole(core[end]) && !is_loose_between(core[end - 1], core[end])) ++end;
  return core.substr(0, end);
}

size_t widen_to_begin(std::string_view blanks, std::string_view text, size_t from, size_t begin) {
  while (!blanks.empty() && begin > from && text[begin - 1] == blanks.back()) {
    blanks.remove_suffix(1);
    --begin;
  }
  return begin;
}

size_t widen_to_end(std::string_view blanks, std::string_view text, size_t end) {
  while (!blanks.empty() && end < text.size() && text[end] == blanks.front()) {
    blanks.remove_prefix(1);
    ++end;
  }
  return end;
}

// Calls `accept` with each place where the head stands, until it gives a place.
template <class Accept>
Place first_place(std::string_view mark, std::string_view text, size_t from, const Accept& accept) {
  const Parts parts = parts_of(mark);
  if (parts.core.empty() || is_hole(parts.core.front())) return {};
  const std::string_view head = head_of(parts.core);
  for (size_t at = text.find(head, from); at != kNowhere; at = text.find(head, at + 1)) {
    if (const Place place = accept(parts, at); place.is_there()) return place;
  }
  return {};
}

}  // namespace

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

Place mark_at(std::string_view mark, std::string_view text, size_t at, const Holes& holes) {
  const Parts parts = parts_of(mark);
  if (mark.empty()) return {.begin = at, .end = at};
  if (trim(mark).empty()) {
    const size_t end = widen_to_end(mark, text, at);
    return end == at ? Place{} : Place{.begin = at, .end = end};
  }
  const size_t begin = widen_to_end(parts.before, text, at);
  const Match match = match_core(parts.core, text, begin, holes);
  if (match.end == kNowhere) return {};
  return {.begin = at, .end = widen_to_end(parts.behind, text, match.end), .id = match.id};
}

Place find_mark(std::string_view mark, std::string_view text, size_t from, const Holes& holes) {
  if (!mark.empty() && trim(mark).empty()) {
    const size_t begin = text.find(mark, from);
    return begin == kNowhere ? Place{} : Place{.begin = begin, .end = begin + mark.size()};
  }
  return first_place(mark, text, from, [&](const Parts& parts, size_t at) {
    const Match match = match_core(parts.core, text, at, holes);
    if (match.end == kNowhere) return Place{};
    return Place{.begin = widen_to_begin(parts.before, text, from, at),
                 .end = widen_to_end(parts.behind, text, match.end),
                 .id = match.id};
  });
}

Place find_cut_mark(std::string_view mark, std::string_view text, size_t from, const Holes& holes) {
  return first_place(mark, text, from, [&](const Parts& parts, size_t at) {
    const Match match = match_core(parts.core, text, at, holes);
    const size_t closed = parts.core.find_first_of(">])}");
    if (match.end != kNowhere || closed == kNowhere || match.matched <= closed) return Place{};
    return Place{.begin = widen_to_begin(parts.before, text, from, at), .end = text.size()};
  });
}

bool is_distinct(std::string_view mark) {
  return std::ranges::any_of(mark, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return std::isalpha(byte) != 0 || byte >= 0x80;
  });
}

std::string_view without_open_bracket(std::string_view text) {
  const size_t open = text.find_last_of("<[");
  if (open == kNowhere) return text;
  return text.find(text[open] == '<' ? '>' : ']', open) == kNowhere ? text.substr(0, open) : text;
}

std::string shown(std::string_view mark) {
  std::string line;
  for (const char c : trim(mark)) {
    if (is_hole(c)) continue;
    if (!is_blank(c))
      line += c;
    else if (!line.empty() && line.back() != ' ')
      line += ' ';
  }
  return line;
}

}  // namespace sluice::text::call_marks
