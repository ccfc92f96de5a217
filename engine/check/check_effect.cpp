#include <algorithm>
#include <map>
#include <utility>

#include "base/text/strings.h"
#include "engine/check/check_draft.h"
#include "engine/contract/run_folder.h"

// Who works for nothing? A node is of use if it does something itself (trains, publishes, writes a file, records metrics, or
// reads without writing columns, which only makes sense for an effect outside), or if a node that is of use reads one of its
// columns.
namespace sluice::engine::checking {
namespace {

using Readers = std::map<std::pair<int, std::string>, std::vector<int>>;  // by path and column

Readers readers_of_columns(const Draft& draft) {
  Readers readers;
  for (const int index : draft.order) {
    const DraftNode& node = draft.node(index);
    for (const ColumnSpec& column : node.needs->reads) readers[{node.path, column.name}].push_back(index);
  }
  return readers;
}

bool acts_itself(const DraftNode& node) {
  const NodeNeeds& needs = *node.needs;
  return needs.writes.empty() || !needs.files.empty() || !node.type->info.metrics.empty() || needs.drops_groups ||
         std::any_of(needs.models.begin(), needs.models.end(),
                     [](const ModelNeed& need) { return need.use == ModelUse::kUpdates || need.use == ModelUse::kPublishes; });
}

class Effects {
 public:
  explicit Effects(const Draft& draft) : draft_(draft), readers_(readers_of_columns(draft)), useful_(draft.nodes.size()) {
    for (size_t i = draft.order.size(); i-- > 0;) {  // readers stand after their writers
      const int index = draft.order[i];
      const auto readers = readers_of(index);
      useful_[static_cast<size_t>(index)] =
          acts_itself(draft.node(index)) ||
          std::any_of(readers.begin(), readers.end(), [&](int reader) { return is_useful(reader); });
    }
  }

  bool is_useful(int index) const { return useful_[static_cast<size_t>(index)]; }
  bool is_read(const DraftNode& writer, const ColumnSpec& column) const { return readers_.contains({writer.path, column.name}); }

  /// The nodes that read a column which this one writes, in order, each once.
  std::vector<int> readers_of(int index) const {
    std::vector<int> all;
    for (const ColumnSpec& column : draft_.node(index).needs->writes) {
      const auto found = readers_.find({draft_.node(index).path, column.name});
      if (found != readers_.end()) all.insert(all.end(), found->second.begin(), found->second.end());
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

 private:
  const Draft& draft_;
  Readers readers_;
  std::vector<bool> useful_;
};

// Those that take the node as input tell why it is there; with other settings they might read it.
std::vector<std::string> notes_on_takers(const Draft& draft, const DraftNode& node) {
  std::vector<std::string> notes;
  for (const int output : node.outputs) {
    const DraftNode& taker = draft.node(output);
    const std::string reads = column_names(taker.needs->reads);
    notes.push_back("'" + taker.name() + "' takes input from it, but with these settings reads " +
                    (reads.empty() ? "nothing" : "only " + reads));
  }
  return notes;
}

void warn_of_idle_node(Draft& draft, const Effects& effects, int index) {
  const DraftNode& node = draft.node(index);
  const std::vector<int> readers = effects.readers_of(index);
  if (readers.empty()) {
    draft.warning("node-without-effect", place_of(node),
                  "no node reads what '" + node.name() + "' writes: " + column_names(node.needs->writes), {}, {},
                  notes_on_takers(draft, node));
    return;
  }
  std::vector<std::string> names;
  for (const int reader : readers) names.push_back("'" + draft.node(reader).name() + "'");
  draft.warning("node-without-effect", place_of(node),
                "'" + node.name() + "' works for nothing: only " + join(names, ", ") + (names.size() > 1 ? " read" : " reads") +
                    " what it writes, and " + (names.size() > 1 ? "they have" : "that has") + " no effect");
}

// A node that is used for another column, or a column of it that was meant for something and did not get there?
void warn_of_idle_columns(Draft& draft, const Effects& effects, const DraftNode& node) {
  const auto& writes = node.needs->writes;
  if (std::none_of(writes.begin(), writes.end(), [&](const ColumnSpec& c) { return effects.is_read(node, c); })) return;
  std::vector<ColumnSpec> idle;
  std::copy_if(writes.begin(), writes.end(), std::back_inserter(idle),
               [&](const ColumnSpec& c) { return !effects.is_read(node, c) && !node.needs->by_products.contains(c.name); });
  if (idle.empty()) return;
  draft.warning("column-not-read", place_of(node),
                "no node reads " + column_names(idle) + ", which '" + node.name() + "' writes");
}

// One is the other, or a folder that the other would have to be in.
bool collide(const std::string& one, const std::string& other) {
  return one == other || one.starts_with(other + "/") || other.starts_with(one + "/");
}

void check_files(Draft& draft) {
  std::map<std::string, int> first;
  for (const int index : draft.order) {
    const DraftNode& node = draft.node(index);
    for (const FileNeed& file : node.needs->files) {
      if (const std::string fault = fault_of_run_file(file.path); !fault.empty()) {
        draft.error("path-outside", place_of(node, file.param),
                    "'" + node.name() + "' cannot write " + sluice::quoted(file.path) + " into the run folder: " + fault, {},
                    "name a file in the run folder, such as \"samples.jsonl\" or \"texts/samples.jsonl\"");
        continue;
      }
      const auto found = std::ranges::find_if(first, [&](const auto& other) { return collide(other.first, file.path); });
      if (found == first.end()) {
        first.emplace(file.path, index);
        continue;
      }
      draft.error("file-written-twice", place_of(node, file.param),
                  "'" + node.name() + "' writes " + file.path + ", which '" + draft.node(found->second).name() + "' writes too",
                  {}, "give one of the two another path");
    }
  }
}

void check_devices(Draft& draft) {
  for (const DeviceSpec& device : draft.spec.devices) {
    const auto is_there = [&](const DraftModel& model) { return model.facts.device == device.name.text; };
    if (std::ranges::any_of(draft.models, is_there)) continue;
    draft.error("setting-without-effect", device.name.where, "no model is on " + sluice::quoted(device.name.text), {},
                "device = " + sluice::quoted(device.name.text) + " in [models.NAME], or remove it");
  }
}

}  // namespace

void check_effect(Draft& draft) {
  check_files(draft);
  check_devices(draft);
  const Effects effects(draft);
  for (size_t i = 0; i < draft.nodes.size(); ++i) {
    const DraftNode& node = draft.nodes[i];
    // What a source or a rollout writes by itself may stay unread.
    if (node.type->kind != NodeKind::kOrdinary) continue;
    if (effects.is_useful(static_cast<int>(i)))
      warn_of_idle_columns(draft, effects, node);
    else
      warn_of_idle_node(draft, effects, static_cast<int>(i));
  }
}

}  // namespace sluice::engine::checking
