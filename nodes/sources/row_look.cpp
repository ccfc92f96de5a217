#include "nodes/sources/row_look.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"
#include "base/json/json.h"
#include "base/text/strings.h"
#include "base/text/utf8.h"
#include "text/chat/chat_template.h"

namespace sluice::nodes {
namespace {

// In quotes, with its beginning and its end.
std::string shown(const std::string& text) {
  constexpr size_t kMost = 160, kHalf = 75;
  if (text.size() <= kMost) return sluice::quoted(text);
  size_t first = kHalf, last = text.size() - kHalf;
  while (first > 0 && is_continuation(text[first])) --first;
  while (last < text.size() && is_continuation(text[last])) ++last;
  return sluice::quoted(text.substr(0, first)) + " ... " + sluice::quoted(text.substr(last));
}

// Nothing where the template refuses it: then there is no example.
std::optional<std::string> as_chat(const std::filesystem::path& folder, const std::string& prompt) {
  try {
    return text::ChatTemplate::load(folder).render(one_turn("user", prompt), {.add_generation_prompt = true});
  } catch (const UserError&) {
    return std::nullopt;
  }
}

// Of the first row that has some.
std::optional<std::string> first_input(const data::DatasetOptions& options) {
  const data::JsonlField input{.name = "input", .param = "prompt_fields", .required = false};
  try {
    const data::Dataset rows(options, {input});
    for (size_t source = 0; source < rows.sources(); ++source) {
      for (size_t row = 0; row < rows.rows(source); ++row) {
        if (std::string text = rows.texts({source, row}).front(); !text.empty()) return text;
      }
    }
  } catch (const UserError&) {
    // An "input" that is no text belongs to somebody's own format.
  }
  return std::nullopt;
}

// As datasets call what is beside a text.
constexpr std::array<std::string_view, 6> kMedia{"image", "images", "video", "videos", "audio", "audios"};

struct Media {
  std::string field;
  SourceSpan where;
};

bool is_read(const std::vector<data::JsonlField>& read, std::string_view field) {
  return std::ranges::any_of(
      read, [&](const data::JsonlField& one) { return one.name == field || one.name.starts_with(std::string(field) + "."); });
}

// That is there: columns that many rows share are null or empty in others.
bool has_media(const Json& row, std::string_view field) {
  const auto found = row.is_object() ? row.find(field) : row.end();
  if (!row.is_object() || found == row.end()) return false;
  return found->is_string() ? !found->get_ref<const std::string&>().empty() : found->is_structured() && !found->empty();
}

// Of the first row that has some which nothing reads.
std::optional<Media> first_media(const data::DatasetOptions& options, const std::vector<data::JsonlField>& read) {
  try {
    const data::Dataset rows(options, {});
    for (size_t source = 0; source < rows.sources(); ++source) {
      for (size_t row = 0; row < rows.rows(source); ++row) {
        const Json fields = json_or_discarded(rows.text_of({source, row}));
        for (const std::string_view field : kMedia) {
          if (!is_read(read, field) && has_media(fields, field)) return Media{std::string(field), rows.where({source, row})};
        }
      }
    }
  } catch (const UserError&) {
    // Of fields that nothing reads no error is one.
  }
  return std::nullopt;
}

const char* key_of(const PromptFormat& format) {
  if (!format.prompt_template.empty()) return "prompt_template";
  return format.prompt_fields.empty() ? "prompt_field" : "prompt_fields";
}

// Of the first call whose arguments are JSON in a text.
std::optional<std::string> arguments_in_text(const Json& messages) {
  if (!messages.is_array()) return std::nullopt;
  for (const Json& message : messages) {
    const auto calls = message.is_object() ? message.find("tool_calls") : message.end();
    if (!message.is_object() || calls == message.end() || !calls->is_array()) continue;
    for (const Json& call : *calls) {
      const Json& called = call.is_object() && call.contains("function") ? call["function"] : call;
      if (!called.is_object() || !called.contains("arguments") || !called["arguments"].is_string()) continue;
      const auto& text = called["arguments"].get_ref<const std::string&>();
      if (json_or_discarded(text).is_object()) return text;
    }
  }
  return std::nullopt;
}

// Whether they stand in the text of the conversation as a text of JSON. What is wrong with template and messages is told
// elsewhere.
bool are_quoted(const std::filesystem::path& folder, const Json& messages, const std::string& arguments) {
  try {
    return text::ChatTemplate::load(folder).render(messages).find(Json(arguments).dump()) != std::string::npos;
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace

bool has_needed_template(const PromptFormat& format, const std::string& model, engine::DataLook& look) {
  if (!format.uses_template() || text::ChatTemplate::is_in(look.folder_of(model))) return true;
  const bool reads_messages = format.reads_messages();
  const std::string key = reads_messages ? "messages_field" : "chat";
  look.error(key,
             key + " needs a chat template, and model '" + model + "' has none: its folder has neither chat_template.jinja nor " +
                 "\"chat_template\" in tokenizer_config.json",
             reads_messages ? "name another model, or put a template into its folder"
                            : "chat = false sends the prompts as they are; or put a template into its folder");
  return false;
}

void RowLook::warn(const std::optional<std::string>& first_prompt) const {
  if (first_prompt) warn_of_skipped_template(*first_prompt);
  warn_of_skipped_fields();
  warn_of_quoted_arguments();
  unknown_.warn(look_);
  warn_of_few_rows();
}

// Where `prompt`, the first one, is sent as it is although nobody said so and the model has a chat template.
void RowLook::warn_of_skipped_template(const std::string& prompt) const {
  const std::string name = model_.empty() ? look_.sampled_model() : model_;
  const std::filesystem::path folder = look_.folder_of(name);
  if (format_.chat || format_.uses_template() || folder.empty() || !text::ChatTemplate::is_in(folder)) return;
  std::vector<std::string> notes{"the first one, as it is now: " + shown(prompt)};
  if (const auto chat = as_chat(folder, prompt)) notes.push_back("with chat = true: " + shown(*chat));
  const std::string with_model = model_.empty() ? " with model = " + sluice::quoted(name) : std::string();
  look_.warning(key_of(format_), "prompts are sent as they are, without the chat template that model '" + name + "' has", notes,
                "chat = true" + with_model + ", or chat = false if that is meant");
}

// Where something belongs to the prompts of the first rows that nothing would read: an "input" where the prompt is "instruction"
// alone, as Alpaca's rows have it; images, videos or sounds.
void RowLook::warn_of_skipped_fields() const {
  data::DatasetOptions first_rows = options_;
  first_rows.most_rows = kFirstRows;
  if (const auto media = first_media(first_rows, fields_)) {
    look_.warning("path", "rows have \"" + media->field + "\", which no prompt would have: models here read text alone",
                  {"the first one: " + media->where.source->name + ":" + std::to_string(media->where.line)},
                  "leave such rows out; or that field, where the prompts mean the same without it");
  }
  const bool reads_several = !format_.prompt_fields.empty() || !format_.prompt_template.empty() || format_.reads_messages();
  if (reads_several || format_.prompt_field != "instruction") return;
  const std::optional<std::string> input = first_input(first_rows);
  if (!input) return;
  look_.warning("prompt_field", "rows have an \"input\" beside their \"instruction\", which no prompt would have",
                {"the first one: " + shown(*input)},
                "prompt_fields = [\"instruction\", \"input\"] puts both into the prompt; drop prompt_field");
}

// Where the first rows have tool calls whose arguments are a text, as servers of OpenAI's form give them, and the template of the
// model writes them as one: quoted, which no model does.
void RowLook::warn_of_quoted_arguments() const {
  const std::filesystem::path folder = look_.folder_of(model_.empty() ? look_.sampled_model() : model_);
  if (folder.empty()) return;
  for (size_t source = 0; source < rows_.sources(); ++source) {
    for (size_t row = 0; row < std::min(rows_.rows(source), kFirstRows); ++row) {
      for (const Json& messages : rows_.values({source, row})) {
        const std::optional<std::string> arguments = arguments_in_text(messages);
        if (!arguments) continue;
        if (!are_quoted(folder, messages, *arguments)) return;  // so are those of all others
        return look_.warning("model", "the arguments of tool calls are texts, and the chat template writes them quoted",
                             {"the first ones: " + shown(*arguments) + ", written as " + shown(Json(*arguments).dump())},
                             "write arguments as JSON objects, as transformers wants them: {\"arguments\": {...}}");
      }
    }
  }
}

// Where the rows are fewer than a run has groups for: its data end early, or some count oftener than others where a path
// measures. Of long files, of which only the beginning is known, nothing is told.
void RowLook::warn_of_few_rows() const {
  const bool knows_all = look_.all() || rows_.rows() < kFirstRows;
  if (!knows_all || draws_.mixed) return;
  const auto count = static_cast<int64_t>(rows_.rows()), groups = draws_.groups_per_iteration;
  const std::string has = plural(count, "row");
  if (look_.measures() && draws_.epochs != 1 && groups > count && groups % count != 0)
    look_.warning("groups_per_iteration",
                  "a measurement takes " + std::to_string(groups) + " of " + has + ": some count oftener than others", {},
                  "groups_per_iteration <= " + std::to_string(count) + ", or epochs = 1");
  if (look_.measures() || draws_.epochs == 0 || !look_.all()) return;  // a file may be a stand-in for the one that will be there
  const int64_t lasts = count * draws_.epochs / groups;
  if (lasts >= look_.iterations()) return;
  look_.warning("epochs",
                "the data end after " + std::string(look_.refills() ? "at most " : "") + std::to_string(lasts) + " of " +
                    plural(look_.iterations(), "iteration") + ": schedules and measurements do not come to their end",
                {has + ", " + plural(draws_.epochs, "epoch") + ", " + plural(groups, "group") + " an iteration"},
                "iterations = " + std::to_string(std::max<int64_t>(1, lasts)) + " in [pipeline], or epochs = 0");
}

}  // namespace sluice::nodes
