#include "text/tokenizer_added.h"

#include <utf8proc.h>

#include <algorithm>

#include "text/oniguruma.h"

namespace sluice::text {
namespace {

struct CodePoint {
  char32_t value = 0;
  size_t length = 0;  // bytes
};

CodePoint first_code_point(std::string_view text) {
  utf8proc_int32_t value = 0;
  const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                       static_cast<utf8proc_ssize_t>(text.size()), &value);
  return {static_cast<char32_t>(value), static_cast<size_t>(std::max<utf8proc_ssize_t>(length, 1))};
}

CodePoint last_code_point(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  return first_code_point(text.substr(begin));
}

bool stands_alone(std::string_view before, std::string_view after) {
  const bool touched_before = !before.empty() && is_word_character(last_code_point(before).value);
  const bool touched_after = !after.empty() && is_word_character(first_code_point(after).value);
  return !touched_before && !touched_after;
}

// Where the white space that ends at `end` begins, but not before `least`.
size_t white_space_begin(std::string_view text, size_t least, size_t end) {
  while (end > least) {
    const CodePoint last = last_code_point(text.substr(0, end));
    if (!is_white_space(last.value)) break;
    end -= last.length;
  }
  return end;
}

size_t white_space_end(std::string_view text, size_t begin) {
  while (begin < text.size()) {
    const CodePoint first = first_code_point(text.substr(begin));
    if (!is_white_space(first.value)) break;
    begin += first.length;
  }
  return begin;
}

}  // namespace

AddedTokenFinder::AddedTokenFinder(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    uint32_t node = 0;
    for (const char byte : tokens_[i].content) {
      const auto [next, is_new] = edges_.try_emplace(edge(node, byte), static_cast<uint32_t>(token_of_node_.size()));
      if (is_new) token_of_node_.push_back(-1);
      node = next->second;
    }
    if (node == 0) continue;
    token_of_node_[node] = static_cast<int64_t>(i);
    begins_token_[static_cast<unsigned char>(tokens_[i].content.front())] = true;
  }
}

const AddedToken* AddedTokenFinder::longest_at(std::string_view rest) const {
  const AddedToken* longest = nullptr;
  uint32_t node = 0;
  for (const char byte : rest) {
    const auto next = edges_.find(edge(node, byte));
    if (next == edges_.end()) break;
    node = next->second;
    if (token_of_node_[node] >= 0) longest = &tokens_[static_cast<size_t>(token_of_node_[node])];
  }
  return longest;
}

std::vector<AddedTokenFinder::Piece> AddedTokenFinder::split(std::string_view text) const {
  std::vector<Piece> pieces;
  size_t done = 0;  // everything before is in pieces
  for (size_t i = 0; i < text.size();) {
    const bool may_begin = begins_token_[static_cast<unsigned char>(text[i])];
    const AddedToken* token = may_begin ? longest_at(text.substr(i)) : nullptr;
    if (!token) {
      ++i;
      continue;
    }
    size_t begin = i;
    size_t end = i + token->content.size();
    i = end;
    if (token->single_word && !stands_alone(text.substr(0, begin), text.substr(end))) continue;
    if (token->left_strip) begin = white_space_begin(text, done, begin);
    // A token before may have taken the blanks that this one is made of: then `done` lies beyond `end`, with only blanks between.
    end = std::max(done, end);
    if (token->right_strip) end = white_space_end(text, end);
    if (done < begin) pieces.push_back({text.substr(done, begin - done), nullptr});
    pieces.push_back({{}, token});
    done = end;
  }
  if (done < text.size()) pieces.push_back({text.substr(done), nullptr});
  return pieces;
}

}  // namespace sluice::text
