#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::text {

/// Strings with a number each, looked for at the beginning of a text, byte by byte. Immutable: const use from many threads.
/// Nodes lie level by level, so the children of one are neighbours: about 9 bytes a node.
class ByteTrie {
 public:
  static constexpr int32_t kNone = -1;
  static constexpr int32_t kRoot = 0;

  /// `entries`: string and number, 0 or more; of equal strings the last one counts. Empty strings are left out.
  explicit ByteTrie(std::vector<std::pair<std::string, int32_t>> entries);

  /// The node that `byte` leads to from `node`, or kNone.
  int32_t next(int32_t node, char byte) const {
    if (node == kRoot) return from_root_[static_cast<unsigned char>(byte)];
    const auto first = static_cast<size_t>(nodes_[static_cast<size_t>(node)].first_child);
    const auto end = static_cast<size_t>(nodes_[static_cast<size_t>(node) + 1].first_child);
    if (first == end) return kNone;
    const void* found = std::memchr(labels_.data() + first, static_cast<unsigned char>(byte), end - first);
    return found ? static_cast<int32_t>(static_cast<const char*>(found) - labels_.data()) : kNone;
  }

  /// The node that `text` leads to from the root, or kNone.
  int32_t find(std::string_view text) const;

  /// The number of the string that ends at `node`, or kNone.
  int32_t value(int32_t node) const { return nodes_[static_cast<size_t>(node)].value; }

 private:
  struct Node {
    int32_t first_child = 0;  // they end where those of the next node begin
    int32_t value = kNone;
  };

  std::vector<Node> nodes_;  // and one more at the end
  std::string labels_;       // [node]: the byte that leads to it
  std::array<int32_t, 256> from_root_;
};

}  // namespace sluice::text
