#include "cli/samples/sample_choice.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/text/printable.h"
#include "base/text/strings.h"
#include "cli/run_folder/damaged_lines.h"

namespace sluice::cli {
namespace {

constexpr size_t kLinesAtOnce = 256;

// It is the first member of each line that a run writes.
int64_t iteration_of(const std::string& line, const std::string& place) {
  constexpr std::string_view kBegin = R"({"iteration":)";
  int64_t iteration = 0;
  if (line.starts_with(kBegin) &&
      std::from_chars(line.data() + kBegin.size(), line.data() + line.size(), iteration).ec == std::errc())
    return iteration;
  const Json sample = sample_in(line, place);
  if (!sample.contains("iteration") || !sample["iteration"].is_number_integer()) throw UserError(place + " is no sample");
  return sample["iteration"].get<int64_t>();
}

struct SampleLine {
  size_t line = 0;
  int64_t iteration = 0;
};

std::vector<SampleLine> sample_lines(const GrowingLines& lines, Problems& damage) {
  std::vector<SampleLine> samples;
  for (size_t at = 0; at < lines.size();) {
    for (const std::string& line : lines.read(at, std::min(lines.size(), at + kLinesAtOnce))) {
      const auto iteration = read_or_note([&] { return iteration_of(line, lines.place(at)); }, damage);
      if (iteration) samples.push_back({at, *iteration});
      ++at;
    }
  }
  return samples;
}

[[noreturn]] void fail_because_of_sort(const SampleRecord& record, const std::string& by) {
  if (by == "length") fail_because_not_recorded(record, {"response"});
  if (std::ranges::find(record.fields, by) == record.fields.end()) fail_because_not_recorded(record, {by});
  throw UserError("samples cannot be sorted by " + by + ": node '" + record.node + "' has recorded no numbers of it");
}

bool has_prompt(const Json& sample, const std::string& wanted) {
  return wanted.empty() || (sample.contains("prompt") && sample["prompt"].is_string() &&
                            small_letters(sample["prompt"].get<std::string>()).find(wanted) != std::string::npos);
}

std::optional<double> mean_of_list(const Json& list) {
  if (list.empty() || !std::ranges::all_of(list, [](const Json& value) { return value.is_number(); })) return std::nullopt;
  const double sum = std::accumulate(list.begin(), list.end(), 0.0,
                                     [](double so_far, const Json& value) { return so_far + value.get<double>(); });
  return sum / static_cast<double>(list.size());
}

void sort_samples(std::vector<Json>& samples, const std::string& by, bool lowest_first) {
  std::vector<std::pair<double, size_t>> order;  // what has no number comes last
  for (size_t i = 0; i < samples.size(); ++i) {
    const double value = sort_value(samples[i], by).value_or(std::nan(""));
    order.emplace_back(std::isnan(value) ? std::numeric_limits<double>::infinity() : lowest_first ? value : -value, i);
  }
  std::ranges::sort(order);
  std::vector<Json> sorted;
  for (const auto& [value, i] : order) sorted.push_back(std::move(samples[i]));
  samples = std::move(sorted);
}

[[noreturn]] void fail_because_of_iteration(const SampleRecord& record, int64_t wanted, const std::vector<SampleLine>& recorded) {
  std::set<int64_t> those;
  for (const SampleLine& sample : recorded) those.insert(sample.iteration);
  throw UserError("node '" + record.node + "' has recorded nothing of iteration " + std::to_string(wanted),
                  "recorded are " + plural(static_cast<int64_t>(those.size()), "iteration") + " from " +
                      std::to_string(*those.begin()) + " to " + std::to_string(*those.rbegin()) + "; nodes." + record.node +
                      ".every says which");
}

}  // namespace

void fail_because_not_recorded(const SampleRecord& record, const std::vector<std::string>& fields) {
  std::vector<std::string> wanted;
  for (const std::string& field : record.fields) wanted.push_back(sluice::quoted(field));
  for (const std::string& field : fields) {
    if (std::ranges::find(record.fields, field) == record.fields.end()) wanted.push_back(sluice::quoted(field));
  }
  throw UserError(
      "node '" + record.node + "' has not recorded " + join(fields, ", "),
      "a run records it with nodes." + record.node + ".fields = [" + join(wanted, ", ") + "], after a node that writes it");
}

std::optional<SampledLength> sampled_length(const Json& sample) {
  for (const auto& [name, value] : sample.items()) {
    if (value.is_array() && name != "tokens") return SampledLength{value.size(), "token"};
  }
  if (!sample.contains("response") || !sample["response"].is_string()) return std::nullopt;
  return SampledLength{glyphs_of(sample["response"].get_ref<const std::string&>()).size(), "character"};
}

std::optional<double> sort_value(const Json& sample, const std::string& by) {
  if (sample.contains(by) && sample[by].is_number()) return sample[by].get<double>();
  if (sample.contains(by) && sample[by].is_array()) return mean_of_list(sample[by]);
  const auto length = by == "length" ? sampled_length(sample) : std::nullopt;
  return length ? std::optional(static_cast<double>(length->count)) : std::nullopt;
}

ChosenSamples choose_samples(const SampleRecord& record, GrowingLines& lines, const SampleChoice& choice) {
  lines.look();
  ChosenSamples chosen;
  const std::vector<SampleLine> recorded = sample_lines(lines, chosen.damage);
  if (recorded.empty() && !chosen.damage.empty()) throw UserError(chosen.damage.front());
  if (recorded.empty()) throw UserError("node '" + record.node + "' has recorded nothing yet");
  chosen.latest = std::ranges::max(recorded, {}, &SampleLine::iteration).iteration;
  const int64_t wanted = choice.iteration.value_or(chosen.latest);
  if (!choice.all_iterations && std::ranges::find(recorded, wanted, &SampleLine::iteration) == recorded.end())
    fail_because_of_iteration(record, wanted, recorded);
  if (!choice.prompt.empty() && std::ranges::find(record.fields, "prompt") == record.fields.end())
    fail_because_not_recorded(record, {"prompt"});
  const std::string prompt = small_letters(choice.prompt);
  bool sortable = choice.sort.empty();
  for (const auto& [line, iteration] : recorded) {
    if (!choice.all_iterations && iteration != wanted) continue;
    std::optional<Json> sample =
        read_or_note([&, at = line] { return sample_in(lines.line(at), lines.place(at)); }, chosen.damage);
    if (!sample) continue;
    sortable = sortable || sort_value(*sample, choice.sort).has_value();
    if (has_prompt(*sample, prompt)) chosen.samples.push_back(std::move(*sample));
  }
  if (!sortable) fail_because_of_sort(record, choice.sort);
  if (!choice.sort.empty()) sort_samples(chosen.samples, choice.sort, choice.lowest_first);
  chosen.found = chosen.samples.size();
  if (chosen.found > choice.most) chosen.samples.resize(choice.most);
  return chosen;
}

}  // namespace sluice::cli
