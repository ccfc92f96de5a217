#include "nodes/jsonl_prompts.h"

#include "nodes/columns.h"

namespace sluice::nodes {
namespace {

std::vector<JsonlField> fields_of(const JsonlPromptsParams& params) {
  std::vector<JsonlField> fields{{params.prompt_field, "prompt_field"}};
  if (!params.label_field.empty()) fields.push_back({params.label_field, "label_field"});
  return fields;
}

}  // namespace

void JsonlPrompts::describe(engine::Contract<JsonlPromptsParams>& c) {
  using P = JsonlPromptsParams;
  c.type("jsonl_prompts", "prompts and reference answers from a file of one JSON object a line");
  c.param("path", &P::path).required().must_exist().doc("the file");
  c.param("prompt_field", &P::prompt_field).doc("field of the prompt");
  c.param("label_field", &P::label_field).doc("field of the reference answer; empty: there is none");
  c.param("groups_per_iteration", &P::groups_per_iteration)
      .required()
      .at_least(1)
      .doc("prompts in each iteration")
      .unit("groups");
  c.param("shuffle", &P::shuffle).doc("another order in each epoch, fixed by the seed");
  c.param("epochs", &P::epochs).at_least(0).doc("times through the file; 0: without end");
  c.param("prefix", &P::prefix).doc("text before each prompt");
  c.param("suffix", &P::suffix).doc("text behind each prompt");
  c.writes(columns::kPrompt, columns::kLabel);
  c.needs([](const P& params, engine::NodeNeeds& needs) {
    needs.groups_per_iteration = params.groups_per_iteration;
    const int64_t text = longest_text(params.path);
    needs.string_bytes[columns::kPrompt.spec().name] = static_cast<int64_t>(params.prefix.size() + params.suffix.size()) + text;
    needs.string_bytes[columns::kLabel.spec().name] = params.label_field.empty() ? 0 : text;
  });
  c.check([](const P& params, engine::Findings& findings) {
    if (params.prompt_field.empty())
      findings.error("prompt_field", "prompt_field is empty", "name the field that holds the prompt");
  });
}

JsonlPrompts::JsonlPrompts(const JsonlPromptsParams& params, engine::NodeResources& resources)
    : params_(params),
      reader_(params.path, fields_of(params)),
      order_(resources.seed, reader_.rows(), params.shuffle, params.epochs) {}

bool JsonlPrompts::next_group(engine::Group& group) {
  const auto row = order_.row_at(static_cast<uint64_t>(group.iteration * params_.groups_per_iteration + group.index));
  if (!row) return false;
  std::vector<std::string> texts = reader_.texts(*row);
  group.layout.end_group();
  group.write(columns::kPrompt)[0] = params_.prefix + texts[0] + params_.suffix;
  group.write(columns::kLabel)[0] = params_.label_field.empty() ? std::string() : std::move(texts[1]);
  return true;
}

}  // namespace sluice::nodes
