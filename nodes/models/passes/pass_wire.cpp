#include "nodes/models/passes/pass_wire.h"

#include <ATen/ops/empty.h>

#include <utility>

#include "base/error.h"
#include "nodes/models/passes/group_exchange.h"

namespace sluice::nodes {

void send_request(engine::PassGroup& group, int to, PassCommand command, const PassRequest& part) {
  command.tokens = part.tokens.numel(), command.places = part.places.numel();
  if (part.routes.defined()) command.route_bytes = part.routes.size(1);
  group.send(to, command.to_text(), {});
  engine::PassGroup::Columns columns{column_of(part.tokens), column_of(part.places)};
  if (part.logprobs) columns.push_back(column_of(part.targets));
  if (part.routes.defined()) columns.push_back(column_of(part.routes));
  group.send(to, {}, std::move(columns));
}

PassRequest receive_request(engine::PassGroup& group, int from, const PassCommand& command) {
  PassRequest request = command.request;
  const auto numbers = [](int64_t count) { return at::empty({count}, at::kLong); };
  request.tokens = numbers(command.tokens), request.places = numbers(command.places), request.targets = numbers(command.places);
  if (command.route_bytes > 0) request.routes = at::empty({command.tokens, command.route_bytes}, at::kByte);
  const auto bytes =
      static_cast<int64_t>(sizeof(int64_t)) * (command.tokens + 2 * command.places) + command.tokens * command.route_bytes;
  const engine::PassGroup::Columns come = group.receive(from, bytes).columns;
  SLUICE_CHECK(come.size() == 2U + (request.logprobs ? 1U : 0U) + (request.routes.defined() ? 1U : 0U),
               "a pass without its tokens");
  copy_column(come[0], request.tokens);
  copy_column(come[1], request.places);
  if (request.logprobs) copy_column(come[2], request.targets);
  if (request.routes.defined()) copy_column(come.back(), request.routes);
  return request;
}

void send_outputs(engine::PassGroup& group, int to, const std::vector<at::Tensor>& outputs) {
  engine::PassGroup::Columns columns;
  for (const at::Tensor& output : outputs) columns.push_back(column_of(output.detach()));
  group.send(to, {}, std::move(columns));
}

std::vector<at::Tensor> receive_outputs(engine::PassGroup& group, int from, const PassRequest& request, int64_t count) {
  const auto come = group.receive(from, count * static_cast<int64_t>(request.outputs() * sizeof(float)));
  SLUICE_CHECK(come.columns.size() == request.outputs(), "a rank of a pass has other outputs than were asked for");
  std::vector<at::Tensor> outputs;
  for (const engine::ColumnData& column : come.columns) copy_column(column, outputs.emplace_back(at::empty({count})));
  return outputs;
}

}  // namespace sluice::nodes
