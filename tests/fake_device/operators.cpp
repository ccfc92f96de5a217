#include "tests/fake_device/operators.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "models/memory/tensor_memory.h"
#include "tests/fake_device/attention.h"
#include "tests/fake_device/called_operators.h"
#include "tests/fake_device/copies.h"
#include "tests/fake_device/memory.h"
#include "tests/fake_device/streams.h"

namespace sluice::fake {
namespace {

using c10::IValue;
using torch::jit::Stack;

struct Counters {
  std::atomic<int64_t> operators = 0, host_waits = 0, peak_scratch = 0;
};

Counters& counters() {
  static Counters& all = *new Counters;
  return all;
}

// Each tensor of a value becomes change(tensor).
template <class Change>
IValue changed(const IValue& value, const Change& change) {
  if (value.isTensor()) return change(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(change(tensor));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector())
      list.push_back(tensor ? std::optional(change(*tensor)) : std::nullopt);
    return list;
  }
  if (value.isDevice()) return c10::Device(c10::kCPU);
  return value;
}

template <class Change>
Stack changed_all(const Stack& values, const Change& change) {
  Stack result;
  for (const IValue& value : values) result.push_back(changed(value, change));
  return result;
}

// The one device of all tensors; those of the host are single numbers.
c10::Device common_device(const c10::FunctionSchema& schema, const Stack& arguments) {
  std::optional<c10::Device> found;
  const auto look = [&](const at::Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    TORCH_CHECK(tensor.is_privateuseone() || (tensor.is_cpu() && tensor.dim() == 0), schema.operator_name(),
                " of a device has a tensor of the host, of ", tensor.numel(), " numbers");
    if (!tensor.is_privateuseone()) return tensor;
    TORCH_CHECK(!found || *found == tensor.device(), schema.operator_name(), " has tensors of ", *found, " and ",
                tensor.device());
    found = tensor.device();
    return tensor;
  };
  changed_all(arguments, look);
  for (const IValue& argument : arguments) {
    if (!found && argument.isDevice()) found = argument.toDevice();
  }
  TORCH_CHECK(found, schema.operator_name(), " is not asked of a device");
  return *found;
}

// Of the same shape and without anything that an index could miss.
at::Tensor like_with_zeros(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.is_cpu()) return tensor;
  return at::empty_strided(tensor.sizes(), tensor.strides(), at::TensorOptions(tensor.scalar_type())).zero_();
}

// What the host has now, whatever it does later.
at::Tensor view_or_copy(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  return tensor.is_cpu() ? tensor.detach().clone() : host_view(tensor);
}

void call(const c10::OperatorHandle& op, Stack& stack) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  op.callBoxed(&stack);
}

// What of the results belongs to arguments: the argument's number, or nothing.
std::vector<std::optional<size_t>> arguments_of_results(const c10::FunctionSchema& schema) {
  std::vector<std::optional<size_t>> owners;
  for (const c10::Argument& result : schema.returns()) {
    owners.emplace_back();
    if (result.alias_info() == nullptr) continue;
    TORCH_CHECK(result.alias_info()->isWrite(), schema.operator_name(), " makes views: the fake device lacks it");
    for (size_t i = 0; i < schema.arguments().size(); ++i) {
      const auto* of_argument = schema.arguments()[i].alias_info();
      if (of_argument != nullptr && of_argument->beforeSets() == result.alias_info()->beforeSets()) owners.back() = i;
    }
    TORCH_CHECK(owners.back(), schema.operator_name(), " returns no argument");
  }
  return owners;
}

bool gives_numbers(const c10::FunctionSchema& schema) {
  for (const c10::Argument& result : schema.returns()) {
    if (result.type()->kind() != c10::TypeKind::TensorType && result.type()->kind() != c10::TypeKind::ListType) return true;
  }
  return false;
}

at::Tensor allocated_like(const at::Tensor& tensor, c10::Device device) {
  if (!tensor.defined()) return tensor;
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(device));
}

// The work of an operator: results that are new go where they were promised.
void compute(const c10::OperatorHandle& op, Stack arguments, const std::vector<std::optional<at::Tensor>>& promised) {
  std::vector<std::vector<int64_t>> shapes;
  for (const IValue& value : arguments)
    shapes.push_back(value.isTensor() && value.toTensor().defined() ? value.toTensor().sizes().vec() : std::vector<int64_t>{});
  const Stack before = arguments;
  call(op, arguments);
  for (size_t i = 0; i < before.size(); ++i) {
    if (!before[i].isTensor() || !before[i].toTensor().defined()) continue;
    TORCH_CHECK(before[i].toTensor().sizes().vec() == shapes[i], op.schema().operator_name(), " changes the size of an argument");
  }
  for (size_t i = 0; i < promised.size(); ++i) {
    if (!promised[i] || !promised[i]->defined()) continue;
    const at::Tensor result = arguments[i].toTensor();
    TORCH_CHECK(result.sizes() == promised[i]->sizes() && result.scalar_type() == promised[i]->scalar_type(),
                op.schema().operator_name(), " gives what its arguments' values decide: the fake device has to wait for them");
    promised[i]->copy_(result);
  }
}

bool is_empty(const IValue& value) { return value.isTensor() && value.toTensor().defined() && value.toTensor().numel() == 0; }

// Results that are new, or that are given to be resized, have a shape that only the operator knows.
bool needs_rehearsal(const std::vector<std::optional<size_t>>& owners, const Stack& arguments) {
  return std::ranges::any_of(owners, [&](const auto& owner) { return !owner || is_empty(arguments[*owner]); });
}

// The results of the same operator on numbers of the host that have the same shapes: what is computed later will look like
// them.
Stack rehearsal(const c10::OperatorHandle& op, const Stack& arguments) {
  Stack stack = changed_all(arguments, like_with_zeros);
  call(op, stack);
  return stack;
}

void operate(const c10::OperatorHandle& op, Stack* stack) {
  note_called(op);
  const c10::FunctionSchema& schema = op.schema();
  const Stack arguments = torch::jit::pop(*stack, schema.arguments().size());
  const c10::Device device = common_device(schema, arguments);
  const c10::DeviceGuard on_device(device);
  if (gives_numbers(schema)) {
    wait_for_host(device);
    Stack here = changed_all(arguments, view_or_copy);
    call(op, here);
    for (IValue& result : here) stack->push_back(std::move(result));
    return;
  }
  const auto owners = arguments_of_results(schema);
  const Stack rehearsed = needs_rehearsal(owners, arguments) ? rehearsal(op, arguments) : Stack();
  Stack results;
  std::vector<std::optional<at::Tensor>> promised;
  for (size_t i = 0; i < owners.size(); ++i) {
    if (owners[i]) {
      if (is_empty(arguments[*owners[i]])) arguments[*owners[i]].toTensor().resize_(rehearsed[i].toTensor().sizes());
      results.push_back(arguments[*owners[i]]);
      promised.emplace_back();
    } else {
      results.push_back(allocated_like(rehearsed[i].toTensor(), device));
      promised.emplace_back(host_view(results.back().toTensor()));
    }
  }
  queue_on(device, [op, here = changed_all(arguments, view_or_copy), promised] { compute(op, here, promised); });
  for (IValue& result : results) stack->push_back(std::move(result));
}

}  // namespace

void queue_on(c10::Device device, std::function<void()> work) {
  ++counters().operators;
  stream_of(current_stream(device.index())).queue([work = std::move(work)] {
    thread_local const auto scratch = [] {
      auto memory = std::make_unique<models::TensorMemory>();
      memory->watch_this_thread();
      return memory;
    }();
    scratch->take_peak();
    const int64_t before = scratch->live();
    work();
    const int64_t taken = scratch->take_peak() - before;
    int64_t peak = counters().peak_scratch.load();
    while (peak < taken && !counters().peak_scratch.compare_exchange_weak(peak, taken)) {
    }
  });
}

void wait_for_host(c10::Device device) {
  ++counters().host_waits;
  stream_of(current_stream(device.index())).wait();
}

Counts take_operator_counts() {
  return {.operators = counters().operators.exchange(0),
          .host_waits = counters().host_waits.exchange(0),
          .peak_scratch = counters().peak_scratch.exchange(0)};
}

void install_operators() {
  const auto key = std::make_optional(c10::DispatchKey::PrivateUse1);
  auto& aten = *new torch::Library(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
  add_copies(aten);
  add_attention(aten);
  add_own_kernels(*new torch::Library(torch::Library::IMPL, "sluice", key, __FILE__, __LINE__));
  auto& all = *new torch::Library(torch::Library::IMPL, "_", key, __FILE__, __LINE__);
  all.fallback(torch::CppFunction::makeFromBoxedFunction<&operate>());
}

}  // namespace sluice::fake
