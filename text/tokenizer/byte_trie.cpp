#include "text/tokenizer/byte_trie.h"

#include <algorithm>

namespace sluice::text {

ByteTrie::ByteTrie(std::vector<std::pair<std::string, int32_t>> entries) {
  std::ranges::stable_sort(entries, {}, &std::pair<std::string, int32_t>::first);
  struct Range {  // of the entries that begin with the bytes that lead to a node
    size_t begin, end;
  };
  std::vector<Range> ranges{{0, entries.size()}};
  nodes_.emplace_back();
  labels_ += '\0';
  for (size_t node = 0, level_end = 1, depth = 0; node < ranges.size(); ++node) {
    if (node == level_end) {
      level_end = ranges.size();
      ++depth;
    }
    auto [begin, end] = ranges[node];
    nodes_[node].first_child = static_cast<int32_t>(nodes_.size());
    for (; begin < end && entries[begin].first.size() == depth; ++begin) {
      if (depth > 0) nodes_[node].value = entries[begin].second;
    }
    while (begin < end) {
      const char byte = entries[begin].first[depth];
      size_t last = begin;
      while (last < end && entries[last].first[depth] == byte) ++last;
      ranges.push_back({begin, last});
      nodes_.emplace_back();
      labels_ += byte;
      begin = last;
    }
  }
  nodes_.push_back({static_cast<int32_t>(nodes_.size())});
  from_root_.fill(kNone);
  for (int32_t child = nodes_[0].first_child; child < nodes_[1].first_child; ++child) {
    from_root_[static_cast<unsigned char>(labels_[static_cast<size_t>(child)])] = child;
  }
}

int32_t ByteTrie::find(std::string_view text) const {
  int32_t node = kRoot;
  for (const char byte : text) {
    node = next(node, byte);
    if (node == kNone) break;
  }
  return node;
}

}  // namespace sluice::text
