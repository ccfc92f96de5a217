#include "base/text/strings.h"
#include "cli/command/completion.h"

namespace sluice::cli {
namespace in_bash {
namespace {

using completion::Place;

// Works without the package bash-completion, and with the bash 3.2 of macOS.
constexpr std::string_view kScript = R"script(# bash completion for rlhf-run, made by `rlhf-run completion bash`. Use it with
#   source <(rlhf-run completion bash)

_rlhf_run_words() {
  local word
  while IFS= read -r word; do
    COMPREPLY+=("${word#"$broken"}")
  done < <(compgen -W "$1" -- "$typed")
}

# Folders, and files whose name is like the pattern $1.
_rlhf_run_files() {
  local name
  compopt -o filenames 2>/dev/null
  while IFS= read -r name; do
    if [[ -d ${name/#\~/$HOME} || $name == $1 ]]; then COMPREPLY+=("${name#"$broken"}"); fi
  done < <(compgen -f -- "$typed")
}

_rlhf_run() {
  local typed previous broken command="" glue="" word last=-1 places=0 i
  local -a words
  COMPREPLY=()
  # bash breaks at : and =. Here objective:gspo is one word again, and --format=dot is two.
  for ((i = 1; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ $word == = && $last -ge 0 && ${words[last]} == --* ]]; then
      glue=""
      if ((i == COMP_CWORD)); then words[++last]=""; fi
    elif [[ $last -ge 0 && ( $word == : || $word == = ) ]]; then
      words[last]+=$word
      glue=1
    elif [[ $glue ]]; then
      words[last]+=$word
      glue=""
    else
      words[++last]=$word
    fi
  done
  typed=${words[last]}
  word=${COMP_WORDS[COMP_CWORD]}
  if [[ $word == [:=] ]]; then word=""; fi
  broken=${typed%"$word"}  # what bash keeps by itself
  if ((last > 0)); then previous=${words[last - 1]}; fi

  for ((i = 0; i < last; i++)); do
    word=${words[i]}
    case "$command>$word" in
      {{COMMANDS}}) command="${command:+$command }$word" ;;
      {{VALUED}}) ((i++)) ;;
      *">-"*) ;;
      ">"*.toml) command=run; ((places++)) ;;
      *) ((places++)) ;;
    esac
  done

  case "$command>$previous" in
{{VALUES}}  esac
  if [[ $typed == -* ]]; then
    case "$command" in
{{OPTIONS}}    esac
    return
  fi
  case "$command>$places" in
{{ARGUMENTS}}  esac
}

complete -F _rlhf_run rlhf-run
)script";

std::string quoted_word(const std::string& text) { return "\"" + text + "\""; }

std::string offer(const Values& values, const TypeNames& types) {
  switch (values.offer) {
    case Values::Offer::kNothing:
      return {};
    case Values::Offer::kFiles:
      return "_rlhf_run_files '*'";
    case Values::Offer::kPipelines:
      return "_rlhf_run_files '*.toml'";
    case Values::Offer::kFolders:
      return "_rlhf_run_files ''";
    default:
      return "_rlhf_run_words '" + join(completion::words_of(values, types), " ") + "'";
  }
}

std::string subcommands(const std::vector<Place>& places) {
  std::vector<std::string> patterns;
  for (const Place& place : places) {
    for (const auto& inside : place.command->commands()) patterns.push_back(quoted_word(place.words + ">" + inside->name()));
  }
  return join(patterns, " | ");
}

std::string options_with_values(const std::vector<Place>& places) {
  std::vector<std::string> patterns;
  for (const Place& place : places) {
    for (const Command::Taken& option : place.command->options()) {
      if (!completion::takes_value(option)) continue;
      for (const std::string& name : completion::spellings(option)) patterns.push_back(quoted_word(place.words + ">" + name));
    }
  }
  return join(patterns, " | ");
}

std::string values_of_options(const std::vector<Place>& places, const TypeNames& types) {
  std::string text;
  for (const Place& place : places) {
    for (const Command::Taken& option : place.command->options()) {
      if (!completion::takes_value(option)) continue;
      const std::string offered = offer(option.values, types);
      text += "    " + quoted_word(place.words + ">" + option.option->get_name()) + ") " + offered +
              (offered.empty() ? "" : "; ") + "return ;;\n";
    }
  }
  return text;
}

std::string options_of(const std::vector<Place>& places) {
  std::string text;
  for (const Place& place : places) {
    std::vector<std::string> names;
    for (const Command::Taken& option : place.command->options()) {
      for (std::string& name : completion::spellings(option)) names.push_back(std::move(name));
    }
    text += "      " + quoted_word(place.words) + ") _rlhf_run_words '" + join(names, " ") + "' ;;\n";
  }
  return text;
}

// Where subcommands are expected, also what is short for one of them.
std::string arguments_of(const std::vector<Place>& places, const TypeNames& types) {
  std::string text;
  for (const Place& place : places) {
    std::vector<std::string> names;
    for (const auto& inside : place.command->commands()) names.push_back(inside->name());
    if (!names.empty()) {
      const auto& short_form = place.command->short_form();
      const std::string also = short_form ? "; " + offer(short_form->values, types) : "";
      text += "    " + quoted_word(place.words + ">0") + ") _rlhf_run_words '" + join(names, " ") + "'" + also + " ;;\n";
    }
    for (size_t i = 0; i < place.command->arguments().size(); ++i) {
      const std::string offered = offer(place.command->arguments()[i].values, types);
      if (!offered.empty()) text += "    " + quoted_word(place.words + ">" + std::to_string(i)) + ") " + offered + " ;;\n";
    }
  }
  return text;
}

}  // namespace
}  // namespace in_bash

std::string bash_completion(const Command& program, const TypeNames& types) {
  using namespace in_bash;
  const std::vector<Place> places = completion::all_places(program);
  return completion::filled(kScript, {{"COMMANDS", subcommands(places)},
                                      {"VALUED", options_with_values(places)},
                                      {"VALUES", values_of_options(places, types)},
                                      {"OPTIONS", options_of(places)},
                                      {"ARGUMENTS", arguments_of(places, types)}});
}

}  // namespace sluice::cli
