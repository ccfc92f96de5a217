#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/plan.h"

namespace sluice::engine {

/// A table that every pipeline may have, such as [budget], and its parameters.
struct SettingsTable {
  std::string name;
  ParamTable params;
};

ParamSet<PipelineSettings> pipeline_params();
ParamSet<BudgetSettings> budget_params();
ParamSet<ScheduleSettings> schedule_params();
ParamSet<RuntimeSettings> runtime_params();
ParamSet<CheckpointSettings> checkpoint_params();

/// All of them in the order of a pipeline file; what the JSON schema and the documentation list.
std::vector<SettingsTable> settings_tables();

/// Binds the five tables of `spec` into the plan's settings and fills plan.effective with their keys. Reports into `problems`.
void bind_settings(const PipelineSpec& spec, const Registry& registry, Problems& problems, Plan& plan);

/// Every key of one table with its value and where it came from. Paths become absolute: the effective pipeline works from any
/// folder. `preset` is the scope that the table was bound in.
std::vector<EffectiveKey> effective_keys(const std::string& table_name, const ParamTable& params, const void* values,
                                         const Table& table, const PresetScope& preset = {});

/// "default" where nothing is written, "--set", or FILE:LINE.
std::string origin_of(const SourceSpan& where);

/// `configured`, or all cores that this process may use where it is 0.
int64_t resolved_cores(int64_t configured);

}  // namespace sluice::engine
