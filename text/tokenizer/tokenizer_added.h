#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sluice::text {

/// A token that is found in text as it stands, before any other step: one entry of "added_tokens".
struct AddedToken {
  std::string content;
  int64_t id = 0;
  bool special = false;      // left out of decoded text on request
  bool left_strip = false;   // takes the white space before it
  bool right_strip = false;  // takes the white space after it
  bool single_word = false;  // only where no letter, digit or underscore touches it
  bool normalized = false;   // looked for in the normalised text
};

/// Finds added tokens in text: the leftmost, and of those the longest. Immutable.
/// Takes time linear in the text, times the length of the longest token at worst.
class AddedTokenFinder {
 public:
  AddedTokenFinder() = default;
  explicit AddedTokenFinder(std::vector<AddedToken> tokens);

  struct Piece {
    std::string_view text;              // what lies between tokens; empty for a token
    const AddedToken* token = nullptr;  // or null
  };

  /// `text` as pieces, in order. `text` is well-formed UTF-8. The pieces point into it and into this finder.
  std::vector<Piece> split(std::string_view text) const;

 private:
  const AddedToken* longest_at(std::string_view rest) const;

  static uint64_t edge(uint32_t node, char byte) { return static_cast<uint64_t>(node) << 8 | static_cast<unsigned char>(byte); }

  // A trie over the bytes of the tokens; node 0 is the root.
  std::vector<AddedToken> tokens_;
  std::unordered_map<uint64_t, uint32_t> edges_;
  std::vector<int64_t> token_of_node_{-1};  // index in tokens_, or -1
  std::array<bool, 256> begins_token_{};
};

}  // namespace sluice::text
