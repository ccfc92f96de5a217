#include "bench/questions.h"

#include <charconv>
#include <iostream>

#include "base/error.h"
#include "models/memory/tensor_pool.h"
#include "nodes/models/threads.h"

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

}  // namespace sluice::bench
