#include "text/tokenizer/token_offsets.h"

#include <algorithm>

#include "text/unicode/white_space.h"

namespace sluice::text {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Walks through the text token by token.
class Aligner {
 public:
  Aligner(const Tokenizer& tokenizer, std::string_view text, std::span<const int64_t> ids, std::span<const ByteRange> ranges)
      : tokenizer_(tokenizer), text_(text), ids_(ids), ranges_(ranges) {}

  std::optional<std::vector<uint8_t>> run() {
    while (marks_.size() < ids_.size()) {
      if (!take_token() && !take_changed_part()) return std::nullopt;
    }
    // What no token stands for was dropped, or is white space that a special token took in.
    return marks_;
  }

 private:
  bool take_token() {
    const std::string_view bytes = tokenizer_.token_bytes(ids_[marks_.size()]);
    if (bytes.empty()) return false;
    if (text_.substr(at_).starts_with(bytes)) return mark(at_, at_ + bytes.size());
    // A tokenizer in SentencePiece's manner puts a space before a text.
    if (bytes.starts_with(' ') && text_.substr(at_).starts_with(bytes.substr(1))) return mark(at_, at_ + bytes.size() - 1);
    // Some special tokens take in the white space before them, and some tokenizers write one blank for any white space. It is
    // often the end of a turn, and the token that comes then the beginning of the next one.
    size_t behind = at_;
    while (behind < text_.size() && is_space(text_[behind])) ++behind;
    if (behind == at_) return false;
    if (text_.substr(behind).starts_with(bytes)) return mark(behind, behind + bytes.size());
    const bool joins = bytes.starts_with(' ') && text_.substr(behind).starts_with(bytes.substr(1));
    return joins && mark(behind, behind + bytes.size() - 1);
  }

  // A space that was put before a text and has a token of its own stands for no byte: it belongs to the one that follows.
  bool mark(size_t begin, size_t end) {
    const size_t last = std::max(begin + 1, end);
    const bool is_taken_in = tokenizer_.takes_space_behind(ids_[marks_.size()]);
    marks_.push_back(
        std::ranges::any_of(ranges_, [&](const ByteRange& range) { return begin < range.end && range.begin < last; }));
    at_ = is_taken_in ? white_space_end(text_, end) : end;
    return true;
  }

  // The tokenizer saw another text than this one. The next special token is where both meet again; up to there no range may
  // change.
  bool take_changed_part() {
    size_t next = marks_.size();
    while (next < ids_.size() && !(tokenizer_.is_special(ids_[next]) && !tokenizer_.token_bytes(ids_[next]).empty())) ++next;
    if (next == marks_.size()) return false;
    const size_t end = next == ids_.size() ? text_.size() : text_.find(tokenizer_.token_bytes(ids_[next]), at_);
    if (end == std::string_view::npos) return false;
    const auto inside = [&](size_t border) { return at_ < border && border < end; };
    if (std::ranges::any_of(ranges_, [&](const ByteRange& range) { return inside(range.begin) || inside(range.end); }))
      return false;
    const bool marked =
        std::ranges::any_of(ranges_, [&](const ByteRange& range) { return range.begin <= at_ && at_ < range.end; });
    marks_.resize(next, marked);
    at_ = end;
    return true;
  }

  const Tokenizer& tokenizer_;
  std::string_view text_;
  std::span<const int64_t> ids_;
  std::span<const ByteRange> ranges_;
  std::vector<uint8_t> marks_;  // of the tokens that are after us
  size_t at_ = 0;               // in the text
};

}  // namespace

std::optional<std::vector<uint8_t>> tokens_in_ranges(const Tokenizer& tokenizer, std::string_view text,
                                                     std::span<const int64_t> ids, std::span<const ByteRange> ranges) {
  return Aligner(tokenizer, text, ids, ranges).run();
}

}  // namespace sluice::text
