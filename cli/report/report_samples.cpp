#include "cli/report/report_samples.h"

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include "cli/run_folder/damaged_lines.h"
#include "cli/run_folder/file_of_run.h"
#include "cli/samples/token_colours.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

constexpr size_t kLongestText = 4000;                 // bytes of a field
constexpr size_t kMostPieces = 600;                   // of a sample
constexpr size_t kMostSampleBytes = size_t{5} << 19;  // of all, as a page has them: half of what a page may have
constexpr size_t kStride = 7919;                      // a prime

void add_pieces(const Json& row, const text::Tokenizer& tokenizer, Json& sample) {
  for (const TokenMeasure& measure : token_measures()) {
    const auto tokens = measured_tokens(row, measure, tokenizer);
    if (!tokens) continue;
    Json texts = Json::array(), numbers = Json::array();
    for (size_t i = 0; i < std::min(tokens->size(), kMostPieces); ++i)
      texts.push_back((*tokens)[i].first), numbers.push_back((*tokens)[i].second);
    sample["pieces"] = std::move(texts);
    sample["pieces_by"][measure.word] = std::move(numbers);
  }
}

// One of each stretch, not always at the same place of an iteration, and the last. Stretches are powers of two: as a file grows,
// those that were chosen mostly stay.
std::set<size_t> chosen_rows(size_t rows, size_t most) {
  std::set<size_t> chosen;
  const size_t stretches = std::max<size_t>(1, most / 2), stretch = std::bit_ceil((rows + stretches - 1) / stretches);
  for (size_t i = 0; i * stretch < rows; ++i) {
    const size_t row = i * stretch + i * kStride % stretch;
    if (row < rows) chosen.insert(row);
  }
  for (size_t row = rows; row-- > 0 && chosen.size() < most;) chosen.insert(row);
  return chosen;
}

// Every second one, the last among them, until a page can hold them.
Json thinned_samples(Json samples) {
  while (samples.size() > 1 && samples.dump(-1, ' ', true, Json::error_handler_t::replace).size() > kMostSampleBytes) {
    Json fewer = Json::array();
    for (size_t i = 1 - samples.size() % 2; i < samples.size(); i += 2) fewer.push_back(std::move(samples[i]));
    samples = std::move(fewer);
  }
  return samples;
}

}  // namespace

RunSamples::RunSamples(fs::path run_folder, const engine::PipelineSpec& spec, size_t most)
    : run_folder_(std::move(run_folder)), records_(sample_records(spec)), most_(most) {
  if (!records_.empty()) tokenizer_ = tokenizer_of_samples(spec);
}

std::vector<fs::path> RunSamples::files() const {
  std::vector<fs::path> files;
  for (const SampleRecord& record : records_) {
    if (auto file = file_of_run(run_folder_, record.path)) files.push_back(std::move(*file));
  }
  return files;
}

Json RunSamples::shown(const std::string& line, const std::string& place) const {
  const Json row = sample_in(line, place);
  Json sample = Json::object();
  for (const auto& [name, value] : row.items()) {
    if (value.is_string() && value.get_ref<const std::string&>().size() > kLongestText)
      sample[name] = value.get_ref<const std::string&>().substr(0, kLongestText) + " ...";
    else if (value.is_string() || value.is_number())
      sample[name] = value;
  }
  if (tokenizer_ != nullptr) add_pieces(row, *tokenizer_, sample);
  return sample;
}

Json RunSamples::now(Problems& damage) {
  Json samples = Json::array();
  const std::vector<fs::path> there = files();
  for (const fs::path& path : there) {
    GrowingLines& lines = lines_.try_emplace(path, path).first->second;
    lines.look();
    for (const size_t row : chosen_rows(lines.size(), most_ / there.size())) {
      if (auto sample = read_or_note([&] { return shown(lines.line(row), lines.place(row)); }, damage))
        samples.push_back(std::move(*sample));
    }
  }
  return thinned_samples(std::move(samples));
}

}  // namespace sluice::cli
