#pragma once

#include <c10/core/Device.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/json/json.h"
#include "models/config/precision.h"

namespace sluice::bench {

using Answer = std::function<Json(const Json& question)>;

/// Answers each line of JSON on the standard input by one on the standard output, until it ends: bench/harness/workers.py asks
/// several programs in turn. `prepare` makes what answers. Returns the exit status; an error is printed and ends the program
/// with 1.
int answer_questions(const std::function<Answer()>& prepare);

/// "float32" or "bfloat16". Throws UserError for anything else.
models::Precision precision_named(const std::string& name);

/// The calling thread gets so many threads for LibTorch's kernels and ours; throws UserError where `text` is no number from 1.
void use_threads_named(const std::string& text);

/// What the last words of a command line say, [DEVICE [PLUGIN]]: "cpu" without them, "cuda:N", or a device of the plugin.
/// LibTorch knows it from here on: call it before the first tensor. Throws UserError saying what is missing.
at::Device use_device(std::span<char* const> words);

/// Until the device has done what it was given.
void wait_for(at::Device device);

template <class Work>
double seconds_of(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The main() of a program that is asked about a model: Bench(FOLDER, precision, device) has what answer(question) needs.
template <class Bench>
int answer_about_model(int argc, char** argv) {
  if (argc < 4 || argc > 6) {
    std::fprintf(stderr, "usage: %s FOLDER float32|bfloat16 THREADS [DEVICE [PLUGIN]]\n", argv[0]);
    return 64;
  }
  return answer_questions([&]() -> Answer {
    use_threads_named(argv[3]);
    const at::Device device = use_device({argv + 4, argv + argc});
    const auto bench = std::make_shared<Bench>(argv[1], precision_named(argv[2]), device);
    return [bench](const Json& question) { return bench->answer(question); };
  });
}

}  // namespace sluice::bench
