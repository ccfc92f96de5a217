#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "models/config/config.h"
#include "models/config/precision.h"
#include "models/layers/feed_forward/router_training.h"
#include "models/layers/feed_forward/routes.h"
#include "models/layers/norm.h"
#include "models/layers/pass_shape.h"
#include "models/layers/ragged_attention.h"

namespace sluice::models {

/// What all layers of one forward pass and its backward share. Immutable.
struct LayerPass {
  LayerPass(const ModelConfig& of, std::span<const int64_t> sample_offsets, const Segment& segment, Precision computed_in,
            bool recomputes, std::shared_ptr<RouterTraining> told = {}, at::Tensor given_routes = {})
      : config(of),
        layout(of, sample_offsets, segment),
        precision(computed_in),
        recompute(recomputes),
        routers(std::move(told)),
        routes(std::move(given_routes)) {}

  const ModelConfig config;
  const RaggedLayout layout;
  const Precision precision;
  const bool recompute;                           // a layer keeps its input alone and computes the rest again in the backward
  const std::shared_ptr<RouterTraining> routers;  // whom mixtures tell of the pass in its backward; null: nobody
  const at::Tensor routes;                        // [T, RouteForm::token_bytes()] uint8, given to them; undefined: they choose

  Norm norm(const at::Tensor& weight, const at::Tensor& bias = {}) const {
    return {.kind = config.norm, .eps = config.norm_eps, .weight = weight, .bias = bias};
  }
  std::optional<RouterOfLayer> router_of(int64_t layer) const {
    return routers ? std::optional(RouterOfLayer{*routers, layer, layout.row_offsets, layout.segment}) : std::nullopt;
  }
  LayerRoutes routes_of(int64_t layer) const { return layer_routes(config, routes, layer); }
  PassShape shape() const {
    const Segment& segment = layout.segment;
    return {config, precision, layout.rows(), segment.ranks, segment.ring, segment.expert_ranks};
  }
};

}  // namespace sluice::models
