#include "cli/sweep/sweep_grid.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <iterator>
#include <set>
#include <utility>

#include "base/text/strings.h"

namespace sluice::cli {
namespace {

constexpr std::int64_t kMostRuns = 1'000;
constexpr size_t kLongestValue = 40, kLongestName = 200;  // of a folder's name; file systems take 255
constexpr std::string_view kSeedKey = "pipeline.seed";

// Walks over a text, and tells what stands outside of strings, brackets and braces.
class Outside {
 public:
  /// The next character of the text.
  bool is_outside(char c) {
    const bool escaped = std::exchange(escaped_, false);
    if (quote_ != '\0') {
      if (c == '\\' && quote_ == '"' && !escaped) escaped_ = true;
      if (c == quote_ && !escaped) quote_ = '\0';
      return false;
    }
    if (c == '"' || c == '\'') quote_ = c;
    if (c == '[' || c == '{') ++depth_;
    if (c == ']' || c == '}') --depth_;
    return quote_ == '\0' && depth_ <= 0;
  }

 private:
  char quote_ = '\0';
  bool escaped_ = false;
  int depth_ = 0;
};

size_t first_outside(std::string_view text, char wanted) {
  Outside outside;
  for (size_t i = 0; i < text.size(); ++i)
    if (outside.is_outside(text[i]) && text[i] == wanted) return i;
  return std::string_view::npos;
}

std::vector<std::string> split_outside(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t at = first_outside(text, separator); at != std::string_view::npos; at = first_outside(text, separator)) {
    parts.emplace_back(trim(text.substr(0, at)));
    text.remove_prefix(at + 1);
  }
  parts.emplace_back(trim(text));
  return parts;
}

// Those that have the same value.
std::vector<std::string> keys_of(const std::string& keys) { return split_outside(keys, '+'); }

// Of them and a value what --set takes.
void set_all(const std::string& keys, const std::string& value, std::vector<std::string>& sets) {
  for (const std::string& key : keys_of(keys)) sets.push_back(key + "=" + value);
}

// The parts of a.b."c.d".
std::vector<std::string> parts_of(const std::string& key) { return split_outside(key, '.'); }

std::string end_of_key(const std::vector<std::string>& parts, size_t count) {
  return join({parts.end() - static_cast<std::ptrdiff_t>(std::min(count, parts.size())), parts.end()}, ".");
}

// As much of the end of each key as tells it from all others, and from the seed.
std::vector<std::string> short_names(const std::vector<SweptKey>& keys) {
  std::vector<std::vector<std::string>> all{{"seed"}};
  for (const SweptKey& key : keys) all.push_back(parts_of(keys_of(key.key).front()));
  std::vector<std::string> names;
  for (auto key = all.begin() + 1; key != all.end(); ++key) {
    size_t count = 1;
    const auto is_alike = [&](const auto& other) {
      return &other != &*key && end_of_key(other, count) == end_of_key(*key, count);
    };
    while (count < key->size() && std::ranges::any_of(all, is_alike)) ++count;
    names.push_back(end_of_key(*key, count));
  }
  return names;
}

// A string without its quotes.
std::string_view bare(std::string_view value) {
  const bool is_string = value.size() >= 2 && (value.front() == '"' || value.front() == '\'') && value.front() == value.back();
  return is_string ? value.substr(1, value.size() - 2) : value;
}

std::string as_file_name(std::string_view text, size_t longest) {
  std::string name;
  for (const char c : text) {
    const bool is_plain =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("._+-").find(c) != std::string_view::npos;
    if (is_plain || name.empty() || name.back() != '-') name += is_plain ? c : '-';
  }
  return name.substr(0, longest);
}

// "NAME", "NAME-2", ... where another one has it.
std::string not_taken(const std::string& name, std::set<std::string>& taken) {
  std::string free = name;
  for (int n = 2; !taken.insert(free).second; ++n) free = name + "-" + std::to_string(n);
  return free;
}

std::string folder_name(const std::vector<std::string>& keys, const std::vector<std::string>& values) {
  std::vector<std::string> words;
  for (size_t i = 0; i < keys.size(); ++i)
    words.push_back(as_file_name(keys[i], kLongestValue) + "=" + as_file_name(bare(values[i]), kLongestValue));
  return join(words, ",").substr(0, kLongestName);
}

Problem refused(std::string message, std::string help) {
  return {.kind = {}, .where = {}, .message = std::move(message), .caret = {}, .notes = {}, .help = std::move(help)};
}

// A number is written in one way only: 1e-4 and 0.0001 are the same value.
std::string canonical(const std::string& value) {
  const auto written = [&](auto number) {
    const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
    if (read.ec != std::errc() || read.ptr != value.data() + value.size()) return std::string();
    std::array<char, 32> text{};
    return std::string(text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr);
  };
  for (std::string number : {written(std::int64_t{}), written(double{})})
    if (!number.empty()) return number;
  return value;
}

// What is wrong with one --set; empty: nothing.
Problems problems_of(const std::string& set, const SweptKey& read) {
  if (read.values.size() < 2) return {};
  Problems problems;
  std::set<std::string> seen;
  for (const std::string& value : read.values) {
    if (value.empty())
      problems.push_back(refused("--set " + set + ": a value is empty",
                                 "of several values none is: remove the comma, or write '\"\"' for a text"));
    else if (!seen.insert(canonical(value)).second)
      problems.push_back(refused("--set " + set + ": the value " + value + " is there twice", "write it once"));
  }
  return problems;
}

void refuse_what_is_set_twice(const std::vector<std::string>& sets, bool has_seeds, Problems& problems) {
  std::set<std::string> seen;
  for (const std::string& set : sets) {
    for (const std::string& key : keys_of(set.substr(0, first_outside(set, '=')))) {
      if (key == kSeedKey && has_seeds)
        problems.push_back(refused("the seed is set by --seeds and by --set " + set, "write one of them"));
      else if (!seen.insert(key).second)
        problems.push_back(
            refused("--set has " + key + " twice", "write its values after each other: --set " + key + "=VALUE,VALUE"));
    }
  }
}

void refuse_number_of_runs(const SweepGrid& grid, Problems& problems) {
  if (grid.keys.empty() && grid.seeds.empty())
    return problems.push_back(refused("there is nothing to sweep: no --set has several values, and there are no --seeds",
                                      "--set KEY=VALUE,VALUE or --seeds 1..5; a single run is rlhf-run run FILE"));
  double runs = static_cast<double>(std::max<size_t>(1, grid.seeds.size()));
  for (const SweptKey& key : grid.keys) runs *= static_cast<double>(key.values.size());
  if (runs > kMostRuns)
    problems.push_back(refused("these are " + human_count(runs) + " runs, and a sweep has at most " + std::to_string(kMostRuns),
                               "sweep fewer keys or values at once"));
}

}  // namespace

std::vector<std::vector<std::string>> combinations_of(const SweepGrid& grid) {
  std::vector<std::vector<std::string>> all{{}};
  for (const SweptKey& key : grid.keys) {
    std::vector<std::vector<std::string>> longer;
    for (const auto& before : all) {
      for (const std::string& value : key.values) {
        longer.push_back(before);
        longer.back().push_back(value);
      }
    }
    all = std::move(longer);
  }
  return all;
}

std::string combination_name(const SweepGrid& grid, const std::vector<std::string>& values) {
  const std::vector<std::string> keys = short_names(grid.keys);
  std::vector<std::string> words;
  for (size_t i = 0; i < keys.size(); ++i) words.push_back(keys[i] + "=" + std::string(bare(values[i])));
  return words.empty() ? "all" : join(words, ",");
}

std::vector<SweptRun> runs_of(const SweepGrid& grid) {
  const std::vector<std::string> keys = short_names(grid.keys);
  std::vector<SweptRun> runs;
  std::set<std::string> combinations;
  for (const auto& values : combinations_of(grid)) {
    const std::string combination = keys.empty() ? "" : not_taken(folder_name(keys, values), combinations);
    SweptRun run{.name = combination, .combination = combinations.empty() ? 0 : combinations.size() - 1, .sets = grid.sets};
    for (size_t i = 0; i < keys.size(); ++i) set_all(grid.keys[i].key, values[i], run.sets);
    if (grid.seeds.empty()) runs.push_back(run);
    for (const std::int64_t seed : grid.seeds) {
      runs.push_back(run);
      runs.back().name += (combination.empty() ? "seed=" : ",seed=") + std::to_string(seed);
      runs.back().sets.push_back(std::string(kSeedKey) + "=" + std::to_string(seed));
    }
  }
  return runs;
}

SweepGrid read_grid(const std::vector<std::string>& sets, const std::vector<std::int64_t>& seeds, Problems& problems) {
  SweepGrid grid{.sets = {}, .keys = {}, .seeds = seeds};
  for (const std::string& set : sets) {
    const size_t equals = first_outside(set, '=');
    SweptKey read;
    if (equals != std::string::npos)  // else the pipeline's reader says what is wrong
      read = {std::string(trim(std::string_view(set).substr(0, equals))),
              split_outside(std::string_view(set).substr(equals + 1), ',')};
    std::ranges::move(problems_of(set, read), std::back_inserter(problems));
    if (read.values.size() < 2 && keys_of(read.key).size() == 1)
      grid.sets.push_back(set);
    else if (read.values.size() < 2)
      set_all(read.key, std::string(trim(std::string_view(set).substr(equals + 1))), grid.sets);
    else
      grid.keys.push_back(std::move(read));
  }
  refuse_what_is_set_twice(sets, !seeds.empty(), problems);
  refuse_number_of_runs(grid, problems);
  return grid;
}

ReadSeeds read_seeds(std::string_view text) {
  constexpr std::int64_t kMostSeeds = kMostRuns;
  const auto number_in = [](std::string_view word) {
    std::int64_t number = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    return error == std::errc() && end == word.data() + word.size() ? number : -1;
  };
  ReadSeeds read;
  for (const std::string& part : split(text, ',')) {
    const std::string_view word = trim(part);
    const size_t dots = word.find("..");
    const std::int64_t first = number_in(word.substr(0, dots));
    const std::int64_t last = dots == std::string_view::npos ? first : number_in(word.substr(dots + 2));
    if (first < 0 || last < first)
      read.fault = sluice::quoted(word) + " is not a seed from 0, nor a range of them such as 1..5";
    else if (last - first >= kMostSeeds)
      read.fault = sluice::quoted(word) + " are more than " + std::to_string(kMostSeeds) + " seeds";
    if (!read.fault.empty()) return read;
    for (std::int64_t behind = 0; behind <= last - first; ++behind) {  // `last` may be the largest number there is
      if (std::ranges::find(read.seeds, first + behind) != read.seeds.end())
        read.fault = "the seed " + std::to_string(first + behind) + " is there twice";
      read.seeds.push_back(first + behind);
    }
  }
  return read;
}

}  // namespace sluice::cli
