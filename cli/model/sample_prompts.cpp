#include "cli/model/sample_prompts.h"

#include <iostream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/text/strings.h"
#include "data/jsonl_reader.h"
#include "data/source_files.h"
#include "text/chat/chat_template.h"

namespace sluice::cli {
namespace {

// Without the end of its last line: an editor or a shell wrote that, not who asks.
std::string standard_input() {
  std::string text{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  if (text.ends_with('\n')) text.resize(text.size() - (text.ends_with("\r\n") ? 2 : 1));
  return text;
}

Json as_user(const Json& text) { return Json::array({{{"role", "user"}, {"content", text}}}); }

// A template writes the special tokens itself.
std::vector<int64_t> rendered(const text::ChatTemplate& chat, const Json& messages, const text::Tokenizer& tokenizer) {
  return tokenizer.encode(chat.render(messages, {.add_generation_prompt = true}));
}

text::ChatTemplate template_in(const std::filesystem::path& folder) {
  if (!text::ChatTemplate::is_in(folder))
    throw UserError(folder.string() + " has no chat template, which --chat needs",
                    "put it into the folder as chat_template.jinja; without --chat a prompt is sent as it is");
  return text::ChatTemplate::load(folder);
}

class OnePrompt final : public SamplePrompts {
 public:
  explicit OnePrompt(Prompt prompt) : prompt_(std::move(prompt)) {}

  size_t count() const override { return 1; }
  Prompt at(size_t) const override { return prompt_; }
  SourceSpan where(size_t) const override { return {}; }

 private:
  Prompt prompt_;
};

class PromptRows final : public SamplePrompts {
 public:
  PromptRows(const SampleArguments& arguments, const text::Tokenizer& tokenizer)
      : tokenizer_(tokenizer),
        chats_(arguments.chat),
        rows_(data::source_files({arguments.prompts}),
              {{.name = arguments.prompt_field, .param = "--prompt-field", .kind = data::FieldKind::kTextOrMessages}}) {
    if (chats_ || text::ChatTemplate::is_in(arguments.folder)) template_ = template_in(arguments.folder);
  }

  size_t count() const override { return rows_.rows(); }

  Prompt at(size_t row) const override {
    const Json value = rows_.values(row).front();
    if (value.is_array()) return of_messages(value, value, row);
    const std::string text = data::text_of(value);
    if (chats_) return of_messages(text, as_user(text), row);
    return {.written = text, .ids = tokenizer_.encode(text, /*add_special=*/true)};
  }

  SourceSpan where(size_t row) const override { return rows_.where(row); }

 private:
  Prompt of_messages(const Json& written, const Json& messages, size_t row) const {
    if (!template_)
      throw UserError(Problem{.where = where(row),
                              .message = "the prompt is a conversation, and the model has no chat template",
                              .help = "add chat_template.jinja to its folder, or name a field of text with --prompt-field"});
    try {
      return {.written = written, .ids = rendered(*template_, messages, tokenizer_)};
    } catch (const UserError& error) {
      Problems problems = error.problems();
      problems.front().where = where(row);
      throw UserError(std::move(problems));
    }
  }

  const text::Tokenizer& tokenizer_;
  const bool chats_;
  data::JsonlReader rows_;
  std::optional<text::ChatTemplate> template_;
};

}  // namespace

std::unique_ptr<SamplePrompts> sample_prompts(const SampleArguments& arguments, const text::Tokenizer& tokenizer) {
  if (!arguments.prompts.empty()) return std::make_unique<PromptRows>(arguments, tokenizer);
  const std::string text = arguments.prompt ? *arguments.prompt : standard_input();
  if (!is_utf8(text)) throw UserError("the prompt is not UTF-8");
  std::vector<int64_t> ids = arguments.chat ? rendered(template_in(arguments.folder), as_user(text), tokenizer)
                                            : tokenizer.encode(text, /*add_special=*/true);
  return std::make_unique<OnePrompt>(SamplePrompts::Prompt{.written = text, .ids = std::move(ids)});
}

}  // namespace sluice::cli
