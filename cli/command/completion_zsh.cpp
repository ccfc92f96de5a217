#include "base/text/strings.h"
#include "cli/command/completion.h"

namespace sluice::cli {
namespace in_zsh {
namespace {

using completion::Place;

constexpr std::string_view kScript = R"script(#compdef rlhf-run
# zsh completion for rlhf-run, made by `rlhf-run completion zsh`. Use it with
#   source <(rlhf-run completion zsh)
# after compinit, or put it as _rlhf-run into a folder of fpath.

_rlhf-run() {
  local command="" word previous
  local -i i places=0
  local -a offered
  for ((i = 2; i < CURRENT; i++)); do
    word=${words[i]}
    case "$command>$word" in
      ({{COMMANDS}}) command="${command:+$command }$word" ;;
      ({{VALUED}}) ((i++)) ;;
      (*">-"*) ;;
      (">"*.toml) command=run; ((places++)) ;;
      (*) ((places++)) ;;
    esac
  done
  previous=${words[CURRENT-1]}
  if [[ $PREFIX == --*=* ]]; then
    previous=${PREFIX%%=*}
    compset -P '*='
  fi

  case "$command>$previous" in
{{VALUES}}  esac
  if [[ $PREFIX == -* ]]; then
    case "$command" in
{{OPTIONS}}    esac
    _describe -o option offered
    return
  fi
  case "$command>$places" in
{{ARGUMENTS}}  esac
}

if [[ ${funcstack[1]} == _rlhf-run ]]; then
  _rlhf-run "$@"
else
  compdef _rlhf-run rlhf-run
fi
)script";

// Between single quotes.
std::string literal(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

// For _describe: a colon ends the name.
std::string described(const std::string& name, const std::string& help) {
  std::string escaped;
  for (const char c : name) escaped += c == ':' ? "\\:" : std::string(1, c);
  return literal(escaped + ":" + help);
}

std::string offer(const Values& values, const TypeNames& types) {
  switch (values.offer) {
    case Values::Offer::kNothing:
      return "_message " + literal(values.shown.empty() ? "value" : values.shown);
    case Values::Offer::kFiles:
      return "_files";
    case Values::Offer::kPipelines:
      return "_files -g '*.toml(-.)'";
    case Values::Offer::kFolders:
      return "_files -/";
    default:
      return "compadd -- " + join(completion::words_of(values, types), " ");
  }
}

std::string key(const std::string& words, const std::string& behind) { return "\"" + words + ">" + behind + "\""; }

std::string subcommands(const std::vector<Place>& places) {
  std::vector<std::string> patterns;
  for (const Place& place : places) {
    for (const auto& inside : place.command->commands()) patterns.push_back(key(place.words, inside->name()));
  }
  return join(patterns, "|");
}

std::string options_with_values(const std::vector<Place>& places) {
  std::vector<std::string> patterns;
  for (const Place& place : places) {
    for (const Command::Taken& option : place.command->options()) {
      if (completion::takes_value(option)) patterns.push_back(key(place.words, option.option->get_name()));
    }
  }
  return join(patterns, "|");
}

std::string values_of_options(const std::vector<Place>& places, const TypeNames& types) {
  std::string text;
  for (const Place& place : places) {
    for (const Command::Taken& option : place.command->options()) {
      if (!completion::takes_value(option)) continue;
      text += "    (" + key(place.words, option.option->get_name()) + ") " + offer(option.values, types) + "; return ;;\n";
    }
  }
  return text;
}

std::string options_of(const std::vector<Place>& places) {
  std::string text;
  for (const Place& place : places) {
    std::vector<std::string> lines;
    for (const Command::Taken& option : place.command->options()) {
      for (const std::string& name : completion::spellings(option))
        lines.push_back(described(name, option.option->get_description()));
    }
    text += "      (\"" + place.words + "\") offered=(" + join(lines, " ") + ") ;;\n";
  }
  return text;
}

std::string arguments_of(const std::vector<Place>& places, const TypeNames& types) {
  std::string text;
  for (const Place& place : places) {
    std::vector<std::string> lines;
    for (const auto& inside : place.command->commands()) lines.push_back(described(inside->name(), inside->help()));
    if (!lines.empty()) {
      const auto& short_form = place.command->short_form();
      const std::string also = short_form ? "; " + offer(short_form->values, types) : "";
      text += "    (" + key(place.words, "0") + ") offered=(" + join(lines, " ") + "); _describe -t commands subcommand offered" +
              also + " ;;\n";
    }
    for (size_t i = 0; i < place.command->arguments().size(); ++i)
      text += "    (" + key(place.words, std::to_string(i)) + ") " + offer(place.command->arguments()[i].values, types) + " ;;\n";
  }
  return text;
}

}  // namespace
}  // namespace in_zsh

std::string zsh_completion(const Command& program, const TypeNames& types) {
  using namespace in_zsh;
  const std::vector<Place> places = completion::all_places(program);
  return completion::filled(kScript, {{"COMMANDS", subcommands(places)},
                                      {"VALUED", options_with_values(places)},
                                      {"VALUES", values_of_options(places, types)},
                                      {"OPTIONS", options_of(places)},
                                      {"ARGUMENTS", arguments_of(places, types)}});
}

}  // namespace sluice::cli
