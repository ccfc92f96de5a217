#include "text/unicode/normal_forms.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace sluice::text {
namespace {

using CodePoints = std::vector<utf8proc_int32_t>;

bool composes(NormalForm form) { return form == NormalForm::kNfc || form == NormalForm::kNfkc; }
bool is_compatible(NormalForm form) { return form == NormalForm::kNfkc || form == NormalForm::kNfkd; }
bool is_ascii(char byte) { return static_cast<unsigned char>(byte) < 0x80; }

void decompose(std::string_view text, NormalForm form, CodePoints& decomposed) {
  constexpr utf8proc_ssize_t kLongestDecomposition = 32;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | (is_compatible(form) ? UTF8PROC_COMPAT : 0));
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = code_point_at(text.data() + i);
    i += c.length;
    utf8proc_int32_t parts[kLongestDecomposition];
    int boundary_class = UTF8PROC_BOUNDCLASS_START;
    const auto count =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c.value), parts, kLongestDecomposition, options, &boundary_class);
    SLUICE_CHECK(count > 0 && count <= kLongestDecomposition, "decomposition of one code point");
    decomposed.insert(decomposed.end(), parts, parts + count);
  }
}

int combining_class(utf8proc_int32_t code_point) { return utf8proc_get_property(code_point)->combining_class; }

// Each run of marks in order of combining class. utf8proc's own ordering swaps neighbours, which is quadratic in the length of a
// run.
void order_marks(CodePoints& text) {
  const auto is_mark = [](utf8proc_int32_t code_point) { return combining_class(code_point) != 0; };
  for (auto begin = text.begin(); begin != text.end();) {
    begin = std::find_if(begin, text.end(), is_mark);
    const auto end = std::find_if_not(begin, text.end(), is_mark);
    std::stable_sort(begin, end, [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    begin = end;
  }
}

void compose(CodePoints& text) {
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  const auto length = utf8proc_normalize_utf32(text.data(), static_cast<utf8proc_ssize_t>(text.size()), options);
  SLUICE_CHECK(length >= 0, "composition of decomposed text");
  text.resize(static_cast<size_t>(length));
}

// Normalises one stretch of text after another. A stretch shares nothing with its neighbours.
class Normalization {
 public:
  Normalization(NormalForm form, size_t size) : form_(form) { result_.reserve(size); }

  void keep(std::string_view text) { result_ += text; }

  // Characters that the package does not know part the stretch into smaller ones and stay.
  void change(std::string_view stretch) {
    size_t begin = 0;
    for (size_t i = 0; i < stretch.size();) {
      const CodePoint c = code_point_at(stretch.data() + i);
      if (!(classes_[c.value] & code_point_class::kNormalized)) {
        change_known(stretch.substr(begin, i - begin));
        keep(stretch.substr(i, c.length));
        begin = i + c.length;
      }
      i += c.length;
    }
    change_known(stretch.substr(begin));
  }

  std::string take() { return std::move(result_); }

 private:
  void change_known(std::string_view text) {
    if (text.empty()) return;
    scratch_.clear();
    decompose(text, form_, scratch_);
    order_marks(scratch_);
    if (composes(form_)) compose(scratch_);
    for (const auto c : scratch_) append_utf8(static_cast<char32_t>(c), result_);
  }

  NormalForm form_;
  const CodePointClasses& classes_ = CodePointClasses::get();
  CodePoints scratch_;
  std::string result_;
};

// Only what is not surely in form C is looked at closely, from the sure character before it to the next one.
std::string to_form_c(std::string_view text) {
  const auto& classes = CodePointClasses::get();
  const auto is_sure = [&](const CodePoint& c) { return !(classes[c.value] & code_point_class::kNfcUnsure); };
  Normalization normalization(NormalForm::kNfc, text.size());
  size_t done = 0, last_sure = 0;
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = code_point_at(text.data() + i);
    if (is_sure(c)) {
      last_sure = i;
      i += c.length;
      continue;
    }
    normalization.keep(text.substr(done, last_sure - done));
    for (done = i; done < text.size();) {
      const CodePoint next = code_point_at(text.data() + done);
      if (is_sure(next)) break;
      done += next.length;
    }
    normalization.change(text.substr(last_sure, done - last_sure));
    i = last_sure = done;
  }
  normalization.keep(text.substr(done));
  return normalization.take();
}

// ASCII is in every form, and joins nothing before it: a stretch runs from the last ASCII character before something else.
std::string to_other_form(std::string_view text, NormalForm form) {
  Normalization normalization(form, text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t other = static_cast<size_t>(std::find_if_not(text.begin() + i, text.end(), is_ascii) - text.begin());
    const size_t begin = other > i && other < text.size() ? other - 1 : other;
    const size_t end = static_cast<size_t>(std::find_if(text.begin() + other, text.end(), is_ascii) - text.begin());
    normalization.keep(text.substr(i, begin - i));
    normalization.change(text.substr(begin, end - begin));
    i = end;
  }
  return normalization.take();
}

}  // namespace

std::string to_normal_form(std::string_view text, NormalForm form) {
  if (std::all_of(text.begin(), text.end(), is_ascii)) return std::string(text);
  return form == NormalForm::kNfc ? to_form_c(text) : to_other_form(text, form);
}

}  // namespace sluice::text
