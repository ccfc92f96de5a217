#pragma once

#include <string>
#include <string_view>

#include "text/tokenizer/splitter.h"

namespace sluice::text {

class JsonPart;

/// Which pieces of a text get a blank before them: SentencePiece's "dummy prefix".
enum class PrependScheme { kNever, kFirst, kAlways };

/// What the Metaspace step and the Metaspace decoder have in common: a character that is written for a blank.
struct MetaspaceSettings {
  std::string replacement;  // one code point
  PrependScheme prepend = PrependScheme::kAlways;
  bool split = true;

  /// Reads "replacement", "prepend_scheme", "split" and the older "add_prefix_space". Throws UserError for what is wrong or
  /// contradictory.
  static MetaspaceSettings read(const JsonPart& part);
};

/// The Metaspace step: writes the replacement for each blank, before the text too if asked, and cuts before each. Immutable.
class MetaspaceStep {
 public:
  explicit MetaspaceStep(const JsonPart& part);

  /// Hands on the changed parts of `piece`; they live only during the call.
  void apply(Piece piece, PieceSink sink) const;

 private:
  MetaspaceSettings settings_;
  Splitter splitter_;
};

}  // namespace sluice::text
