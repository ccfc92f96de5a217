#include "base/text/strings.h"
#include "cli/command/completion.h"

namespace sluice::cli {
namespace in_fish {
namespace {

using completion::Place;

constexpr std::string_view kScript = R"script(# fish completion for rlhf-run, made by `rlhf-run completion fish`. Use it with
#   rlhf-run completion fish | source

# Prints the words of the command that is typed so far, and how many arguments stand after it.
function __rlhf_run_place
    set -l command ''
    set -l places 0
    set -l skip 0
    for word in (commandline -opc)[2..-1]
        if test $skip = 1
            set skip 0
            continue
        end
        switch "$command>$word"
            case {{COMMANDS}}
                set command (string trim -- "$command $word")
            case {{VALUED}}
                set skip 1
            case '*>-*'
            case '>*.toml'
                set command run
                set places (math $places + 1)
            case '*'
                set places (math $places + 1)
        end
    end
    printf '%s\n' $command $places
end

# Whether the command is $argv[1].
function __rlhf_run_in
    set -l place (__rlhf_run_place)
    test "$place[1]" = "$argv[1]"
end

# Whether argument $argv[2] of the command $argv[1] comes next.
function __rlhf_run_at
    set -l place (__rlhf_run_place)
    test "$place[1]" = "$argv[1]" -a "$place[2]" = "$argv[2]"
end

complete -c rlhf-run -e
complete -c rlhf-run -f
{{LINES}})script";

std::string literal(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out + "'";
}

// What the option -a of complete takes: words, or a command in parentheses that prints them.
std::string offer(const Values& values, const TypeNames& types) {
  switch (values.offer) {
    case Values::Offer::kNothing:
      return {};
    case Values::Offer::kFiles:
      return " -F";
    case Values::Offer::kPipelines:
      return " -a '(__fish_complete_suffix .toml)'";
    case Values::Offer::kFolders:
      return " -a '(__fish_complete_directories)'";
    default:
      return " -a " + literal(join(completion::words_of(values, types), " "));
  }
}

std::string subcommands(const std::vector<Place>& places) {
  std::vector<std::string> patterns;
  for (const Place& place : places) {
    for (const auto& inside : place.command->commands()) patterns.push_back(literal(place.words + ">" + inside->name()));
  }
  return join(patterns, " ");
}

std::string options_with_values(const std::vector<Place>& places) {
  std::vector<std::string> patterns;
  for (const Place& place : places) {
    for (const Command::Taken& option : place.command->options()) {
      if (completion::takes_value(option)) patterns.push_back(literal(place.words + ">" + option.option->get_name()));
    }
  }
  return join(patterns, " ");
}

std::string condition(const std::string& function, const std::string& words) {
  return "complete -c rlhf-run -n \"" + function + " '" + words + "'";
}

std::string option_line(const Place& place, const Command::Taken& option, const TypeNames& types) {
  std::string line = condition("__rlhf_run_in", place.words) + "\"";
  for (const std::string& name : option.option->get_lnames()) line += " -l " + name;
  for (const std::string& name : option.option->get_snames()) line += " -s " + name;
  if (completion::takes_value(option))
    line += (option.values.offer == Values::Offer::kFiles ? " -r" : " -x") + offer(option.values, types);
  return line + " -d " + literal(option.option->get_description()) + "\n";
}

std::string lines_of(const Place& place, const TypeNames& types) {
  std::string text;
  for (const auto& inside : place.command->commands())
    text += condition("__rlhf_run_at", place.words) + " 0\" -a " + inside->name() + " -d " + literal(inside->help()) + "\n";
  if (const auto& short_form = place.command->short_form())
    text += condition("__rlhf_run_at", place.words) + " 0\"" + offer(short_form->values, types) + "\n";
  for (size_t i = 0; i < place.command->arguments().size(); ++i) {
    const std::string offered = offer(place.command->arguments()[i].values, types);
    if (!offered.empty()) text += condition("__rlhf_run_at", place.words) + " " + std::to_string(i) + "\"" + offered + "\n";
  }
  for (const Command::Taken& option : place.command->options()) text += option_line(place, option, types);
  return text;
}

}  // namespace
}  // namespace in_fish

std::string fish_completion(const Command& program, const TypeNames& types) {
  using namespace in_fish;
  const std::vector<Place> places = completion::all_places(program);
  std::string lines;
  for (const Place& place : places) lines += lines_of(place, types);
  return completion::filled(kScript,
                            {{"COMMANDS", subcommands(places)}, {"VALUED", options_with_values(places)}, {"LINES", lines}});
}

}  // namespace sluice::cli
