#pragma once

#include <gmock/gmock.h>

#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/contract/registry.h"
#include "engine/run/try_node.h"

namespace sluice::nodes {

/// Elements within 1e-5 of `expected`; NaN equals NaN.
inline auto Near(std::vector<double> expected, double tolerance = 1e-5) {
  return ::testing::Pointwise(::testing::NanSensitiveDoubleNear(tolerance), std::move(expected));
}

/// One sample with hand-made entries. Tokens default to one more than the actions.
class Sample {
 public:
  template <class T>
  Sample& actions(const engine::Column<T>& column, std::vector<T> entries) {
    action_count_ = static_cast<int64_t>(entries.size());
    return with(column, std::move(entries));
  }
  template <class T>
  Sample& tokens(const engine::Column<T>& column, std::vector<T> entries) {
    token_count_ = static_cast<int64_t>(entries.size());
    return with(column, std::move(entries));
  }
  template <class T>
  Sample& value(const engine::Column<T>& column, T entry) {
    return with(column, std::vector<T>{std::move(entry)});
  }

 private:
  friend class GroupOf;
  using Entries = std::variant<std::vector<float>, std::vector<int64_t>, std::vector<uint8_t>, std::vector<std::string>>;

  template <class T>
  Sample& with(const engine::Column<T>& column, std::vector<T> entries) {
    columns_.push_back({column.spec(), std::move(entries)});
    return *this;
  }

  int64_t action_count_ = 0;
  int64_t token_count_ = -1;
  std::vector<std::pair<engine::ColumnSpec, Entries>> columns_;
};

/// One group: group columns and samples. All samples of all groups have the same columns.
class GroupOf {
 public:
  GroupOf(std::initializer_list<Sample> samples) : samples_(samples) {}

  template <class T>
  GroupOf& value(const engine::Column<T>& column, T entry) {
    engine::ColumnData data(engine::dtype_of<T>(), 1);
    data.entries<T>()[0] = std::move(entry);
    group_.columns.push_back({column.spec(), std::move(data)});
    return *this;
  }

  engine::Group built() const {
    engine::Group group = group_;
    for (const Sample& sample : samples_) {
      const int64_t tokens = sample.token_count_ >= 0 ? sample.token_count_ : sample.action_count_ + 1;
      group.layout.add_sample(tokens, sample.action_count_);
    }
    group.layout.end_group();
    const size_t columns = samples_.empty() ? 0 : samples_.front().columns_.size();
    for (size_t c = 0; c < columns; ++c) {
      const engine::ColumnSpec& spec = samples_.front().columns_[c].first;
      std::visit(
          [&](const auto& first) {
            group.columns.push_back({spec, packed(c, first)});
          },
          samples_.front().columns_[c].second);
    }
    return group;
  }

 private:
  template <class T>
  engine::ColumnData packed(size_t c, const std::vector<T>&) const {
    std::vector<T> all;
    for (const Sample& sample : samples_) {
      const auto& entries = std::get<std::vector<T>>(sample.columns_.at(c).second);
      all.insert(all.end(), entries.begin(), entries.end());
    }
    engine::ColumnData data(engine::dtype_of<T>(), all.size());
    std::ranges::move(all, data.entries<T>().begin());
    return data;
  }

  engine::Group group_;
  std::vector<Sample> samples_;
};

/// What a node wrote, over all groups, back to back.
class Output {
 public:
  explicit Output(engine::NodeOutcome outcome) : outcome_(std::move(outcome)) {}

  template <class T>
  std::vector<T> operator[](const engine::Column<T>& column) const {
    for (const auto& written : outcome_.columns) {
      if (written.spec != column.spec()) continue;
      const auto entries = written.data.entries<T>();
      return {entries.begin(), entries.end()};
    }
    ADD_FAILURE() << "the node wrote no column " << column.name;
    return {};
  }

  const std::vector<int64_t>& dropped_groups() const { return outcome_.dropped_groups; }

  std::map<std::string, double> metrics() const { return {outcome_.metrics.begin(), outcome_.metrics.end()}; }

 private:
  engine::NodeOutcome outcome_;
};

/// One node type alone.
template <class T>
class NodeHarness {
 public:
  using Params = engine::detail::ParamsOf<T>;

  explicit NodeHarness(Params params = {}) : params_(std::make_shared<Params>(std::move(params))) { registry_.add<T>(); }

  /// Each group its own sample; all in one micro-batch unless `groups_per_batch` says otherwise.
  Output run(std::vector<GroupOf> groups, std::vector<size_t> groups_per_batch = {}) const {
    engine::NodeTrial trial{
        .type = &type(), .params = params_, .resources = resources_, .groups = {}, .groups_per_batch = groups_per_batch};
    for (const GroupOf& group : groups) trial.groups.push_back(group.built());
    return Output(engine::try_node(std::move(trial)));
  }
  Output run(Sample sample) const { return run(std::vector{GroupOf{std::move(sample)}}); }

  engine::NodeResources& resources() { return resources_; }
  engine::NodeNeeds needs() const { return type().needs(params_.get()); }

  /// The messages of what binding says about a table with these keys.
  static std::vector<std::string> problems(std::vector<std::pair<std::string, engine::Value>> keys) {
    return problems_beside([](engine::Registry&) {}, std::move(keys));
  }
  /// The same where `register_more` has added components that the keys may name.
  static std::vector<std::string> problems_beside(const std::function<void(engine::Registry&)>& register_more,
                                                  std::vector<std::pair<std::string, engine::Value>> keys) {
    engine::Registry registry;
    registry.add<T>();
    register_more(registry);
    engine::Table table;
    for (auto& [key, value] : keys) table.entries.push_back({key, {}, std::move(value)});
    Problems problems;
    engine::BindContext context{registry, problems, "the node"};
    registry.nodes().begin()->second.bind(table, context);
    std::vector<std::string> messages;
    for (const Problem& problem : problems) messages.push_back(problem.message);
    return messages;
  }

 private:
  const engine::NodeType& type() const { return registry_.nodes().begin()->second; }

  engine::Registry registry_;
  std::shared_ptr<const Params> params_;
  engine::NodeResources resources_;
};

}  // namespace sluice::nodes
