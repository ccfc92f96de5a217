#include "nodes/rollout/environments/calculator.h"

#include <string_view>

#include "nodes/rollout/environments/arithmetic.h"

namespace sluice::nodes {
namespace {

// What `open` marks in the text of a call, or all of arithmetic at its end.
std::optional<std::string_view> expression_in(std::string_view call, const std::string& open) {
  if (open.empty()) return call.substr(call.find_last_not_of("0123456789+-*/() \t") + 1);
  const size_t found = call.rfind(open);
  if (found == std::string_view::npos) return {};
  return call.substr(found + open.size());
}

}  // namespace

void Calculator::describe(engine::Contract<CalculatorParams>& c) {
  using P = CalculatorParams;
  c.type("calculator", "replies to a call with the value of the expression in it");
  c.param("open", &P::open).doc("begins an expression; empty: an expression is all of arithmetic in front of close");
  c.param("close", &P::close).doc("ends an expression, and the turn: a call");
  c.param("prefix", &P::prefix).doc("put before the value");
  c.param("suffix", &P::suffix).doc("put after the value");
  c.check([](const P& params, engine::Findings& findings) {
    if (params.close.empty()) findings.error("close", "close is empty: nothing could end a call", "close = \"</calc>\"");
  });
}

Reply Calculator::reply(const Turn& turn) const {
  const std::string_view last = turn.last;
  const size_t close = last.rfind(params_.close);
  if (close == std::string_view::npos) return {.text = {}, .done = true, .reward = {}};
  const auto expression = expression_in(last.substr(0, close), params_.open);
  const auto value = expression ? evaluate(*expression) : std::nullopt;
  return {.text = params_.prefix + (value ? std::to_string(*value) : "error") + params_.suffix, .done = false, .reward = {}};
}

}  // namespace sluice::nodes
