#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "comm/store.h"
#include "engine/contract/world/gradient_group.h"

namespace sluice::comm {

/// What a group of a model has thrown, said of that model: a LinkLost where a connection broke; a UserError where something came
/// damaged over one that holds; what is a bug stays as it is.
std::exception_ptr failure_of_gradients(const std::string& model, const std::exception_ptr& error);

/// What adds the gradients of a model over the ranks that train it: with connections and a thread of its own, so that sums of two
/// models do not wait for each other. `world`: these ranks, the first of the run, and its slots.
///
/// Waits for: all of them to ask for the same model. Ends when: they are connected, after `join_seconds`, or on `give_up`.
/// `failed` as GlooGradients has it, with failure_of_gradients(). Throws UserError where the ranks cannot be connected, or this
/// has given up.
std::unique_ptr<engine::GradientGroup> gradients_over(const Store& store, const engine::World& world, const std::string& model,
                                                      double join_seconds, std::function<void(std::exception_ptr)> failed,
                                                      const std::stop_token& give_up = {});

}  // namespace sluice::comm
