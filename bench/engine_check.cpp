// How long does it take to prove and print a pipeline of 1000 nodes?
//
// check() and the plan as text and as JSON. A chain in which every tenth node forks into three branches that join again; every
// node reads a column and writes one of its own. The reference is the goal: what a person does not notice.

#include <chrono>
#include <cstdio>
#include <string>

#include "bench/bench_nodes.h"
#include "bench/report.h"
#include "engine/check/check.h"
#include "engine/contract/spec/pipeline_builder.h"
#include "engine/text/plan_text.h"

namespace sluice::bench {
namespace {

constexpr double kGoal_ms = 100;

class Weaver {
 public:
  explicit Weaver(int nodes) : builder_("woven", 10) {
    builder_.budget(1 << 20, 1 << 10);
    builder_.node("numbers", "bench_numbers", {}, {{"groups_per_iteration", int64_t{64}}, {"samples_per_group", int64_t{0}}});
    builder_.node("draw", "bench_draw", {"numbers"});
    std::string last = "draw";
    while (count_ < nodes) last = count_ % 10 == 0 ? fork(last) : step({last}, last);
  }

  engine::PipelineSpec spec() const { return builder_.build(); }

 private:
  std::string step(const std::vector<std::string>& inputs, const std::string& reads) {
    const std::string name = "node" + std::to_string(count_++);
    builder_.node(name, "bench_derive", inputs, {{"reads", reads == "draw" ? std::string("drawn") : reads}, {"writes", name}});
    return name;
  }

  std::string fork(const std::string& last) {
    std::vector<std::string> branches;
    for (int i = 0; i < 3; ++i) branches.push_back(step({last}, last));
    return step(branches, branches.back());
  }

  engine::PipelineBuilder builder_;
  int count_ = 2;
};

double since_ms(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  using namespace sluice;
  using Clock = std::chrono::steady_clock;
  const bool smoke = bench::is_smoke(argc, argv);
  engine::Registry registry;
  bench::register_bench_nodes(registry);
  const engine::PipelineSpec spec = bench::Weaver(smoke ? 50 : 1000).spec();
  bench::Case all{
      .bench = "engine_check", .name = "check and plan of 1000 nodes", .unit = "ms", .ours = {}, .reference = {bench::kGoal_ms}};
  all.goal.ours_at_most = bench::kGoal_ms;
  bench::Case proof = all, text = all, json = all;
  proof.name = "check alone", text.name = "plan as text alone", json.name = "plan as JSON alone";
  proof.goal = text.goal = json.goal = {};
  for (int i = 0; i < (smoke ? 1 : 15); ++i) {
    const auto begin = Clock::now();
    const engine::CheckResult checked = engine::check(spec, registry);
    if (!checked.plan) return std::fprintf(stderr, "%s\n", render(checked.problems).c_str()), 1;
    proof.ours.push_back(bench::since_ms(begin));
    const auto proven = Clock::now();
    size_t bytes = engine::plan_text(*checked.plan).size();
    text.ours.push_back(bench::since_ms(proven));
    const auto told = Clock::now();
    bytes += engine::plan_json(*checked.plan).size();
    json.ours.push_back(bench::since_ms(told));
    all.ours.push_back(bench::since_ms(begin));
    if (bytes == 0) return 1;
  }
  for (const bench::Case& result : {all, proof, text, json}) bench::print(result);
}
