#pragma once

#include <map>
#include <string>

#include "engine/plan/plan.h"

namespace sluice::cli {

/// By which ranks find that they have other files under the path of a model, as from caches of their own: for each folder that
/// the models of a plan are made from, the number of bytes and a checksum of samples of its files. Of files of weights that is
/// their beginning, which says what is in them, and blocks all over them, so it takes no time that grows with the model.
///
/// Keys are for messages: "the files of model 'actor'". Thread-safe. Failure: what cannot be read has no mark, and loading it
/// says why.
std::map<std::string, std::string> model_marks(const engine::Plan& plan);

}  // namespace sluice::cli
