#include "cli/init/init_data.h"

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "base/text/strings.h"
#include "data/jsonl_reader.h"
#include "data/messages.h"
#include "data/row_parser.h"
#include "data/source_files.h"

namespace sluice::cli {
namespace {

constexpr size_t kLookedAt = 20'000;

using Names = std::vector<std::string>;

// As data sets call them; the first that fits is taken.
const Names& conversation_names() {
  static const Names names{"messages", "conversations", "conversation", "prompt"};
  return names;
}

const Names& prompt_names() {
  static const Names names{"prompt", "question", "problem", "instruction", "query", "input", "text"};
  return names;
}

const Names& answer_names() {
  static const Names names{"answer", "label",  "solution",        "ground_truth", "reward_model.ground_truth",
                           "target", "output", "expected_answer", "final_answer", "response"};
  return names;
}

const Names& completion_names() {
  static const Names names{"completion", "response", "output", "answer", "solution", "target", "label"};
  return names;
}

bool is_text(const Json& value) { return value.is_string() || value.is_number(); }

bool is_conversation(const Json& value) { return !data::fault_of_messages(value); }

std::string last_role(const Json& messages) {
  const Json last = data::with_roles(messages).back();
  return last["role"].is_string() ? last["role"].get<std::string>() : std::string();
}

std::string kind_of(const Json& value) {
  if (is_conversation(value)) return "a conversation";
  return value.is_array()     ? "a list"
         : value.is_object()  ? "an object"
         : value.is_null()    ? "null"
         : value.is_boolean() ? "true or false"
         : value.is_number()  ? "a number"
                              : "a text";
}

std::string fields_text(const Json& row) {
  Names parts;
  for (const auto& [name, value] : row.items()) {
    parts.push_back(name + " (" + kind_of(value) + ")");
    if (!value.is_object()) continue;
    for (const auto& [inner, inside] : value.items()) parts.push_back(name + "." + inner + " (" + kind_of(inside) + ")");
  }
  return parts.empty() ? "it has none" : join(parts, ", ");
}

/// Looks for the fields of one file.
class FieldSearch {
 public:
  FieldSearch(const InitData& data, const std::string& file, const GivenFields& given)
      : data_(data), file_(file), given_(given) {}

  InitFields answers() const {
    InitFields fields = prompt("user");
    fields.answer = needed("the answer", given_.answer, "--answer-field", answer_names(), is_text);
    return fields;
  }

  InitFields completions() const {
    const std::string messages = given_.answer.empty() ? conversation_that_ends_with("assistant") : std::string();
    if (!messages.empty()) return {.messages = messages};
    InitFields fields = prompt("user");
    const bool is_messages = !fields.messages.empty();
    fields.answer = needed("what is to be learned", given_.answer, "--answer-field", completion_names(),
                           [&](const Json& value) { return is_text(value) || (is_messages && is_conversation(value)); });
    if (is_messages) fields.prompt = {std::move(fields.messages)}, fields.messages.clear();  // both are given by name
    return fields;
  }

  InitFields pairs() const {
    const auto is_side = [](const Json& value) { return is_text(value) || is_conversation(value); };
    InitFields fields;
    fields.chosen = needed("the better completion", {}, {}, {"chosen", "preferred", "better"}, is_side);
    fields.rejected = needed("the worse completion", {}, {}, {"rejected", "dispreferred", "worse"}, is_side);
    fields.pairs_are_messages = is_conversation(*data::find_field(data_.rows.front(), fields.chosen));
    if (!given_.prompt.empty()) {
      fields.prompt = {needed("the prompt", given_.prompt, "--prompt-field", {}, is_side)};
    } else if (const std::string name = found(prompt_names(), is_side); !name.empty()) {
      fields.prompt = {name};
    }
    return fields;
  }

 private:
  using Fits = std::function<bool(const Json&)>;

  bool is_in_every_row(const std::string& name, const Fits& fits) const {
    return std::ranges::all_of(data_.rows, [&](const Json& row) {
      const Json* value = data::find_field(row, name);
      return value != nullptr && fits(*value);
    });
  }

  std::string found(const Names& names, const Fits& fits) const {
    const auto name = std::ranges::find_if(names, [&](const std::string& n) { return is_in_every_row(n, fits); });
    return name == names.end() ? std::string() : *name;
  }

  // Of what some rows have; empty: none has any.
  std::string first_without(const Names& names, const Fits& fits) const {
    const auto fits_in = [&](const Json& row, const std::string& name) {
      const Json* value = data::find_field(row, name);
      return value != nullptr && fits(*value);
    };
    for (const std::string& name : names) {
      const auto has = [&](const Json& row) { return fits_in(row, name); };
      const auto count = std::ranges::count_if(data_.rows, has);
      if (count == 0) continue;
      const auto without = std::ranges::find_if_not(data_.rows, has);
      const auto number = without - data_.rows.begin() + 1;
      return sluice::quoted(name) + " is in " + std::to_string(count) + " of " + plural(std::ssize(data_.rows), "row") +
             ", and not in row " + std::to_string(number) + ", which has: " + fields_text(*without);
    }
    return {};
  }

  // Of a field that the first row has; empty: it has none of these, or they fit.
  std::string of_another_kind(const Names& names, const Fits& fits) const {
    for (const std::string& name : names) {
      const Json* value = data::find_field(data_.rows.front(), name);
      if (value != nullptr && !fits(*value))
        return sluice::quoted(name) + " is " + kind_of(*value) + " in row 1, which is not taken for it";
    }
    return {};
  }

  std::string conversation_that_ends_with(const std::string& role) const {
    const Names names = given_.prompt.empty() ? conversation_names() : Names{given_.prompt};
    return found(names, [&](const Json& value) { return is_conversation(value) && last_role(value) == role; });
  }

  InitFields prompt(const std::string& last_role) const {
    if (const std::string messages = conversation_that_ends_with(last_role); !messages.empty()) return {.messages = messages};
    InitFields fields;
    fields.prompt = {needed("the prompt", given_.prompt, "--prompt-field", prompt_names(), is_text,
                            "; or a conversation in " + join(conversation_names(), ", ") + " that ends with the " + last_role)};
    // Alpaca's two, of which the second may be empty.
    if (fields.prompt.front() == "instruction" && given_.prompt.empty() && is_in_every_row("input", is_text))
      fields.prompt.emplace_back("input");
    return fields;
  }

  // `given`: what the user named by `option`. `also`: what else would do.
  std::string needed(const std::string& what, const std::string& given, const std::string& option, const Names& names,
                     const Fits& fits, const std::string& also = {}) const {
    const Names tried = given.empty() ? names : Names{given};
    if (std::string name = found(tried, fits); !name.empty()) return name;
    Problem problem{.message = given.empty() ? what + " is not found in " + file_
                                             : "not every row of " + file_ + " has " + what + " in " + sluice::quoted(given)};
    problem.notes.push_back("looked for, in every row: " + join(tried, ", ") + also);
    std::string why = first_without(tried, fits);
    if (why.empty()) why = of_another_kind(tried, fits);
    if (!why.empty()) problem.notes.push_back(why);
    problem.notes.push_back("the first row has: " + fields_text(data_.rows.front()));
    problem.help = option.empty() ? "pairs are rows with prompt, chosen and rejected"
                                  : option + " NAME names it; a.b is the field b of the object a";
    throw UserError(std::move(problem));
  }

  const InitData& data_;
  const std::string& file_;
  const GivenFields& given_;
};

}  // namespace

InitData read_init_data(const std::filesystem::path& path) {
  const data::JsonlReader reader(data::source_files({path}), {});
  InitData data{.rows = {}, .count = reader.rows()};
  for (size_t row = 0; row < std::min(reader.rows(), kLookedAt); ++row)
    data.rows.push_back(parse_json(reader.text_of(row), path.string() + ", row " + std::to_string(row + 1)));
  return data;
}

InitFields find_fields(const InitData& data, const std::string& file, InitNeeds needs, const GivenFields& given) {
  const FieldSearch search(data, file, given);
  return needs == InitNeeds::kAnswers ? search.answers() : needs == InitNeeds::kPairs ? search.pairs() : search.completions();
}

std::string text_of_field(const Json& row, const std::string& name) {
  const Json* value = data::find_field(row, name);
  return value == nullptr ? std::string() : data::text_of(*value);
}

}  // namespace sluice::cli
