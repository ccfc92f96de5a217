#pragma once

#include <string>
#include <string_view>

#include "text/tokenizer_json.h"

namespace sluice::text {

/// Unicode normalisation form C of well-formed UTF-8 (UAX 15). Takes O(n log n) whatever the text holds.
std::string to_nfc(std::string_view text);

/// The "normalizer" of a tokenizer.json: nothing, or NFC. Immutable.
class Normalizer {
 public:
  Normalizer() = default;

  /// `part` may be null. Throws UserError for a normalizer that is neither NFC nor a Sequence of it.
  explicit Normalizer(const JsonPart& part);

  bool changes_nothing() const { return !nfc_; }
  std::string apply(std::string_view text) const { return nfc_ ? to_nfc(text) : std::string(text); }

 private:
  bool nfc_ = false;
};

}  // namespace sluice::text
