#include "cli/run/rank_agreement.h"

#include <ATen/Version.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/strings.h"
#include "cli/run_folder/file_marks.h"
#include "cli/run_folder/input_marks.h"
#include "cli/run_folder/model_marks.h"
#include "engine/contract/plugin/plugin.h"
#include "models/kernels/instruction_set.h"

namespace sluice::cli {
namespace {

// Kernels for other instructions add in another order.
std::string machine_kind() {
  switch (models::best_instruction_set()) {
    case models::InstructionSet::kV4Bfloat16:
      return "x86-64-v4 with bfloat16";
    case models::InstructionSet::kV4:
      return "x86-64-v4";
    case models::InstructionSet::kV3:
      return "x86-64-v3";
    case models::InstructionSet::kBaseline:
      return "x86-64";
  }
  return "?";
}

// Which compiler, and how much it was asked for, decides how sums are rounded.
std::string program_build() {
#ifdef __OPTIMIZE__
  const std::string optimized = "yes";
#else
  const std::string optimized = "no";
#endif
  return engine::abi_text() + ";compiler=" __VERSION__ ";optimized=" + optimized;
}

// Without its vector instructions, which the machine and the environment decide.
std::string torch_build() {
  std::vector<std::string> lines = split(at::show_config(), '\n');
  std::erase_if(lines, [](const std::string& line) { return line.find("CPU capability") != std::string::npos; });
  return join(lines, "; ");
}

// Of these tables a run that goes on may change keys that ranks must have alike meanwhile: who has which role, or when all end.
bool is_of_all_ranks(const engine::EffectiveKey& key) {
  constexpr std::array<std::string_view, 3> kTables{"pipeline", "budget", "cluster"};
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kOwn{
      {{"pipeline", "name"},
       {"pipeline", "preset"},            // the keys that it sets are compared themselves
       {"budget", "micro_batch_tokens"},  // compared as they were chosen
       {"budget", "pass_tokens"},
       {"cluster", "join_seconds"},
       {"cluster", "network"}}};
  const bool is_own = std::ranges::any_of(kOwn, [&](const auto& own) { return key.table == own.first && key.key == own.second; });
  return !is_own && (key.table.starts_with("cluster.roles.") || std::ranges::find(kTables, key.table) != kTables.end());
}

// Of a node that the rank has not, empty ones.
Marks marks_of_all_files(const engine::Plan& plan, int rank) {
  Marks all;
  for (size_t node = 0; node < plan.nodes.size(); ++node) {
    Marks marks = marks_of_files(plan, plan.nodes[node], /*home=*/{});
    if (!plan.has(rank, static_cast<int>(node)))
      for (auto& [what, mark] : marks) mark.clear();
    all.merge(marks);
  }
  return all;
}

// By their names, since each host may have them in a folder of its own. What they compute nobody can tell but they.
Marks marks_of_plugins(const engine::Plan& plan) {
  Marks marks;
  for (const std::string& plugin : plan.plugins) {
    const std::filesystem::path file = plugin;
    marks["plugin " + file.filename().string()] += mark_of_files({file});
  }
  return marks;
}

}  // namespace

std::map<std::string, std::string> what_ranks_agree_on(const engine::Plan& plan, int rank) {
  std::map<std::string, std::string> values{{"the program's version and build", program_build()},
                                            {"the kind of machine", machine_kind()},
                                            {"LibTorch's build", torch_build()},
                                            {"LibTorch's vector instructions (ATEN_CPU_CAPABILITY)", at::get_cpu_capability()}};
  for (const engine::EffectiveKey& key : plan.effective) {
    if (!key.harmless || is_of_all_ranks(key)) values["[" + key.table + "] " + key.key] = key.text.empty() ? "unset" : key.text;
  }
  values["[budget] pass_tokens, as chosen"] = std::to_string(plan.budget.pass_tokens.value);
  values["[budget] micro_batch_tokens, as chosen"] = std::to_string(plan.budget.micro_batch_tokens.value);
  values.merge(marks_of_plugins(plan));
  values.merge(model_marks(plan));
  values.merge(marks_of_all_files(plan, rank));
  return values;
}

}  // namespace sluice::cli
