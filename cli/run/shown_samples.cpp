#include "cli/run/shown_samples.h"

#include <algorithm>
#include <cstdio>

#include "base/text/printable.h"

namespace sluice::cli {
namespace {

using engine::ColumnData;
using engine::ColumnSpec;
using engine::DType;
using engine::Extent;
using engine::Range;

// The columns of these names and kinds, whoever writes them.
const ColumnSpec kPrompt{"prompt", DType::kString, Extent::kGroup};
const ColumnSpec kResponse{"response", DType::kString, Extent::kSample};
const ColumnSpec kScore{"score", DType::kFloat32, Extent::kSample};

constexpr size_t kShown = 2;

// Cells, also where a line is longer for it than the terminal is wide: none would look like no text.
constexpr size_t kLeastText = 8;

// Where the samples are that are shown: which group of the micro-batch, which sample of it.
std::vector<std::pair<size_t, size_t>> places(const engine::Layout& layout) {
  std::vector<std::pair<size_t, size_t>> found;
  const std::vector<Range> groups = layout.samples_by_group();
  for (size_t g = 0; g < groups.size() && found.size() < kShown; ++g) {
    if (groups[g].size() > 0) found.emplace_back(g, 0);
  }
  if (found.size() == 1 && groups[found[0].first].size() > 1) found.emplace_back(found[0].first, 1);
  return found;
}

std::string labelled(const char* label, const std::string& text, const std::string& behind, size_t width) {
  const std::string begin = std::string("  ") + label + "  ";
  const size_t taken = begin.size() + behind.size(), left = width > taken ? width - taken : 0;
  return begin + shortened(text, std::max(left, kLeastText)) + behind + "\n";
}

std::string score_text(const std::optional<float>& score) {
  if (!score) return {};
  char text[48];
  std::snprintf(text, sizeof text, "  (score %.3f)", static_cast<double>(*score));
  return text;
}

}  // namespace

bool ShownSamples::possible(const engine::Plan& plan) {
  return std::ranges::any_of(plan.columns, [](const engine::PlanColumn& column) { return column.spec == kResponse; });
}

void ShownSamples::wrote(const engine::WrittenColumns& columns) {
  if (!is_shown(columns.iteration) || columns.micro_batch != 0) return;
  const ColumnData *prompts = columns.find(kPrompt), *responses = columns.find(kResponse), *scores = columns.find(kScore);
  if (responses == nullptr && scores == nullptr) return;
  const std::vector<Range> groups = columns.layout.samples_by_group();
  const std::lock_guard lock(mutex_);
  std::vector<Sample>& samples = samples_[columns.iteration];
  if (responses != nullptr && samples.empty()) {
    for (const auto& [group, of_group] : places(columns.layout)) {
      Sample sample{.group = columns.group_indices[group], .of_group = of_group};
      if (prompts != nullptr) sample.prompt = prompts->entries<std::string>()[group];
      sample.response = responses->entries<std::string>()[groups[group].begin + of_group];
      samples.push_back(std::move(sample));
    }
  }
  if (scores == nullptr) return;
  for (Sample& sample : samples) {
    const auto group = std::ranges::find(columns.group_indices, sample.group);
    if (group == columns.group_indices.end()) continue;  // a filter has dropped it
    const Range& of = groups[static_cast<size_t>(group - columns.group_indices.begin())];
    if (sample.of_group < of.size()) sample.score = scores->entries<float>()[of.begin + sample.of_group];
  }
}

std::string ShownSamples::take(int64_t iteration, size_t width) {
  const std::lock_guard lock(mutex_);
  const auto node = samples_.extract(iteration);
  if (node.empty()) return {};
  std::string text;
  for (const Sample& sample : node.mapped())
    text +=
        labelled("prompt  ", sample.prompt, "", width) + labelled("response", sample.response, score_text(sample.score), width);
  return text;
}

}  // namespace sluice::cli
