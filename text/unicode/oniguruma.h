#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/function_ref.h"

struct re_pattern_buffer;  // Oniguruma's compiled regex

namespace sluice::text {

/// A regular expression took more steps on a text than it may. The text's fault as much as the pattern's: who searches in texts
/// from outside catches it.
class RegexGaveUp : public UserError {
 public:
  using UserError::UserError;
};

/// A regular expression over UTF-8 text in Oniguruma's syntax, which is the one that tokenizer.json files are written in.
/// Immutable: const use from many threads. Moves, does not copy.
class Regex {
 public:
  struct Match {
    size_t begin = 0;  // bytes
    size_t end = 0;
  };

  /// Throws UserError with Oniguruma's reason; `where` names the file and key that the pattern came from.
  Regex(std::string_view pattern, const std::string& where);

  /// A pattern that matches `text` and nothing else.
  static std::string escape(std::string_view text);

  /// Calls `on_match` for all matches from left to right, without overlap; an empty match that touches the previous match is left
  /// out. `text` must be well-formed UTF-8 below 2 GiB. Throws RegexGaveUp when the pattern backtracks without bound on this
  /// text: the steps back that all searches in one text may take grow with its length and no faster.
  void for_each(std::string_view text, FunctionRef<void(Match)> on_match) const;

  /// The same as a list.
  std::vector<Match> find_all(std::string_view text) const;

  /// The same, but of each match what its first capture group holds; the whole match where there is no group or it took no part.
  std::vector<Match> find_all_captures(std::string_view text) const;

 private:
  void search(std::string_view text, bool captures, FunctionRef<void(Match)> on_match) const;

  struct Free {
    void operator()(re_pattern_buffer* regex) const;
  };
  std::unique_ptr<re_pattern_buffer, Free> regex_;
  std::string where_;
};

}  // namespace sluice::text
