#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/problem.h"
#include "data/jsonl_reader.h"

namespace sluice::data {

/// Names of the fields of a preference pair.
struct PreferenceFields {
  std::string prompt = "prompt";  // may be missing in the rows; empty: there is none
  std::string chosen = "chosen";
  std::string rejected = "rejected";
};

/// A prompt with a better and a worse completion: all three strings, or all three lists of messages.
struct PreferencePair {
  Json prompt;
  Json chosen;
  Json rejected;
};

/// Splits a pair whose prompt is the common beginning of both: of two conversations the messages that are alike, of two strings
/// the characters, without a space at their end. Neither completion is left empty: if one of the two is the beginning of the
/// other, its last message (or character) is its completion. Null prompt: they have nothing in common.
PreferencePair split_common_prompt(const Json& chosen, const Json& rejected);

/// Rows of preference pairs, as the reader of `files` gives them (see JsonlReader for checks, errors and memory). A prompt field
/// of the same form as the completions (string or messages) is taken as it is; else the prompt is split off.
class PreferenceReader {
 public:
  /// Throws one UserError with up to 20 rows that are no pair: of two forms, or without a prompt.
  PreferenceReader(const std::vector<std::filesystem::path>& files, const PreferenceFields& fields,
                   const std::filesystem::path& scratch = {});

  size_t rows() const { return reader_.rows(); }
  PreferencePair pair(size_t row) const;
  SourceSpan where(size_t row) const { return reader_.where(row); }

 private:
  void check_pairs() const;

  JsonlReader reader_;
};

}  // namespace sluice::data
