#include "cli/command/completion.h"

#include "base/error.h"

namespace sluice::cli::completion {
namespace {

void collect(const Command& command, const std::string& words, std::vector<Place>& places) {
  places.push_back({words, &command});
  for (const auto& inside : command.commands()) collect(*inside, words + (words.empty() ? "" : " ") + inside->name(), places);
}

}  // namespace

std::vector<Place> all_places(const Command& program) {
  std::vector<Place> places;
  collect(program, "", places);
  return places;
}

std::vector<std::string> words_of(const Values& values, const TypeNames& types) {
  if (values.offer == Values::Offer::kDescribedTypes) return types.described;
  if (values.offer == Values::Offer::kTriedTypes) return types.tried;
  return values.words;
}

bool takes_value(const Command::Taken& option) { return option.option->get_items_expected_max() > 0; }

std::vector<std::string> spellings(const Command::Taken& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.option->get_lnames()) names.push_back("--" + name);
  for (const std::string& name : option.option->get_snames()) names.push_back("-" + name);
  return names;
}

std::string filled(std::string_view text, const std::vector<std::pair<std::string, std::string>>& names) {
  std::string out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t open = text.find("{{", begin), close = text.find("}}", open);
    out += text.substr(begin, open == std::string_view::npos ? open : open - begin);
    if (open == std::string_view::npos) break;
    const std::string_view name = text.substr(open + 2, close - open - 2);
    bool known = false;
    for (const auto& [of, replacement] : names) {
      if (of == name) out += replacement;
      known = known || of == name;
    }
    SLUICE_CHECK(known, "a script names " + std::string(name));
    begin = close + 2;
  }
  return out;
}

}  // namespace sluice::cli::completion
