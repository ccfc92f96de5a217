#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/files/file.h"

namespace sluice::engine {

/// What nodes keep stands in the manifest of a checkpoint, which is read as a whole or not at all. The most of one node, and of
/// all of them: the rest is for what else a manifest has. See state_bytes().
inline constexpr int64_t kMostStateBytes = kMostTextBytes / 4;
inline constexpr int64_t kMostStateBytesOfAll = kMostTextBytes / 4 * 3;

/// What a node keeps from one iteration to the next: named values, and how long the files are that it appends to. A plain value.
struct NodeState {
  using Value = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>>;

  std::map<std::string, Value> values;
  std::map<std::string, int64_t> files;  // in the run folder, by name: bytes

  bool operator==(const NodeState&) const = default;
};

/// The most bytes that it takes in a manifest: 32 of a number, one of a byte of a text, up to 12 where JSON escapes that or it is
/// not UTF-8.
int64_t state_bytes(const NodeState& state);

/// One JSON object, which state_of() of state_json.h takes once it is parsed. Numbers come back bit for bit, also those that are
/// not finite.
std::string state_json(const NodeState& state);

/// Where a node puts what it keeps. A text may be any bytes; a name is UTF-8, is put once, and there are at most 4096: more
/// belong into arrays. All together have at most kMostStateBytes. Else put() throws UserError.
class StateWriter {
 public:
  void put(const std::string& name, int64_t value) { add(name, value); }
  void put(const std::string& name, double value) { add(name, value); }
  void put(const std::string& name, std::string value) { add(name, std::move(value)); }
  void put(const std::string& name, std::vector<int64_t> values) { add(name, std::move(values)); }
  void put(const std::string& name, std::vector<double> values) { add(name, std::move(values)); }

  /// The node appends to `file` of the run folder, which has `bytes` now. A run that goes on from here finds it cut to that
  /// length before the node is made. A file that its contract does not declare (NodeNeeds::files) ends the run.
  void file(const std::string& file, int64_t bytes) { state_.files[file] = bytes; }

  NodeState take() { return std::move(state_); }

 private:
  void add(const std::string& name, NodeState::Value value);

  NodeState state_;
  int64_t bytes_ = 0;  // state_bytes() of what was put
};

/// What a node put into a StateWriter. Each throws UserError when there is no such value or it is of another kind.
class StateReader {
 public:
  explicit StateReader(const NodeState& state) : state_(state) {}

  int64_t integer(const std::string& name) const;
  double number(const std::string& name) const;
  const std::string& text(const std::string& name) const;
  const std::vector<int64_t>& integers(const std::string& name) const;
  const std::vector<double>& numbers(const std::string& name) const;
  bool has(const std::string& name) const { return state_.values.contains(name); }

 private:
  template <class T>
  const T& value(const std::string& name, const char* kind) const;

  const NodeState& state_;
};

}  // namespace sluice::engine
