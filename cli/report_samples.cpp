#include "cli/report_samples.h"

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/path_kind.h"
#include "cli/report_files.h"
#include "data/row_file.h"
#include "text/tokenizer.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

constexpr size_t kLongestText = 4000;  // bytes of a field
constexpr size_t kMostPieces = 600;    // of a sample
constexpr size_t kStride = 7919;       // a prime

std::string text_of(const engine::Table& table, const char* key) {
  const engine::Entry* entry = table.find(key);
  const auto* text = entry == nullptr ? nullptr : std::get_if<std::string>(&entry->value.data);
  return text == nullptr ? std::string() : *text;
}

std::vector<fs::path> sample_files(const fs::path& run_folder, const engine::PipelineSpec& spec) {
  std::vector<fs::path> files;
  for (const engine::NodeSpec& node : spec.nodes) {
    if (node.type.text != "write_jsonl") continue;
    const std::string path = text_of(node.params, "path");
    if (auto file = file_of_run(run_folder, path.empty() ? "samples.jsonl" : path)) files.push_back(std::move(*file));
  }
  return files;
}

// Of the first model whose folder has one; null: it is gone.
std::unique_ptr<text::Tokenizer> tokenizer_of(const engine::PipelineSpec& spec) {
  for (const engine::ModelSpec& model : spec.models) {
    const std::string folder = text_of(model.params, "checkpoint");
    if (folder.empty() || !is_file(fs::path(folder) / "tokenizer.json")) continue;
    try {
      return std::make_unique<text::Tokenizer>(text::Tokenizer::load(folder));
    } catch (const UserError&) {
      return nullptr;  // samples are shown without it
    }
  }
  return nullptr;
}

bool is_list_of_numbers(const Json& row, const char* field) {
  return row.contains(field) && row[field].is_array() &&
         std::ranges::all_of(row[field], [](const Json& value) { return value.is_number(); });
}

// What was sampled, if that is how the sample ends.
void add_pieces(const Json& row, const text::Tokenizer& tokenizer, Json& sample) {
  if (!is_list_of_numbers(row, "tokens")) return;
  for (const char* field : {"advantages", "rollout_logprobs"}) {
    if (!is_list_of_numbers(row, field) || row[field].empty() || row[field].size() > row["tokens"].size()) continue;
    const size_t first = row["tokens"].size() - row[field].size();
    Json pieces = Json::array();
    for (size_t i = 0; i < std::min(row[field].size(), kMostPieces); ++i) {
      const std::array<int64_t, 1> id{row["tokens"][first + i].get<int64_t>()};
      pieces.push_back({tokenizer.decode(id), row[field][i]});
    }
    sample["pieces"] = std::move(pieces);
    sample["pieces_are"] = field;
    return;
  }
}

Json sample_of(const Json& row, const text::Tokenizer* tokenizer) {
  Json sample = Json::object();
  for (const auto& [name, value] : row.items()) {
    if (value.is_string() && value.get_ref<const std::string&>().size() > kLongestText)
      sample[name] = value.get_ref<const std::string&>().substr(0, kLongestText) + " ...";
    else if (value.is_string() || value.is_number())
      sample[name] = value;
  }
  if (tokenizer != nullptr) add_pieces(row, *tokenizer, sample);
  return sample;
}

// One of each stretch, not always at the same place of an iteration, and the last.
std::set<size_t> chosen_rows(size_t rows, size_t most) {
  std::set<size_t> chosen;
  const size_t stretches = std::max<size_t>(1, most / 2), stretch = std::max<size_t>(1, rows / stretches);
  for (size_t i = 0; i < stretches; ++i) chosen.insert(i * rows / stretches + i * kStride % stretch);
  for (size_t row = rows; row-- > 0 && chosen.size() < most;) chosen.insert(row);
  std::erase_if(chosen, [rows](size_t row) { return row >= rows; });
  return chosen;
}

}  // namespace

Json report_samples(const fs::path& run_folder, const engine::PipelineSpec& spec, size_t most) {
  Json samples = Json::array();
  const std::vector<fs::path> files = sample_files(run_folder, spec);
  if (files.empty()) return samples;
  const auto tokenizer = tokenizer_of(spec);
  for (const fs::path& path : files) {
    const data::RowFile file(path);
    const std::vector<std::string_view> lines = whole_lines(file.text());
    for (const size_t row : chosen_rows(lines.size(), most / files.size())) {
      const Json parsed = parse_json(lines[row], path.string() + ", line " + std::to_string(row + 1));
      if (!parsed.is_object()) throw UserError("line " + std::to_string(row + 1) + " of " + path.string() + " is no sample");
      samples.push_back(sample_of(parsed, tokenizer.get()));
    }
  }
  return samples;
}

}  // namespace sluice::cli
