#include "text/unicode/white_space.h"

#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace sluice::text {
namespace {

bool is_white_space(char32_t code_point) { return CodePointClasses::get()[code_point] & code_point_class::kSpace; }

}  // namespace

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
    const CodePoint first = code_point_at(text.data() + begin);
    if (!is_white_space(first.value)) break;
    begin += first.length;
  }
  return begin;
}

}  // namespace sluice::text
