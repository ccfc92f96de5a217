#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/plan/plan.h"

namespace sluice::engine {

/// Which settings are without errors, so that what follows from them can be looked at while others are wrong.
struct RightSettings {
  bool pipeline = false, budget = false, schedule = false, runtime = false;
  bool cluster_keys = false;  // of [cluster] and its roles, each for itself
  bool cluster = false;       // and what they say of each other
};

/// Binds the tables of `spec` into the plan's settings and fills plan.effective with their keys. Reports into `problems`.
RightSettings bind_settings(const PipelineSpec& spec, const Registry& registry, Problems& problems, Plan& plan);

/// How many parts every iteration has: as [cluster] says, or as many as ranks train. Reports where these cannot share them. Part
/// of bind_settings() but for plans with roles, of which it must be known first who trains.
void settle_slots(const PipelineSpec& spec, Problems& problems, Plan& plan);

/// Letters, digits, '_', '-' and '.', which is not the first: the run folder is called after it.
bool is_pipeline_name(const std::string& name);

/// The name of the table of a device: devices."cuda:0".
std::string device_table(const std::string& device);

/// Every key of one table with its value and where it came from. Paths become absolute: the effective pipeline works from any
/// folder. `preset` is the scope that the table was bound in.
std::vector<EffectiveKey> effective_keys(const std::string& table_name, const ParamTable& params, const void* values,
                                         const Table& table, const PresetScope& preset = {});

/// "default" where nothing is written, "--set", or FILE:LINE.
std::string origin_of(const SourceSpan& where);

/// `configured`, or all cores that this process may use where it is 0.
int64_t resolved_cores(int64_t configured);

}  // namespace sluice::engine
