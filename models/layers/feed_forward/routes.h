#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>

#include "models/config/config.h"

namespace sluice::models {

// Routes: which experts the tokens of a sample went through in each layer, written down as bytes, so that others can send the
// same tokens through the same experts (rollout routing replay, Ma et al. 2025, arXiv 2510.11370, section 3). A token's route is
// that of its layers one after the other, L layers of K experts, ascending; layers that are no mixtures take no bytes of it. An
// expert is one byte, or two, the lower first, where 255 of them are not enough. A layer may be open: nothing is said of it
// there, and the token goes where the router sends it.

/// How routes of a model are written. A value.
struct RouteForm {
  int64_t layers = 0;       // L, that are mixtures; 0: none is, and there are no routes
  int64_t experts = 0;      // E, of each layer
  int64_t per_token = 0;    // K
  bool ends_in_one = true;  // the last layer of the model is a mixture

  int64_t expert_bytes() const { return experts <= 255 ? 1 : 2; }
  int64_t layer_bytes() const { return per_token * expert_bytes(); }
  int64_t token_bytes() const { return layers * layer_bytes(); }

  bool operator==(const RouteForm&) const = default;
};

RouteForm route_form(const ModelConfig& config);

/// One layer of a token's route: from and to chosen[K]. read_route() gives false where it is open, and leaves `chosen` alone.
void write_route(const RouteForm& form, const int32_t* chosen, uint8_t* to);
bool read_route(const RouteForm& form, const uint8_t* from, int32_t* chosen);

/// Whether all experts in routes[T, token_bytes()], uint8 on the CPU, are some of the model's.
bool are_routes_of(const RouteForm& form, const at::Tensor& routes);

/// Leaves whole tokens open, so many more after what is there, or the last layer of one, if the model's last layer is a mixture.
void open_tokens(std::span<uint8_t> tokens);
void append_open_tokens(const RouteForm& form, int64_t tokens, std::string& routes);
void open_last_layer(const RouteForm& form, uint8_t* token);

/// One layer of the routes of some tokens as it lies in memory.
struct LayerRoutes {
  const uint8_t* first = nullptr;  // null: the routers choose
  int64_t stride = 0;              // bytes from token to token
  RouteForm form = {};

  bool given() const { return first != nullptr; }
  bool read(int64_t token, int32_t* chosen) const { return given() && read_route(form, first + token * stride, chosen); }
  LayerRoutes from(int64_t token) const { return given() ? LayerRoutes{first + token * stride, stride, form} : LayerRoutes{}; }
};

/// Those of a layer of the model in routes[T, token_bytes()], uint8 on the CPU, whose memory it shares; of an undefined tensor,
/// or a layer that is no mixture, none are given.
LayerRoutes layer_routes(const ModelConfig& config, const at::Tensor& routes, int64_t layer);

/// The same for LibTorch's operators: [T,K] int64, on the device of `routes`, -1 where the layer is open.
at::Tensor layer_routes_in_operators(const ModelConfig& config, const at::Tensor& routes, int64_t layer);

/// From chosen[T,K] int64 of each mixture: [T, token_bytes()] uint8 on the CPU.
at::Tensor routes_of_layers(const RouteForm& form, std::span<const at::Tensor> chosen);

/// What a mixture is given of a layer's routes in LibTorch's operators, and what it tells of them.
struct RoutesInOperators {
  at::Tensor given = {};         // [T,K], layer_routes_in_operators(); undefined: the router chooses
  at::Tensor* chosen = nullptr;  // becomes [T,K] int64: where the tokens went
};

}  // namespace sluice::models
