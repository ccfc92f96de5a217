#include "comm/agreement.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "base/numbers/bytes.h"
#include "base/text/printable.h"
#include "base/text/strings.h"
#include "comm/verdict.h"

namespace sluice::comm {
namespace {

constexpr const char* kAgreement = "agreement";
constexpr size_t kShownOfAValue = 60;  // of a value
constexpr size_t kShownBefore = 20;    // bytes before the first that differs

using Values = std::map<std::string, std::string>;

std::string written(const Values& values) {
  ByteWriter bytes;
  bytes.number(uint64_t{values.size()});
  for (const auto& [name, value] : values) {
    bytes.text(name);
    bytes.text(value);
  }
  return bytes.take();
}

Values values_of(const std::string& text) {
  ByteReader bytes(text);
  Values values;
  for (auto left = bytes.number<uint64_t>(); left > 0; --left) {
    std::string name(bytes.text());
    values.emplace(std::move(name), bytes.text());
  }
  return values;
}

std::optional<std::string> value_of(const Values& values, const std::string& name) {
  const auto found = values.find(name);
  return found == values.end() ? std::optional<std::string>() : found->second;
}

std::string shown(const std::optional<std::string>& value, size_t from) {
  if (!value) return "nothing";
  return "\"" + std::string(from > 0 ? "..." : "") + shortened(value->substr(from), kShownOfAValue) + "\"";
}

// Both values, from a little before where they differ.
std::string shown(const std::optional<std::string>& a, const std::optional<std::string>& b) {
  size_t same = 0;
  if (a && b) same = static_cast<size_t>(std::ranges::mismatch(*a, *b).in1 - a->begin());
  const size_t from = same > kShownBefore ? same - kShownBefore : 0;
  return shown(a, from) + " and " + shown(b, from);
}

// The name of the first difference, and between which ranks.
struct Difference {
  std::string name;
  size_t one = 0, other = 0;
};

std::optional<Difference> first_difference(const std::map<size_t, Values>& by_rank) {
  std::set<std::string> names;
  for (const auto& [rank, values] : by_rank) {
    for (const auto& [name, value] : values) names.insert(name);
  }
  for (const std::string& name : names) {
    const Values* first = nullptr;  // who has something to compare
    size_t first_rank = 0;
    for (const auto& [rank, values] : by_rank) {
      const std::optional<std::string> value = value_of(values, name);
      if (value && value->empty()) continue;
      if (first != nullptr && value != value_of(*first, name)) return Difference{name, first_rank, rank};
      if (first == nullptr) first = &values, first_rank = rank;
    }
  }
  return {};
}

// Nothing: they are alike.
std::optional<Verdict> judge_difference(const std::map<size_t, Values>& by_rank) {
  const auto difference = first_difference(by_rank);
  if (!difference) return {};
  const auto& [name, one, other] = *difference;
  return Verdict{.problem = "ranks " + std::to_string(one) + " and " + std::to_string(other) + " differ in " + name + ": " +
                            shown(value_of(by_rank.at(one), name), value_of(by_rank.at(other), name)),
                 .help = "start all ranks with the same program, environment, pipeline and data, on machines of one kind",
                 .facts = {}};
}

Verdict judge_values(const std::vector<std::optional<std::string>>& handed_in, double seconds) {
  std::map<size_t, Values> by_rank;
  for (size_t rank = 0; rank < handed_in.size(); ++rank) {
    if (!handed_in[rank]) {
      return {.problem = "rank " + std::to_string(rank) + " has not said within " + fixed(seconds, 0) + " s what it is to run",
              .help = "look at what it says"};
    }
    by_rank.emplace(rank, values_of(*handed_in[rank]));
  }
  return judge_difference(by_rank).value_or(Verdict());
}

// The others have agreed before.
void compare_with_rank_0(const Store& store, const Values& mine, Clock::time_point until) {
  const Values right = values_of(handed_in_by(*store.connect(), kAgreement, 0, until));
  const auto verdict = judge_difference({{0, right}, {static_cast<size_t>(store.world().rank), mine}});
  if (verdict) throw UserError(verdict->problem, verdict->help);
}

}  // namespace

void compare_values(const Store& store, const Values& mine, double seconds) {
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  if (store.incarnation() > 0) return compare_with_rank_0(store, mine, until);
  const Judge of_values = [&](const auto& handed_in) { return judge_values(handed_in, seconds); };
  all_agree(*store.connect(), store.world(), kAgreement, written(mine), until, of_values);
}

}  // namespace sluice::comm
