#include "models/layers/feed_forward/routes.h"

#include <ATen/ops/stack.h>

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace sluice::models {
namespace {

constexpr uint8_t kOpen = 255;  // all bytes of an open layer: no expert has that number, and its upper byte none either

}  // namespace

RouteForm route_form(const ModelConfig& config) {
  if (!config.experts.any()) return {};
  return {.layers = config.mixtures(),
          .experts = config.experts.count,
          .per_token = config.experts.per_token,
          .ends_in_one = config.is_mixture(config.layers - 1)};
}

void write_route(const RouteForm& form, const int32_t* chosen, uint8_t* to) {
  for (int64_t k = 0; k < form.per_token; ++k) {
    const auto expert = static_cast<uint32_t>(chosen[k]);
    *to++ = static_cast<uint8_t>(expert);
    if (form.expert_bytes() == 2) *to++ = static_cast<uint8_t>(expert >> 8);
  }
}

bool read_route(const RouteForm& form, const uint8_t* from, int32_t* chosen) {
  if (from[form.expert_bytes() - 1] == kOpen) return false;
  for (int64_t k = 0; k < form.per_token; ++k, from += form.expert_bytes())
    chosen[k] = form.expert_bytes() == 1 ? from[0] : from[0] + 256 * from[1];
  return true;
}

bool are_routes_of(const RouteForm& form, const at::Tensor& routes) {
  if (routes.size(1) != form.token_bytes()) return false;
  std::vector<int32_t> chosen(static_cast<size_t>(form.per_token));
  const auto* layer = routes.const_data_ptr<uint8_t>();
  for (const uint8_t* const end = layer + routes.numel(); layer < end; layer += form.layer_bytes()) {
    if (read_route(form, layer, chosen.data()) && std::ranges::max(chosen) >= form.experts) return false;
  }
  return true;
}

void open_tokens(std::span<uint8_t> tokens) { std::ranges::fill(tokens, kOpen); }

void append_open_tokens(const RouteForm& form, int64_t tokens, std::string& routes) {
  routes.append(static_cast<size_t>(tokens * form.token_bytes()), static_cast<char>(kOpen));
}

void open_last_layer(const RouteForm& form, uint8_t* token) {
  if (!form.ends_in_one) return;
  std::fill_n(token + form.token_bytes() - form.layer_bytes(), form.layer_bytes(), kOpen);
}

LayerRoutes layer_routes(const ModelConfig& config, const at::Tensor& routes, int64_t layer) {
  if (!routes.defined() || !config.is_mixture(layer)) return {};
  const RouteForm form = route_form(config);
  const int64_t begin = config.experts.mixtures_before(layer) * form.layer_bytes();
  return {routes.const_data_ptr<uint8_t>() + begin, form.token_bytes(), form};
}

at::Tensor layer_routes_in_operators(const ModelConfig& config, const at::Tensor& routes, int64_t layer) {
  if (!routes.defined() || !config.is_mixture(layer)) return {};
  const RouteForm form = route_form(config);
  const int64_t begin = config.experts.mixtures_before(layer) * form.layer_bytes();
  const at::Tensor bytes =
      routes.narrow(1, begin, form.layer_bytes()).reshape({routes.size(0), form.per_token, form.expert_bytes()}).to(at::kLong);
  const at::Tensor last = bytes.select(2, form.expert_bytes() - 1);
  const at::Tensor experts = form.expert_bytes() == 1 ? last : bytes.select(2, 0).add(last, 256);
  return experts.masked_fill(last.eq(kOpen), -1);
}

at::Tensor routes_of_layers(const RouteForm& form, std::span<const at::Tensor> chosen) {
  SLUICE_CHECK(static_cast<int64_t>(chosen.size()) == form.layers, "routes of other layers than the model's mixtures");
  at::Tensor experts = at::stack(std::vector<at::Tensor>(chosen.begin(), chosen.end()), 1);  // [T,L,K]
  if (form.expert_bytes() == 2) experts = at::stack({experts.bitwise_and(255), experts.bitwise_right_shift(8)}, -1);
  return experts.to(at::kByte).to(at::kCPU).reshape({experts.size(0), form.token_bytes()});
}

}  // namespace sluice::models
