#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/contract/params/param_info.h"
#include "engine/contract/params/preset.h"
#include "engine/contract/params/scheduled_number.h"
#include "engine/contract/spec/spec.h"

namespace sluice::engine {

class KnownNames;

/// Where binding reports and what it may look up. `owner` is how messages call the table: `type "gae"`, `[budget]`.
struct BindContext {
  const KnownNames& known;
  Problems& problems;
  std::string owner;
  PresetScope preset = {};
  int64_t iterations = 0;  // of the run; 0: not known
};

/// The value of one parameter.
struct ParamText {
  std::string name;
  std::string text;  // as TOML
  bool harmless = false;
};

/// One parameter, type-erased. `bind` writes the value into the params struct and reports what is wrong with it.
struct Param {
  ParamInfo info;
  std::function<void(void* params, const Value&, BindContext&, const ParamInfo&)> bind;
  std::function<std::string(const void* params)> text;                      // the value as TOML; empty: unset
  std::function<std::vector<ParamText>(const void* params)> parts;          // kComponent, kTable: the same key by key; else empty
  std::function<std::vector<NamedSchedule>(const void* params)> schedules;  // kScheduled: itself, kComponent: its own; else empty
};

/// The parameters of one table of a pipeline file.
class ParamTable {
 public:
  /// Binds every key of `table` into `params`. Reports unknown keys (with a did-you-mean), wrong types and ranges, and required
  /// keys that are missing (at table.where). Keys that are not written get the preset's value, or keep the value that `params`
  /// has; a component that is not written is made with its default parameters.
  void bind(void* params, const Table& table, BindContext& context) const;

  const Param* find(std::string_view name) const;
  const std::vector<Param>& params() const { return params_; }
  std::vector<ParamInfo> infos() const;

  /// Every value that is set.
  std::vector<ParamText> texts(const void* params) const;

  /// Every scheduled parameter, those of components among them, whether it changes or not.
  std::vector<NamedSchedule> schedules(const void* params) const;

  Param& add(Param param);

 private:
  std::vector<Param> params_;
};

}  // namespace sluice::engine
