#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "base/json/json.h"

namespace sluice::cli {

/// The rows of a data file that nobody has described yet.
struct InitData {
  std::vector<Json> rows;  // the first ones
  size_t count = 0;        // of all
};

/// Reads a file, folder or pattern as a source of a pipeline does. Throws UserError with the rows that are no JSON objects.
InitData read_init_data(const std::filesystem::path& path);

/// Which fields of the rows a pipeline reads. A name may reach into objects: "reward_model.ground_truth".
struct InitFields {
  std::string messages;             // a conversation, in place of `prompt`; empty: none
  std::vector<std::string> prompt;  // texts; several are joined
  std::string answer;               // that a score is about, or that is learned; empty: none is needed
  std::string chosen, rejected;     // of pairs
  bool pairs_are_messages = false;  // those two are conversations
};

/// What a kind of pipeline reads of its rows.
enum class InitNeeds {
  kAnswers,      // a prompt, and an answer to score by
  kCompletions,  // a prompt with its completion, or a conversation
  kPairs,        // a better and a worse completion, with or without a prompt
};

/// Fields that the user has named; empty: they are looked for.
struct GivenFields {
  std::string prompt, answer;
};

/// The fields by the names that data sets give them, of those that every row has. Throws UserError with what was looked for and
/// the fields of the first row.
InitFields find_fields(const InitData& data, const std::string& file, InitNeeds needs, const GivenFields& given);

/// The text of a field; of a number its digits. Empty where it is missing.
std::string text_of_field(const Json& row, const std::string& name);

}  // namespace sluice::cli
