#include "text/tokenizer/bpe_symbols.h"

#include "text/unicode/utf8.h"

namespace sluice::text {

void BpeSymbols::Table::set(char32_t code_point, int32_t id) {
  uint32_t& page = page_of_[code_point / kPage];
  if (page == 0) {
    page = static_cast<uint32_t>(cells_.size() / kPage);
    cells_.resize(cells_.size() + kPage, -1);
  }
  cells_[page * kPage + code_point % kPage] = id;
}

BpeSymbols::BpeSymbols(const Settings& settings, const std::unordered_map<std::string, int32_t>& vocabulary)
    : settings_(settings),
      tables_(ignores_position() ? 1 : 4),
      fallback_(settings_.byte_fallback ? FallbackBytes(vocabulary) : FallbackBytes()) {
  read_tokens(vocabulary);
}

void BpeSymbols::read_tokens(const std::unordered_map<std::string, int32_t>& vocabulary) {
  for (const auto& [token, id] : vocabulary) {
    if (ignores_position()) {
      read_token(token, id, true, true);
      continue;
    }
    for (const bool is_first : {false, true}) {
      for (const bool is_last : {false, true}) {
        const std::string_view prefix = is_first ? std::string_view() : settings_.continuing_prefix;
        const std::string_view suffix = is_last ? settings_.end_suffix : std::string_view();
        if (token.size() <= prefix.size() + suffix.size() || !token.starts_with(prefix) || !token.ends_with(suffix)) continue;
        const size_t length = token.size() - prefix.size() - suffix.size();
        read_token(std::string_view(token).substr(prefix.size(), length), id, is_first, is_last);
      }
    }
  }
}

void BpeSymbols::read_token(std::string_view token, int32_t id, bool is_first, bool is_last) {
  Table& table = tables_[ignores_position() ? 0 : 2 * is_first + is_last];
  if (settings_.byte_level) {
    if (token.size() == 1) table.set(static_cast<unsigned char>(token.front()), id);
  } else if (!is_continuation(token.front())) {
    const CodePoint c = code_point_at(token.data());
    if (c.length == token.size()) table.set(c.value, id);
  }
}

void BpeSymbols::load(std::string_view word, std::vector<int32_t>& ids) const {
  ids.clear();
  bool owes_unknown = false;  // written late: bytes that are fallen back to overtake it, as in the reference
  for (size_t i = 0; i < word.size();) {
    const CodePoint c = settings_.byte_level ? CodePoint{static_cast<unsigned char>(word[i]), 1} : code_point_at(word.data() + i);
    const std::string_view character = word.substr(i, c.length);
    const int32_t id = table(i == 0, i + c.length == word.size()).find(c.value);
    i += c.length;
    if (id >= 0) {
      if (owes_unknown) ids.push_back(*settings_.unknown);
      owes_unknown = false;
      ids.push_back(id);
    } else if (settings_.byte_fallback && fallback_.append(character, ids)) {
      continue;
    } else if (settings_.unknown) {
      if (owes_unknown && !settings_.fuse_unknown) ids.push_back(*settings_.unknown);
      owes_unknown = true;
    }
  }
  if (owes_unknown) ids.push_back(*settings_.unknown);
}

std::string BpeSymbols::dropped_bytes() const {
  std::string bytes;
  for (int byte = 0; byte < 256 && !settings_.unknown; ++byte) {
    const bool is_character = settings_.byte_level || byte < 0x80;
    const bool is_known =
        fallback_.has(static_cast<unsigned char>(byte)) || (is_character && tables_[0].find(static_cast<char32_t>(byte)) >= 0);
    if (!is_known) bytes += static_cast<char>(byte);
  }
  return bytes;
}

}  // namespace sluice::text
