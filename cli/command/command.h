#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace sluice::cli {

/// What may be written as an argument or after an option: how --help calls it, and what a shell offers for it.
struct Values {
  enum class Offer { kNothing, kWords, kFiles, kPipelines, kFolders, kDescribedTypes, kTriedTypes };

  std::string shown;  // empty: the kind of the variable, such as INT
  Offer offer = Offer::kNothing;
  std::vector<std::string> words = {};                                  // kWords: all that are allowed
  std::function<std::string(const std::string& written)> problem = {};  // what is wrong with a value; empty: nothing
  std::function<std::string(const std::string& written)> meant = {};    // what a value is short for; empty: itself

  static Values any(std::string shown = {}) { return {std::move(shown)}; }
  static Values number_above_0();
  static Values number_from_0();
  static Values share();          // from 0 to 1
  static Values share_above_0();  // likewise, without 0
  static Values whole_number(std::int64_t first, std::int64_t last);
  static Values file() { return path("FILE", Offer::kFiles); }
  static Values pipeline() { return path("FILE", Offer::kPipelines); }
  static Values folder() { return path("FOLDER", Offer::kFolders); }
  /// Of what a command writes where "-", elsewhere standard output, can mean nothing: a folder, or a file beside what it prints.
  static Values written_folder();
  static Values written_file();
  /// Not empty, as a variable of a shell may be that nobody has set; `~/` is the home folder also where no shell replaces it.
  static Values path(std::string shown, Offer offer);
  static Values described_type() { return {"TYPE", Offer::kDescribedTypes}; }
  static Values tried_type() { return {"TYPE", Offer::kTriedTypes}; }
  static Values one_of(std::vector<std::string> words);

  /// These, as far as they are numbers, or whole numbers.
  Values that_are_numbers(bool whole) const;
};

/// A command and what belongs to it in one place: what it is for, what it takes, examples, subcommands, and what it does. The
/// program itself is the command at the root. --help, the messages of command_line.h and the completion of shells are made of
/// this tree. Owns its subcommands; what is parsed into belongs to the action. One thread.
class Command {
 public:
  /// An option or an argument.
  struct Taken {
    const CLI::Option* option;
    Values values;
  };

  /// What may be written in place of a subcommand, and is short for that one with it.
  struct ShortForm {
    std::string subcommand;
    Values values;
  };

  /// The root. `name` is the program's, `version` what --version prints.
  Command(const std::string& name, const std::string& help, const std::string& version);
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  /// A subcommand. `examples` are lines to type.
  Command& add(const std::string& name, const std::string& help, const std::vector<std::string>& examples = {});

  /// What is written without an option, in the order of the calls. Required where the caller says so.
  template <class T>
  CLI::Option& argument(const std::string& name, T& value, Values values, const std::string& help) {
    return keep(*app_->add_option(name, value, help), number_in<T>(std::move(values)), arguments_);
  }

  /// `name` is that of an option, such as --run-dir.
  template <class T>
  CLI::Option& option(const std::string& name, T& value, Values values, const std::string& help) {
    return keep(*app_->add_option(name, value, help), number_in<T>(std::move(values)), options_);
  }

  /// An option that may be written several times, with one value each.
  CLI::Option& list(const std::string& name, std::vector<std::string>& values, Values each, const std::string& help);

  CLI::Option& flag(const std::string& name, bool& value, const std::string& help);

  /// A flag that also takes a count: --name is 1, --name=20 is 20.
  CLI::Option& flag(const std::string& name, std::int64_t& count, const std::string& help);

  void is_short_for(std::string subcommand, Values values) { short_form_ = {std::move(subcommand), std::move(values)}; }

  /// What it does; returns the exit code.
  void runs(std::function<int()> action) { action_ = std::move(action); }
  int run() const { return action_(); }

  const std::string& name() const { return app_->get_name(); }
  std::string help() const { return app_->get_description(); }
  const std::vector<std::unique_ptr<Command>>& commands() const { return commands_; }
  const std::optional<ShortForm>& short_form() const { return short_form_; }
  const std::vector<Taken>& arguments() const { return arguments_; }
  const std::vector<Taken>& options() const { return options_; }
  std::vector<std::string> option_names() const;
  const Command* find(const std::string& name) const;  // among its subcommands

  /// How it is called: "rlhf-run model sample".
  std::string called() const;

  CLI::App& app() { return *app_; }
  const CLI::App& app() const { return *app_; }

 private:
  /// Those that a variable of this type can have: CLI11 itself would only say that it cannot convert.
  template <class T>
  static Values number_in(Values values) {
    if constexpr (std::is_arithmetic_v<T>) return values.that_are_numbers(std::is_integral_v<T>);
    if constexpr (requires(T number) { number.value_or(0); }) return number_in<typename T::value_type>(std::move(values));
    return values;
  }

  explicit Command(CLI::App& app);
  CLI::Option& keep(CLI::Option& option, Values values, std::vector<Taken>& among);

  std::unique_ptr<CLI::App> root_;  // of the root only; owns all others
  CLI::App* app_;
  std::vector<std::unique_ptr<Command>> commands_;
  std::optional<ShortForm> short_form_;
  std::vector<Taken> arguments_;
  std::vector<Taken> options_;
  std::function<int()> action_;
};

}  // namespace sluice::cli
