#include "engine/run/try_node.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/text/strings.h"
#include "engine/contract/columns/contract_breach.h"
#include "engine/contract/plugin_code.h"
#include "engine/contract/text_bound.h"

namespace sluice::engine {
namespace {

// The columns of one trial, each with a slot; the node reads the first of them and writes the rest.
struct TrialColumns {
  ColumnSpecs slots;
  std::vector<int> reads;
  std::vector<int> writes;
  Readers readers;  // the node, of each column

  explicit TrialColumns(const NodeNeeds& needs) {
    for (const ColumnSpec& column : needs.reads) add(column, reads);
    for (const ColumnSpec& column : needs.writes) add(column, writes);
    readers = {.columns = std::vector<int>(slots.size(), 1), .tokens = 1};
  }

 private:
  void add(const ColumnSpec& column, std::vector<int>& use) {
    if (std::ranges::find(slots, column) != slots.end()) return;
    use.push_back(static_cast<int>(slots.size()));
    slots.push_back(column);
  }
};

std::string described(const ColumnSpec& column) {
  return std::string(name_of(column.dtype)) + ", one entry a" + (column.extent == Extent::kAction ? "n " : " ") +
         name_of(column.extent);
}

// What the input has is what a node before this one would have written.
void settle_choices(NodeNeeds& needs, std::span<const Group> groups) {
  const auto given = [&](const ColumnSpec& column) {
    return !groups.empty() &&
           std::ranges::find(groups.front().columns, column, &Group::NamedColumn::spec) != groups.front().columns.end();
  };
  for (const ReadsChoice& choice : needs.choices) {
    const auto there = std::ranges::find_if(choice.columns, given);
    if (there != choice.columns.end())
      needs.reads.push_back(*there);
    else if (choice.required)
      needs.reads.push_back(choice.columns.back());
  }
  if (groups.empty()) return;
  for (const std::string& name : needs.reads_any) {
    const auto same_name = [&](const Group::NamedColumn& column) { return column.spec.name == name; };
    const auto there = std::ranges::find_if(groups.front().columns, same_name);
    if (there == groups.front().columns.end()) throw UserError("column '" + name + "' is not given");
    needs.reads.push_back(there->spec);
  }
}

const Group::NamedColumn& input_column(const Group& group, const ColumnSpec& wanted, const std::string& type) {
  const auto same_name = [&](const Group::NamedColumn& column) { return column.spec.name == wanted.name; };
  const auto found = std::ranges::find_if(group.columns, same_name);
  if (found == group.columns.end()) {
    std::vector<std::string> given;
    for (const Group::NamedColumn& column : group.columns) given.push_back(column.spec.name);
    throw UserError(
        "type " + sluice::quoted(type) + " reads column '" + wanted.name + "' (" + described(wanted) + "), which is not given",
        given.empty() ? "no columns are given" : "given are " + join(given, ", "));
  }
  if (found->spec != wanted) {
    throw UserError("column '" + wanted.name + "' is " + described(found->spec) + "; type " + sluice::quoted(type) +
                    " reads it as " + described(wanted));
  }
  const size_t expected = group.layout.count(wanted.extent);
  SLUICE_CHECK(found->data.count() == expected, "column '" + wanted.name + "' does not fit the layout of its group");
  return *found;
}

std::shared_ptr<BatchState> packed(std::span<const Group> groups, int64_t id, int64_t first_group, const TrialColumns& columns,
                                   const std::string& type, ByteMeter& meter) {
  Layout layout;
  std::vector<int64_t> indices;
  for (const Group& group : groups) {
    layout.append(group.layout);
    indices.push_back(first_group++);
  }
  auto state = std::make_shared<BatchState>(0, id, std::move(layout), std::move(indices), std::vector<Credit>(groups.size()),
                                            columns.readers, meter);
  for (const int slot : columns.reads) {
    std::vector<ColumnData> parts;
    for (const Group& group : groups) parts.push_back(input_column(group, columns.slots[static_cast<size_t>(slot)], type).data);
    state->store(static_cast<size_t>(slot), ColumnData::concatenated(parts));
  }
  return state;
}

std::vector<std::shared_ptr<BatchState>> packed_batches(const NodeTrial& trial, const TrialColumns& columns, ByteMeter& meter) {
  std::vector<size_t> sizes = trial.groups_per_batch;
  if (sizes.empty() && !trial.groups.empty()) sizes.push_back(trial.groups.size());
  SLUICE_CHECK(std::accumulate(sizes.begin(), sizes.end(), size_t{0}) == trial.groups.size(),
               "groups_per_batch does not cover all groups");
  std::vector<std::shared_ptr<BatchState>> batches;
  size_t first = 0;
  for (const size_t size : sizes) {
    SLUICE_CHECK(size > 0, "a micro-batch holds at least one group");
    const auto groups = std::span(trial.groups).subspan(first, size);
    const auto id = static_cast<int64_t>(batches.size());
    batches.push_back(packed(groups, id, static_cast<int64_t>(first), columns, trial.type->info.type, meter));
    first += size;
  }
  if (!batches.empty()) batches.back()->is_last = true;
  return batches;
}

std::vector<Group::NamedColumn> written_columns(const NodeType& type, const NodeNeeds& needs,
                                                const std::vector<MicroBatch>& batches, const TrialColumns& columns) {
  std::vector<Group::NamedColumn> written;
  for (size_t i = 0; i < columns.writes.size(); ++i) {
    const ColumnSpec& spec = columns.slots[static_cast<size_t>(columns.writes[i])];
    std::vector<ColumnData> parts;
    for (const MicroBatch& batch : batches) {
      parts.push_back(batch.written_columns()[i]);
      if (parts.back().empty()) throw_contract_breach("it did not write column '" + spec.name + "', which its contract promises");
      check_text_bound(type, needs, spec, parts.back());
    }
    written.push_back({spec, parts.empty() ? ColumnData(spec.dtype, 0) : ColumnData::concatenated(parts)});
  }
  return written;
}

std::vector<int64_t> dropped_groups(const NodeNeeds& needs, const std::vector<MicroBatch>& batches) {
  std::vector<int64_t> dropped;
  for (const MicroBatch& batch : batches) {
    for (size_t g = 0; g < batch.dropped_groups().size(); ++g) {
      if (batch.dropped_groups()[g] != 0) dropped.push_back(batch.group_index(g));
    }
  }
  if (!dropped.empty() && !needs.drops_groups)
    throw_contract_breach("it drops groups, but its contract does not say that it is a filter");
  return dropped;
}

std::vector<MetricSpec> declared_metrics(const NodeNeeds& needs, const std::string& node) {
  std::vector<MetricSpec> metrics = needs.metrics;
  for (MetricSpec& metric : metrics) metric.name = metric_of_node(metric.name, node);
  return metrics;
}

// As a run of one process does it.
void process(Node& node, const NodeNeeds& needs, std::span<MicroBatch> batches, Totals& totals) {
  if (needs.scope == Scope::kMicroBatch) {
    for (MicroBatch& batch : batches) node.process(batch);
  } else {
    for (int64_t step = 0; step < needs.steps; ++step) {
      node.gather(step, batches);
      totals.combine_alone();
      node.process_iteration(step, batches);
    }
  }
  totals.combine_alone();
}

// What its code throws is told as in a run, whatever it is.
void work(Node& node, const NodeNeeds& needs, std::span<MicroBatch> batches, const NodeResources& resources) {
  const Iteration iteration;
  call_plugin("node '" + resources.node + "' failed", [&] {
    node.begin_iteration(iteration);
    process(node, needs, batches, *resources.totals);
    node.end_iteration(iteration);
  });
}

}  // namespace

NodeOutcome try_node(NodeTrial trial) {
  const NodeType& type = *trial.type;
  if (type.kind != NodeKind::kOrdinary) {
    throw UserError("type " + sluice::quoted(type.info.type) +
                    " makes groups by itself; only a node that works on columns can be tried alone");
  }
  NodeResources& resources = trial.resources;
  if (resources.node.empty()) resources.node = type.info.type;
  NodeNeeds needs = type.needs(trial.params.get());
  MetricsRecorder metrics(declared_metrics(needs, resources.node));
  Totals totals(needs.totals);
  if (resources.metrics == nullptr) resources.metrics = &metrics;
  if (resources.totals == nullptr) resources.totals = &totals;

  settle_choices(needs, trial.groups);
  const TrialColumns columns(needs);
  ByteMeter meter;
  const std::vector<std::shared_ptr<BatchState>> states = packed_batches(trial, columns, meter);
  std::vector<MicroBatch> batches;
  for (const auto& state : states) batches.emplace_back(*state, columns.slots, columns.reads, columns.writes);
  const auto made = type.make(trial.params.get(), resources);
  work(dynamic_cast<Node&>(*made), needs, batches, resources);
  std::vector<int64_t> dropped = dropped_groups(needs, batches);
  return {written_columns(type, needs, batches, columns), resources.metrics->take(), std::move(dropped)};
}

}  // namespace sluice::engine
