#pragma once

#include <string>
#include <string_view>

namespace sluice::nodes {

/// What is wrong with the name that a scorer outside of this process gives a metric, "a metric named ..."; empty: nothing. Names
/// become keys of files and parts of what terminals and trackers show, so they are of letters and digits of ASCII and of _ - / .
/// One name is taken: failed_samples.
std::string fault_of_metric_name(std::string_view name);

}  // namespace sluice::nodes
