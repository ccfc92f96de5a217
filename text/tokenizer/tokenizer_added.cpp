#include "text/tokenizer/tokenizer_added.h"

#include <algorithm>

#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"
#include "text/unicode/white_space.h"

namespace sluice::text {
namespace {

bool is_word_character(char32_t code_point) { return CodePointClasses::get()[code_point] & code_point_class::kWord; }

bool stands_alone(std::string_view before, std::string_view after) {
  const bool touched_before = !before.empty() && is_word_character(last_code_point(before).value);
  const bool touched_after = !after.empty() && is_word_character(code_point_at(after.data()).value);
  return !touched_before && !touched_after;
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
