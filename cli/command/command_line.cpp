#include "cli/command/command_line.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/text/printable.h"
#include "base/text/strings.h"
#include "cli/process/exit_codes.h"
#include "dsl/builtin.h"

namespace sluice::cli {
namespace {

// A setting as verl and Hydra have them on the command line.
bool looks_like_setting(const std::string& word) {
  const size_t equals = word.find('=');
  return equals != std::string::npos && equals > 0 && word.front() != '-' && word.find('/') > equals;
}

bool looks_like_pipeline(const std::string& word) {
  // YAML is not one, but then the reader of pipelines says so.
  constexpr std::array kEndings{".toml", ".yaml", ".yml"};
  const bool ends_like_one = std::ranges::any_of(kEndings, [&](const char* ending) { return word.ends_with(ending); });
  return ends_like_one || dsl::builtin_name(word) || (word.find('/') != std::string::npos && !looks_like_setting(word));
}

bool names_command(const Command& program, const std::string& word) { return program.find(word) != nullptr; }

std::vector<std::string> with_short_forms(std::vector<std::string> words, const Command& program) {
  if (!words.empty() && words[0] == "help") {  // as git and cargo have it
    words.erase(words.begin());
    words.push_back("--help");
  }
  const bool named = words.empty() || words[0].starts_with('-') || names_command(program, words[0]);
  if (!named && looks_like_pipeline(words[0])) words.insert(words.begin(), program.short_form()->subcommand);
  if (words.size() < 2 || words[1].starts_with('-')) return words;
  const Command* const command = program.find(words[0]);
  if (command == nullptr || !command->short_form() || names_command(*command, words[1])) return words;
  if (words.size() > 2 && names_command(*command, words[2]))
    std::swap(words[1], words[2]);
  else
    words.insert(words.begin() + 1, command->short_form()->subcommand);
  return words;
}

/// What is wrong and what to do about it.
struct Complaint {
  std::string message;
  std::string help;
};

std::string help_for_setting(const std::string& word) { return "a key is set with --set: rlhf-run FILE.toml --set " + word; }

std::string where_to_read(const Command& command) { return command.called() + " --help"; }

// CLI11 itself would only say that a subcommand is required.
std::optional<Complaint> unknown_command(const std::vector<std::string>& words, const Command& program) {
  const Command* at = &program;
  for (const std::string& word : words) {
    if (at->commands().empty() || word.starts_with('-')) return std::nullopt;
    if (const Command* next = at->find(word)) {
      at = next;
      continue;
    }
    std::vector<std::string> names;
    for (const auto& command : at->commands()) names.push_back(command->name());
    std::string nearest = did_you_mean(word, names);
    if (nearest.empty() && at == &program) nearest = dsl::builtin_called(word);
    const std::string what =
        at == &program ? " is neither a subcommand nor a pipeline file (*.toml)" : " is not a subcommand of " + at->called();
    return Complaint{sluice::quoted(word) + what, looks_like_setting(word) ? help_for_setting(word)
                                                  : nearest.empty()        ? where_to_read(*at) + " lists the subcommands"
                                                                           : "did you mean " + nearest + "?"};
  }
  return std::nullopt;
}

const Command& innermost(const Command& command) {
  const auto& inside = command.commands();
  const auto parsed = std::ranges::find_if(inside, [](const auto& one) { return one->app().parsed(); });
  return parsed == inside.end() ? command : innermost(**parsed);
}

// Another command that has the option; null: none.
const Command* owner_of(const std::string& option, const Command& program) {
  for (const auto& command : program.commands()) {
    const auto names = command->option_names();
    if (std::ranges::find(names, option) != names.end()) return command.get();
    if (const Command* inside = owner_of(option, *command)) return inside;
  }
  return nullptr;
}

// Said first, even where something else is missing: the misspelt option may be what is missing.
std::optional<Complaint> unknown_option(const Command& program) {
  const Command& command = innermost(program);
  for (const std::string& word : command.app().remaining()) {
    if (!word.starts_with('-') || word == "-" || word == "--") continue;
    const std::string name = word.substr(0, word.find('='));
    const std::string nearest = did_you_mean(name, command.option_names());
    const Command* owner = owner_of(name, program);
    return Complaint{command.called() + " has no option " + sluice::quoted(name),
                     !nearest.empty()   ? "did you mean " + nearest + "?"
                     : owner != nullptr ? owner->called() + " has it; " + where_to_read(command) + " lists what there is here"
                                        : where_to_read(command) + " lists the options"};
  }
  return std::nullopt;
}

Complaint complaint_of(const CLI::ParseError& error, const Command& program) {
  if (auto complaint = unknown_option(program)) return *complaint;
  const Command& command = innermost(program);
  if (!command.commands().empty()) return {command.called() + " needs a subcommand", where_to_read(command) + " lists them"};
  const std::vector<std::string> remaining = command.app().remaining(), options = command.option_names();
  const auto setting = std::ranges::find_if(remaining, looks_like_setting);
  const bool is_meant = setting != remaining.end() && std::ranges::find(options, "--set") != options.end();
  return {error.what(), is_meant ? help_for_setting(*setting) : where_to_read(command)};
}

CommandLine refuse(const Complaint& complaint) {
  std::fprintf(stderr, "error: %s\n      = help: %s\n", printable(complaint.message).c_str(), printable(complaint.help).c_str());
  return {.exit_code = kWrongUsage};
}

}  // namespace

CommandLine parse_command_line(Command& program, std::vector<std::string> words) {
  words = with_short_forms(std::move(words), program);
  if (const auto complaint = unknown_command(words, program)) return refuse(*complaint);
  std::ranges::reverse(words);  // CLI11 takes them last first
  try {
    program.app().parse(words);
  } catch (const CLI::Success& asked) {  // --help, --version
    program.app().exit(asked);
    return {.exit_code = kDone};
  } catch (const CLI::ParseError& error) {
    return refuse(complaint_of(error, program));
  }
  return {.command = &innermost(program)};
}

}  // namespace sluice::cli
