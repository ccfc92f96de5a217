#pragma once

#include <string>
#include <vector>

#include "engine/contract/params/param_info.h"

namespace sluice::engine {

/// Why a type cannot declare these parameters: a pipeline that writes all of them out, as every run does for the day it goes on,
/// could not be read again. A name is a bare key of TOML, some number is in the bounds, and the default is what the parameter
/// takes. Empty: it can.
std::string fault_of_declared(const std::vector<ParamInfo>& params);

}  // namespace sluice::engine
