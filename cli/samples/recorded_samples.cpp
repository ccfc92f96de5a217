#include "cli/samples/recorded_samples.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/error.h"
#include "base/files/path_kind.h"
#include "text/tokenizer/stream_decoder.h"

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

// Of each action, by its place among so many tokens; nothing: they are not as many, or none.
std::optional<std::map<size_t, double>> numbers_by_place(const Json& sample, const Json& numbers, size_t tokens) {
  const bool has_places = is_list_of_numbers(sample, "action_tokens");
  if (numbers.empty() || numbers.size() > tokens) return std::nullopt;
  const auto is_place = [](const Json& place) { return place.is_number_unsigned(); };
  if (has_places && (sample["action_tokens"].size() != numbers.size() || !std::ranges::all_of(sample["action_tokens"], is_place)))
    return std::nullopt;
  std::map<size_t, double> by_place;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const size_t place = has_places ? sample["action_tokens"][i].get<size_t>() : tokens - numbers.size() + i;
    if (place < tokens) by_place[place] = numbers[i].get<double>();
  }
  return by_place.size() == numbers.size() ? std::optional(by_place) : std::nullopt;
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
  const Json& tokens = sample["tokens"];
  const auto by_place = numbers_by_place(sample, sample[field], tokens.size());
  if (!by_place) return std::nullopt;
  text::StreamDecoder decoder(tokenizer);
  NumberedTokens numbered;
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::string text = decoder.push(tokens[i].get<int64_t>());
    const auto number = by_place->find(i);
    const bool has_number = number != by_place->end();
    if (has_number || !numbered.empty())
      numbered.emplace_back(std::move(text), has_number ? number->second : std::numeric_limits<double>::quiet_NaN());
  }
  numbered.back().first += decoder.finish();
  return numbered;
}

}  // namespace sluice::cli
