#include "text/tokenizer/tokenizer_template.h"

#include "base/text/strings.h"
#include "text/tokenizer/tokenizer_json.h"

namespace sluice::text {
namespace {

constexpr const char* kPostProcessorTypes = "ByteLevel, TemplateProcessing, RobertaProcessing, BertProcessing, Sequence";

int64_t read_id(const JsonPart& part, size_t ids) {
  const int64_t id = part.integer();
  if (id < 0 || static_cast<size_t>(id) >= ids) part.fail("no token has id " + std::to_string(id));
  return id;
}

void surround(TextFrame& frame, const TextFrame& by) {
  frame.prefix.insert(frame.prefix.begin(), by.prefix.begin(), by.prefix.end());
  frame.suffix.insert(frame.suffix.end(), by.suffix.begin(), by.suffix.end());
}

TextFrame read_template(const JsonPart& processor, size_t ids) {
  TextFrame frame;
  int texts = 0;
  for (const JsonPart& part : processor.at("single").elements()) {
    if (part.has("Sequence")) {
      ++texts;
      continue;
    }
    const std::string name = part.at("SpecialToken").at("id").string();
    auto& side = texts == 0 ? frame.prefix : frame.suffix;
    for (const JsonPart& id : processor.at("special_tokens").at(name.c_str()).at("ids").elements())
      side.push_back(read_id(id, ids));
  }
  if (texts != 1) {
    processor.at("single").fail_unsupported("a template without exactly one Sequence", "one Sequence among SpecialTokens");
  }
  return frame;
}

// "cls" and "sep" are pairs of token and id.
int64_t read_pair(const JsonPart& part, size_t ids) {
  const auto pair = part.elements();
  if (pair.size() != 2) part.fail("[TOKEN, ID] was expected here");
  return read_id(pair[1], ids);
}

void read(const JsonPart& processor, size_t ids, TextFrame& frame) {
  const std::string type = processor.type();
  if (type == "ByteLevel") return;  // only moves offsets, which nobody asks for here
  if (type == "TemplateProcessing") {
    surround(frame, read_template(processor, ids));
  } else if (type == "RobertaProcessing" || type == "BertProcessing") {
    surround(frame, {{read_pair(processor.at("cls"), ids)}, {read_pair(processor.at("sep"), ids)}});
  } else if (type == "Sequence") {
    for (const JsonPart& element : processor.at("processors").elements()) read(element, ids, frame);
  } else {
    processor.fail_unsupported("post_processor type " + sluice::quoted(type), kPostProcessorTypes);
  }
}

}  // namespace

TextFrame read_post_processor(const JsonPart& part, size_t ids) {
  TextFrame frame;
  if (!part.is_null()) read(part, ids, frame);
  return frame;
}

}  // namespace sluice::text
