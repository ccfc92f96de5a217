#include "cli/plan/plan_fit_text.h"

#include <algorithm>

#include "base/json/json.h"
#include "base/text/strings.h"
#include "cli/terminal/text_table.h"

namespace sluice::cli {
namespace {

using engine::MemoryNeed;

constexpr size_t kMostShown = 8;  // ways
constexpr const char* kFewerTokens = "fewer tokens in flight";

// "cuda:0 of role train"; empty: the host, without roles.
std::string where_of(const MemoryNeed& need) {
  std::vector<std::string> parts;
  if (!need.is_host()) parts.push_back(need.place);
  if (!need.role.empty()) parts.push_back("role " + need.role);
  return join(parts, " of ");
}

std::string peak_of(const MemoryNeed& need) {
  const std::string where = where_of(need), peak = human_bytes(need.memory.total_bytes());
  if (!need.is_known()) return peak + (where.empty() ? "" : " on " + where);
  return peak + " of " + human_bytes(need.memory.machine_bytes) + (where.empty() ? "" : " of " + where);
}

// Less, in the memory that is tightest.
std::string saved(const Fit& fit, size_t remedy) {
  if (!fit.remedies[remedy].possible) return "refused";
  const int64_t less = fit.need.memory.total_bytes() - fit.remedies[remedy].need.memory.total_bytes();
  return less > 0 ? human_bytes(less) : "nothing";
}

std::string name_of(const Fit& fit, size_t remedy) {
  const auto& with = fit.remedies[remedy].remedy.with;
  return fit.remedies[remedy].remedy.name + (with ? ", with " + fit.remedies[*with].remedy.name : "");
}

std::string remedies_text(const Fit& fit) {
  if (fit.remedies.empty()) return "  nothing is known that would take less\n";
  TextTable table({"alone", "takes less", "costs"}, TextTable::Last::kText);
  for (size_t i = 0; i < fit.remedies.size(); ++i) table.add({name_of(fit, i), saved(fit, i), fit.remedies[i].remedy.costs});
  return table.text();
}

std::string names_of(const Fit& fit, const Fit::Way& way) {
  std::vector<std::string> names;
  for (const size_t remedy : way.remedies) names.push_back(fit.remedies[remedy].remedy.name);
  if (way.fewer_tokens) names.emplace_back(kFewerTokens);
  return join(names, "; ");
}

// For a shell.
std::string as_options(const std::vector<std::string>& sets) {
  std::string text;
  for (const std::string& set : sets) text += (text.empty() ? "--set " : " --set ") + set;
  return text;
}

std::string ways_text(const Fit& fit) {
  std::string text = "\n  fits with, the fastest first (simulated, by the sizes of the models alone)\n";
  for (size_t i = 0; i < std::min(fit.ways.size(), kMostShown); ++i) {
    const Fit::Way& way = fit.ways[i];
    text += "\n  " + std::to_string(i + 1) + ". " + names_of(fit, way) + "\n     " + peak_of(way.need) + "; an iteration takes " +
            simulated_duration(way.iteration_seconds) + "\n     " + as_options(way.sets) + "\n";
  }
  if (fit.ways.size() > kMostShown) text += "\n  and " + std::to_string(fit.ways.size() - kMostShown) + " slower ones\n";
  return text;
}

Json json_of(const MemoryNeed& need) {
  return {{"peak_bytes", need.memory.total_bytes()},
          {"there_bytes", need.memory.machine_bytes},
          {"place", need.place},
          {"role", need.role}};
}

}  // namespace

std::string fit_text(const std::string& name, const Fit& fit) {
  std::string text = name + " needs up to " + peak_of(fit.need) +
                     (fit.fits ? ": it fits as it is; an iteration takes " : ": it does not fit; an iteration would take ") +
                     simulated_duration(fit.iteration_seconds) + "\n\n" + remedies_text(fit);
  return fit.ways.empty() ? text : text + ways_text(fit);
}

std::string fit_json(const std::string& name, const Fit& fit) {
  Json json = json_of(fit.need);
  json.update({{"pipeline", name},
               {"fits", fit.fits},
               {"iteration_seconds", fit.iteration_seconds},
               {"remedies", Json::array()},
               {"ways", Json::array()}});
  for (const Fit::Tried& tried : fit.remedies) {
    Json remedy = json_of(tried.need);
    remedy.update(
        {{"name", tried.remedy.name}, {"sets", tried.remedy.sets}, {"costs", tried.remedy.costs}, {"possible", tried.possible}});
    json["remedies"].push_back(std::move(remedy));
  }
  for (const Fit::Way& way : fit.ways) {
    Json entry = json_of(way.need);
    entry.update({{"name", names_of(fit, way)},
                  {"remedies", way.remedies},
                  {"sets", way.sets},
                  {"iteration_seconds", way.iteration_seconds}});
    json["ways"].push_back(std::move(entry));
  }
  return json.dump(2) + "\n";
}

}  // namespace sluice::cli
