#include "cli/recorded_samples.h"

#include <algorithm>

#include "base/error.h"
#include "base/path_kind.h"
#include "text/stream_decoder.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

template <class T>
const T* value_in(const engine::Table& table, const char* key) {
  const engine::Entry* entry = table.find(key);
  return entry == nullptr ? nullptr : std::get_if<T>(&entry->value.data);
}

std::vector<std::string> texts_in(const engine::Table& table, const char* key) {
  std::vector<std::string> texts;
  const auto* array = value_in<engine::Array>(table, key);
  if (array == nullptr) return texts;
  for (const engine::Value& value : *array) {
    if (const auto* text = std::get_if<std::string>(&value.data)) texts.push_back(*text);
  }
  return texts;
}

bool is_list_of_numbers(const Json& sample, const std::string& field) {
  return sample.contains(field) && sample[field].is_array() &&
         std::ranges::all_of(sample[field], [](const Json& value) { return value.is_number(); });
}

}  // namespace

std::vector<SampleRecord> sample_records(const engine::PipelineSpec& spec) {
  std::vector<SampleRecord> records;
  for (const engine::NodeSpec& node : spec.nodes) {
    if (node.type.text != "write_jsonl") continue;
    const auto* path = value_in<std::string>(node.params, "path");
    records.push_back({node.name.text, path == nullptr ? "samples.jsonl" : *path, texts_in(node.params, "fields")});
  }
  return records;
}

std::unique_ptr<text::Tokenizer> tokenizer_of_samples(const engine::PipelineSpec& spec) {
  for (const engine::ModelSpec& model : spec.models) {
    const auto* folder = value_in<std::string>(model.params, "checkpoint");
    if (folder == nullptr || folder->empty() || !is_file(text::tokenizer_file_in(*folder))) continue;
    try {
      return std::make_unique<text::Tokenizer>(text::Tokenizer::load(*folder));
    } catch (const UserError&) {
      return nullptr;  // samples are shown without it
    }
  }
  return nullptr;
}

Json sample_in(const std::string& line, const std::string& place) {
  Json sample = parse_json(line, place);
  if (!sample.is_object()) throw UserError(place + " is no sample");
  return sample;
}

std::optional<NumberedTokens> numbered_tokens(const Json& sample, const std::string& field, const text::Tokenizer& tokenizer) {
  if (!is_list_of_numbers(sample, "tokens") || !is_list_of_numbers(sample, field)) return std::nullopt;
  const Json &tokens = sample["tokens"], &numbers = sample[field];
  if (numbers.empty() || numbers.size() > tokens.size()) return std::nullopt;
  const size_t first = tokens.size() - numbers.size();
  text::StreamDecoder decoder(tokenizer);
  NumberedTokens numbered;
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::string text = decoder.push(tokens[i].get<int64_t>());
    if (i >= first) numbered.emplace_back(std::move(text), numbers[i - first].get<double>());
  }
  numbered.back().first += decoder.finish();
  return numbered;
}

}  // namespace sluice::cli
