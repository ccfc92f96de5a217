#pragma once

#include <string>
#include <vector>

#include "base/json/json.h"
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

/// What a reader of rows must be asked for: chosen, rejected, and the prompt unless its name is empty.
std::vector<JsonlField> preference_fields(const PreferenceFields& names);

/// The pair of a row's values, which begin with those of preference_fields(names). A prompt of the same form as the completions
/// (string or messages) is taken as it is; else it is split off. Throws UserError for what is no pair: of two forms, or without a
/// prompt.
PreferencePair preference_pair(const std::vector<Json>& values, const PreferenceFields& names);

}  // namespace sluice::data
