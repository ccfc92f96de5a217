#include "bench/questions.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <charconv>
#include <iostream>

#include "base/device_name.h"
#include "base/error.h"
#include "engine/contract/plugin/plugin.h"
#include "engine/contract/registry.h"
#include "models/devices/device_named.h"
#include "models/memory/tensor_pool.h"
#include "nodes/builtin.h"
#include "nodes/models/passes/threads.h"

namespace sluice::bench {

int answer_questions(const std::function<Answer()>& prepare) {
  models::TensorPool::install();  // as the program does
  try {
    const Answer answer = prepare();
    models::TensorPool::of_process().keep_freed();
    for (std::string question; std::getline(std::cin, question);)
      std::cout << answer(parse_json(question, "question")).dump() << std::endl;
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return 1;
  }
}

models::Precision precision_named(const std::string& name) {
  for (const auto& [precision, spelled] : enum_names(models::Precision{}))
    if (name == spelled) return precision;
  throw UserError("'" + name + "' is no precision", "float32 or bfloat16");
}

void use_threads_named(const std::string& text) {
  int threads = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
  if (error != std::errc{} || end != text.data() + text.size() || threads < 1)
    throw UserError("'" + text + "' is no number of threads", "the cores of the machine");
  nodes::use_threads(threads);
}

at::Device use_device(std::span<char* const> words) {
  const std::string name = words.empty() ? "cpu" : words[0];
  if (name == "cpu") return at::kCPU;
  engine::Registry registry;
  nodes::register_builtin(registry);
  if (words.size() > 1) engine::load_plugin(words[1], registry);
  const auto parts = device_name(name);
  const engine::DeviceKind* const kind = parts ? registry.find_device_kind(parts->kind) : nullptr;
  if (kind == nullptr)
    throw UserError("'" + name + "' is no device", "cpu, cuda:N, or a device of a plugin that is named after it");
  if (const auto missing = kind->missing(parts->number)) throw UserError(missing->what, missing->help);
  kind->use();
  return models::device_named(name).value();
}

void wait_for(at::Device device) {
  if (!device.is_cpu()) c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
}

}  // namespace sluice::bench
