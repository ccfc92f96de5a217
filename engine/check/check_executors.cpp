#include <algorithm>
#include <iterator>

#include "base/text/strings.h"
#include "engine/check/check_draft.h"
#include "engine/plan/bind_settings.h"

namespace sluice::engine::checking {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 3 && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// The devices of the node's models, in the order of its parameters.
std::vector<std::string> devices_of(const Draft& draft, const DraftNode& node) {
  std::vector<std::string> devices;
  if (!node.needs) return devices;
  for (const ModelNeed& need : node.needs->models) {
    const int model = draft.find_model(need.model);
    if (model >= 0) devices.push_back(draft.models[static_cast<size_t>(model)].facts.device);
  }
  return devices;
}

// Only what a model computes runs on its device: a node without one there would be on the CPU, whatever it is called.
void place_on_device(Draft& draft, DraftNode& node) {
  const Name& on = node.place;
  const std::vector<std::string> devices = devices_of(draft, node);
  node.executor = on.text;
  if (std::find(devices.begin(), devices.end(), on.text) != devices.end()) return;
  const bool has_models = node.needs && !node.needs->models.empty();
  draft.error("executor-unavailable", on.where,
              "'" + node.name() + "' cannot run on " + on.text + ": " +
                  (has_models ? "none of its models is there" : "only nodes with a model compute on a device"),
              {},
              has_models ? "device = " + sluice::quoted(on.text) + " in [models." + node.needs->models.front().model +
                               "], or leave on out"
                         : "on = \"cpu\", or leave it out");
}

void report_unknown_executor(Draft& draft, const DraftNode& node) {
  const std::string role = node.role.empty() ? std::string() : node.role + "/";
  std::vector<std::string> names{sluice::quoted("cpu"), sluice::quoted("cpu:N")};
  for (const std::string& name : draft.registry.device_names()) names.push_back(sluice::quoted(name));
  const std::string last = names.back();
  names.pop_back();
  draft.error("executor-unknown", node.place.where,
              std::string(role.empty() ? "on" : "what on has after the role") + " must be an executor: " + join(names, ", ") +
                  " or " + last + " with a number N",
              "such as " + sluice::quoted(role + "cpu:1"));
}

// Reports a wrong name; "cpu:0" is the same place as "cpu". Left out: the device of its first model that is on one.
void place(Draft& draft, DraftNode& node) {
  const Name& on = node.place;
  if (on.text.empty() && node.spec->on.text.ends_with('/') && !node.role.empty()) {
    report_unknown_executor(draft, node);
  } else if (on.text.empty()) {
    for (const std::string& device : devices_of(draft, node)) {
      if (node.executor == "cpu") node.executor = device;
    }
  } else if (draft.registry.is_device(on.text)) {
    place_on_device(draft, node);
  } else if (on.text != "cpu" && !(on.text.starts_with("cpu:") && is_number(on.text.substr(4)))) {
    report_unknown_executor(draft, node);
  } else if (on.text != "cpu") {
    const int number = std::stoi(on.text.substr(4));
    node.executor = number == 0 ? "cpu" : "cpu:" + std::to_string(number);
  }
}

// The rollout asks its source for the next group whenever it has room, so both are one task.
void place_source(Draft& draft, const DraftPath& path) {
  if (!path.rollout) return;
  DraftNode& source = draft.node(path.source);
  const DraftNode& rollout = draft.node(*path.rollout);
  if (!source.spec->on.text.empty()) {
    draft.error("executor-of-source", source.spec->on.where,
                "source '" + source.name() + "' runs where its rollout '" + rollout.name() + "' runs", "on has no effect here",
                "write on in [nodes." + rollout.name() + "]");
  }
  source.executor = rollout.executor;
}

// Of a role; without roles of all nodes. Their threads are in one process.
std::vector<std::string> executors_in_use(const Draft& draft, const std::string& role) {
  std::vector<std::string> names;
  for (const int index : draft.order) {
    const DraftNode& node = draft.node(index);
    const bool is_there = std::ranges::find(names, node.executor) != names.end();
    if (!is_there && (role.empty() || node.executor.starts_with(role + "/"))) names.push_back(node.executor);
  }
  return names;
}

// Their threads wait for ranks that have cores of their own for the passes: those are what is told of them.
void add_executors_of(Draft& draft, const PlanRole& role) {
  const int cores = static_cast<int>(resolved_cores(draft.plan.runtime.cores));
  for (const std::string& name : executors_in_use(draft, role.name))
    draft.plan.executors.push_back({name, draft.registry.is_device(without_role(name)) ? 1 : cores});
}

void share_cores(Draft& draft, const std::string& role) {
  const std::vector<std::string> names = executors_in_use(draft, role);
  const int64_t cores = resolved_cores(draft.plan.runtime.cores);
  const auto is_device = [&](const std::string& name) { return draft.registry.is_device(without_role(name)); };
  std::vector<std::string> on_cpu;
  std::ranges::remove_copy_if(names, std::back_inserter(on_cpu), is_device);
  const auto count = static_cast<int64_t>(on_cpu.size());
  if (count > cores && draft.plan.runtime.cores == 0) {
    draft.warning("executors-share-cores", draft.spec.where,
                  plural(count, "executor") + " (" + join(on_cpu, ", ") + ") share " + plural(cores, "core") +
                      ", all that this process may use",
                  {}, "use at most " + plural(cores, "executor"));
  } else if (count > cores) {
    draft.error("executors-exceed-cores", place_of(draft.spec.runtime, "cores", draft.spec.where),
                plural(count, "executor") + " (" + join(on_cpu, ", ") + ") cannot share " + plural(cores, "core") +
                    ": more threads than cores are many times slower",
                {}, "use at most " + plural(cores, "executor") + ", or raise cores in [runtime]");
    return;
  }
  int64_t next = 0;
  for (const std::string& name : names) {
    if (is_device(name)) {  // its thread waits for the device most of the time, and takes no core from the others
      draft.plan.executors.push_back({name, 1});
      continue;
    }
    const int64_t threads = std::max<int64_t>(1, cores / count + (next++ < cores % count ? 1 : 0));
    draft.plan.executors.push_back({name, static_cast<int>(threads)});
  }
}

}  // namespace

void check_executors(Draft& draft) {
  for (DraftNode& node : draft.nodes) {
    place(draft, node);
    if (!node.role.empty()) node.executor = node.role + "/" + node.executor;
  }
  for (const DraftPath& path : draft.paths) place_source(draft, path);
  if (!draft.right.runtime) return;
  const std::vector<const PlanRole*> roles = draft.plan.all_roles();
  if (roles.empty()) return share_cores(draft, {});
  for (const PlanRole* const role : roles) {
    if (draft.plan.forwards(role->first_rank))
      add_executors_of(draft, *role);
    else
      share_cores(draft, role->name);
  }
}

}  // namespace sluice::engine::checking
