#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/tokenizer/charsmap.h"
#include "text/tokenizer/matcher.h"
#include "text/unicode/normal_forms.h"

namespace sluice::text {

class JsonPart;

/// The "normalizer" of a tokenizer.json: what is done to text before it is cut. Immutable.
class Normalizer {
 public:
  Normalizer() = default;

  /// `part` may be null. Throws UserError for an unknown type or a bad pattern.
  explicit Normalizer(const JsonPart& part);

  bool changes_nothing() const { return steps_.empty(); }

  /// `is_first` becomes false when the first characters of `text` are dropped, so that the result begins somewhere in the text.
  /// Throws UserError when the text grows out of all proportion, or a pattern backtracks without bound.
  std::string apply(std::string_view text, bool& is_first) const;

 private:
  struct Prepend {
    std::string prefix;
  };
  struct Replace {
    Matcher matcher;
    std::string content;
    std::string where;
  };
  struct Lowercase {};
  struct Strip {
    bool left, right;
  };
  struct Drop {
    uint16_t classes;
  };
  struct CleanForBert {};
  struct SpaceIdeographs {};
  struct CleanForNmt {};
  struct Precompiled {
    std::shared_ptr<const Charsmap> charsmap;
    bool takes_longest;  // as SentencePiece does; no tokenizer.json says so
  };
  using Step =
      std::variant<NormalForm, Prepend, Replace, Lowercase, Strip, Drop, CleanForBert, SpaceIdeographs, CleanForNmt, Precompiled>;

  void read(const JsonPart& part);
  void read_bert(const JsonPart& part);

  static std::string run(NormalForm form, std::string_view text, bool& is_first);
  static std::string run(const Prepend& step, std::string_view text, bool& is_first);
  static std::string run(const Replace& step, std::string_view text, bool& is_first);
  static std::string run(const Lowercase&, std::string_view text, bool& is_first);
  static std::string run(const Strip& step, std::string_view text, bool& is_first);
  static std::string run(const Drop& step, std::string_view text, bool& is_first);
  static std::string run(const CleanForBert&, std::string_view text, bool& is_first);
  static std::string run(const SpaceIdeographs&, std::string_view text, bool& is_first);
  static std::string run(const CleanForNmt&, std::string_view text, bool& is_first);
  static std::string run(const Precompiled& step, std::string_view text, bool& is_first);

  std::vector<Step> steps_;
  std::string where_;
};

}  // namespace sluice::text
