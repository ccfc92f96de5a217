#include "cli/command/command.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/files/user_path.h"
#include "base/text/strings.h"

namespace sluice::cli {
namespace {

std::string examples_text(const std::vector<std::string>& examples) {
  return examples.empty() ? std::string() : "Examples:\n  " + join(examples, "\n  ");
}

template <class T>
bool reads_as(const std::string& written) {
  T value{};
  const char* const end = written.data() + written.size();
  const auto read = std::from_chars(written.data(), end, value);
  return read.ec == std::errc() && read.ptr == end;
}

constexpr std::int64_t kMostCounted = 1'000'000'000;

bool reads_as_number(const std::string& written, bool whole) {
  return whole ? reads_as<std::int64_t>(written) : reads_as<double>(written);
}

Values number(std::string what, std::function<bool(double)> allowed) {
  Values values{.shown = "NUMBER"};
  values.problem = [what = std::move(what), allowed = std::move(allowed)](const std::string& written) -> std::string {
    double value = 0;
    if (CLI::detail::lexical_cast(written, value) && allowed(value)) return {};
    return sluice::quoted(written) + " is not a " + what;
  };
  return values;
}

Values but_standard_output(Values paths, const std::string& otherwise) {
  paths.problem = [problem = paths.problem, otherwise](const std::string& written) {
    return written == "-" ? otherwise : problem(written);
  };
  return paths;
}

// As CLI11 has it: what is wrong, or nothing.
std::string replace(std::string& written, const std::function<std::string(const std::string&)>& meant) {
  try {
    written = meant(written);
    return {};
  } catch (const UserError& error) {
    return error.message();
  }
}

}  // namespace

Values Values::one_of(std::vector<std::string> words) {
  Values values{.shown = join(words, "|"), .offer = Offer::kWords, .words = words};
  values.problem = [words = std::move(words)](const std::string& written) -> std::string {
    if (std::ranges::find(words, written) != words.end()) return {};
    const std::string nearest = did_you_mean(written, words);
    return sluice::quoted(written) + " is not one of " + join(words, ", ") +
           (nearest.empty() ? "" : "; did you mean " + nearest + "?");
  };
  return values;
}

Values Values::path(std::string shown, Offer offer) {
  Values values{.shown = std::move(shown), .offer = offer};
  values.problem = [](const std::string& written) {
    return written.empty() ? "an empty text names no file and no folder" : std::string();
  };
  values.meant = [](const std::string& written) { return with_home(written); };
  return values;
}

Values Values::written_folder() {
  return but_standard_output(folder(), "- stands for standard output, and this is a folder: ./- is one that is called so");
}

Values Values::written_file() {
  return but_standard_output(file(), "standard output has what the command prints: name a file; ./- is one that is called so");
}

Values Values::number_above_0() {
  return number("number above 0", [](double value) { return value > 0; });
}

Values Values::number_from_0() {
  return number("number from 0", [](double value) { return value >= 0; });
}

Values Values::whole_number(std::int64_t first, std::int64_t last) {
  Values values{.shown = "NUMBER"};
  values.problem = [first, last](const std::string& written) -> std::string {
    std::int64_t value = 0;
    if (CLI::detail::lexical_cast(written, value) && first <= value && value <= last) return {};
    return sluice::quoted(written) + " is not a whole number from " + std::to_string(first) + " to " + std::to_string(last);
  };
  return values;
}

Values Values::share() {
  return number("number from 0 to 1", [](double value) { return value >= 0 && value <= 1; });
}

Values Values::share_above_0() {
  return number("number above 0 and at most 1", [](double value) { return value > 0 && value <= 1; });
}

Values Values::that_are_numbers(bool whole) const {
  Values values = *this;
  values.problem = [whole, also = problem](const std::string& written) -> std::string {
    if (std::string wrong = also ? also(written) : std::string(); !wrong.empty()) return wrong;
    return reads_as_number(written, whole) ? std::string()
                                           : sluice::quoted(written) + (whole ? " is not a whole number" : " is not a number");
  };
  return values;
}

Command::Command(const std::string& name, const std::string& help, const std::string& version)
    : root_(std::make_unique<CLI::App>(help, name)), app_(root_.get()) {
  options_.push_back({app_->set_help_flag("-h,--help", "print this and exit"), {}});
  options_.push_back({app_->set_version_flag("--version", version, "print the version and exit"), {}});
}

Command::Command(CLI::App& app) : app_(&app) { options_.push_back({app_->get_help_ptr(), {}}); }

Command& Command::add(const std::string& name, const std::string& help, const std::vector<std::string>& examples) {
  app_->require_subcommand(1);
  commands_.push_back(std::unique_ptr<Command>(new Command(*app_->add_subcommand(name, help))));
  commands_.back()->app_->footer(examples_text(examples));
  return *commands_.back();
}

CLI::Option& Command::list(const std::string& name, std::vector<std::string>& values, Values each, const std::string& help) {
  CLI::Option& option = keep(*app_->add_option(name, values, help), std::move(each), options_);
  return *option.expected(1)->allow_extra_args(false)->take_all();
}

CLI::Option& Command::flag(const std::string& name, bool& value, const std::string& help) {
  return keep(*app_->add_flag(name, value, help), {}, options_);
}

CLI::Option& Command::flag(const std::string& name, std::int64_t& count, const std::string& help) {
  Values counts;  // CLI11 itself would only say that it cannot convert
  counts.problem = [](const std::string& written) {
    return written == "true" ? std::string() : Values::whole_number(1, kMostCounted).problem(written);
  };
  return keep(*app_->add_flag(name, count, help), std::move(counts), options_);
}

CLI::Option& Command::keep(CLI::Option& option, Values values, std::vector<Taken>& among) {
  if (!values.shown.empty()) option.type_name(values.shown);
  if (values.problem)
    option.check(CLI::Validator([problem = values.problem](std::string& written) { return problem(written); }, ""));
  if (values.meant)
    option.transform(CLI::Validator([meant = values.meant](std::string& written) { return replace(written, meant); }, ""));
  among.push_back({&option, std::move(values)});
  return option;
}

std::vector<std::string> Command::option_names() const {
  std::vector<std::string> names;
  for (const Taken& taken : options_) names.push_back(taken.option->get_name());
  return names;
}

const Command* Command::find(const std::string& name) const {
  const auto found = std::ranges::find(commands_, name, [](const auto& command) { return command->name(); });
  return found == commands_.end() ? nullptr : found->get();
}

std::string Command::called() const {
  std::string words = app_->get_name();
  for (const CLI::App* above = app_->get_parent(); above != nullptr; above = above->get_parent())
    words.insert(0, above->get_name() + " ");
  return words;
}

}  // namespace sluice::cli
