#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command/command.h"

namespace sluice::cli {

/// The names that `describe` and `try` take.
struct TypeNames {
  std::vector<std::string> described;
  std::vector<std::string> tried;
};

// Scripts that make a shell complete the words of the program: subcommands, options, their values, files and folders where one is
// expected, and names of types. Nothing of the program runs when they complete, so they show the types that are builtin.

std::string bash_completion(const Command& program, const TypeNames& types);
std::string zsh_completion(const Command& program, const TypeNames& types);
std::string fish_completion(const Command& program, const TypeNames& types);

namespace completion {

/// A command and the words that lead to it: "model sample", "" for the program.
struct Place {
  std::string words;
  const Command* command;
};

/// Every command of the tree, the root first.
std::vector<Place> all_places(const Command& program);

/// The words of `values`; empty where any are allowed.
std::vector<std::string> words_of(const Values& values, const TypeNames& types);

/// True for an option after which a value stands.
bool takes_value(const Command::Taken& option);

/// -h and --help, as they are written.
std::vector<std::string> spellings(const Command::Taken& option);

/// `text` with every `{{NAME}}` replaced.
std::string filled(std::string_view text, const std::vector<std::pair<std::string, std::string>>& names);

}  // namespace completion
}  // namespace sluice::cli
