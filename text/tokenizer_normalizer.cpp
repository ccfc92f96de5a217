#include "text/tokenizer_normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "base/strings.h"

namespace sluice::text {
namespace {

// No code point below U+0300 decomposes and recomposes to something else or combines with its neighbour: that is every lead byte
// below 0xCC.
bool is_surely_nfc(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char byte) {
    const auto unit = static_cast<unsigned char>(byte);
    return unit < 0xCC;
  });
}

std::vector<utf8proc_int32_t> decompose(std::string_view text) {
  constexpr utf8proc_ssize_t kLongestDecomposition = 32;
  std::vector<utf8proc_int32_t> decomposed;
  decomposed.reserve(text.size());
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (size_t i = 0; i < text.size();) {
    utf8proc_int32_t code_point = 0;
    const auto length = utf8proc_iterate(bytes + i, static_cast<utf8proc_ssize_t>(text.size() - i), &code_point);
    SLUICE_CHECK(length > 0, "text to normalise is not UTF-8");
    i += static_cast<size_t>(length);

    utf8proc_int32_t parts[kLongestDecomposition];
    int boundary_class = UTF8PROC_BOUNDCLASS_START;
    const auto count = utf8proc_decompose_char(code_point, parts, kLongestDecomposition, UTF8PROC_DECOMPOSE, &boundary_class);
    SLUICE_CHECK(count > 0 && count <= kLongestDecomposition, "decomposition of one code point");
    decomposed.insert(decomposed.end(), parts, parts + count);
  }
  return decomposed;
}

int combining_class(utf8proc_int32_t code_point) { return utf8proc_get_property(code_point)->combining_class; }

// Each run of marks in order of combining class. utf8proc's own ordering swaps neighbours, which is quadratic in the length of a
// run.
void order_marks(std::vector<utf8proc_int32_t>& text) {
  const auto is_mark = [](utf8proc_int32_t code_point) { return combining_class(code_point) != 0; };
  for (auto begin = text.begin(); begin != text.end();) {
    begin = std::find_if(begin, text.end(), is_mark);
    const auto end = std::find_if_not(begin, text.end(), is_mark);
    std::stable_sort(begin, end, [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    begin = end;
  }
}

std::string compose(std::vector<utf8proc_int32_t> text) {
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  const auto length = utf8proc_normalize_utf32(text.data(), static_cast<utf8proc_ssize_t>(text.size()), options);
  SLUICE_CHECK(length >= 0, "composition of decomposed text");
  std::string composed;
  for (utf8proc_ssize_t i = 0; i < length; ++i) {
    utf8proc_uint8_t bytes[4];
    const auto count = utf8proc_encode_char(text[static_cast<size_t>(i)], bytes);
    composed.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(count));
  }
  return composed;
}

}  // namespace

std::string to_nfc(std::string_view text) {
  if (is_surely_nfc(text)) return std::string(text);
  auto decomposed = decompose(text);
  order_marks(decomposed);
  return compose(std::move(decomposed));
}

Normalizer::Normalizer(const JsonPart& part) {
  if (part.is_null()) return;
  const std::string type = part.type();
  if (type == "NFC") {
    nfc_ = true;
  } else if (type == "Sequence") {
    for (const JsonPart& element : part.at("normalizers").elements()) nfc_ |= Normalizer(element).nfc_;
  } else {
    part.fail_unsupported("normalizer type " + sluice::quoted(type), "null, NFC, Sequence");
  }
}

}  // namespace sluice::text
