#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/files/path_kind.h"
#include "base/text/strings.h"
#include "cli/model/chat_context.h"
#include "cli/model/commands.h"
#include "cli/model/sampled_model.h"
#include "cli/process/exit_codes.h"
#include "cli/process/stop_signals.h"
#include "cli/terminal/terminal.h"

namespace sluice::cli {
namespace {

constexpr int64_t kDefaultContext = 8192;
constexpr int64_t kDefaultAnswer = 1024;
constexpr const char* kHelp =
    "a line is what you say; the model answers\n"
    "  /reset   begin a new conversation\n"
    "  /help    this\n"
    "  /exit    leave, as Ctrl-D does\n"
    "Ctrl-C stops an answer; a second one leaves.\n";

// Notices are no part of what the model says.
void tell(const std::string& text) {
  print_text(text + "\n", stderr);
  std::fflush(stderr);
}

bool is_command(const std::string& line) {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  return line.size() > 1 && line.front() == '/' && std::all_of(line.begin() + 1, line.end(), is_letter);
}

text::ChatTemplate template_of(const ChatArguments& arguments) {
  if (!arguments.template_file.empty()) return text::ChatTemplate::load(arguments.folder, arguments.template_file);
  if (is_folder(arguments.folder) && !text::ChatTemplate::is_in(arguments.folder)) {
    throw UserError(
        arguments.folder.string() + " has no chat template: it does not say how a conversation is written",
        "name one with --template FILE, or put it into the folder as chat_template.jinja; a model that was not trained to chat "
        "continues texts: rlhf-run model sample");
  }
  return text::ChatTemplate::load(arguments.folder);
}

/// One conversation after the other. One thread.
class Chat {
 public:
  Chat(const ChatArguments& arguments, const SampledModel& model, const text::ChatTemplate& chat)
      : arguments_(arguments),
        model_(model),
        room_(std::min<int64_t>(model.model.config.steady_positions(),
                                arguments.context > 0 ? arguments.context : kDefaultContext)),
        context_(model.tokenizer, chat, arguments.system),
        engine_(model.model.config, model.options, limits()) {}

  int run() {
    const bool asks = ::isatty(STDIN_FILENO) == 1 && !arguments_.json;
    if (asks) tell("/help tells what there is; Ctrl-D leaves");
    while (const std::optional<std::string> next = next_line(asks)) {
      const std::string& line = *next;
      if (line == "/exit") break;
      if (line == "/reset") {
        context_.reset();
      } else if (line == "/help") {
        tell(kHelp);
      } else if (is_command(line)) {
        tell(line + " is no command: /help tells what there is");
      } else if (!is_utf8(line)) {  // as a terminal with another character set sends it; no template takes that
        all_answered_ = false;
        tell("this line is not UTF-8 and was not sent");
      } else if (!trim(line).empty()) {
        answer(line);
        if (signal_ == SIGTERM) return exit_code_of_signal(signal_);
      }
    }
    return all_answered_ ? kDone : kFailed;
  }

 private:
  models::GenerationLimits limits() const {
    models::GenerationLimits limits;
    limits.max_running_samples = 1;
    limits.kv_blocks = room_ / limits.kv_block_size + 1;
    return limits;
  }

  static std::optional<std::string> next_line(bool asks) {
    if (asks) {
      std::printf("> ");
      std::fflush(stdout);
    }
    if (std::string line; std::getline(std::cin, line)) return line;
    if (asks) std::printf("\n");
    return std::nullopt;
  }

  void answer(const std::string& user) {
    std::vector<int64_t> context = context_.ask(user);
    const auto tokens = static_cast<int64_t>(context.size());
    if (tokens == 0) throw UserError("the chat template writes nothing of the conversation: there is nothing to answer");
    if (tokens >= room_) {
      context_.take_back();
      all_answered_ = false;
      tell("the conversation would have " + plural(tokens, "token") + ", and there is room for " + std::to_string(room_) + ": " +
           remedy());
      return;
    }
    const int64_t wanted = arguments_.sampling.max_new_tokens > 0 ? arguments_.sampling.max_new_tokens : kDefaultAnswer;
    const models::SampleResult result = sample(std::move(context), std::min(wanted, room_ - tokens));
    context_.answer(without_end(result));
    if (arguments_.json) print_json(result, tokens);
    if (result.finish == models::FinishReason::kStopped) tell("(stopped)");
    if (result.finish == models::FinishReason::kLength) {
      tell(wanted < room_ - tokens ? "(cut off after " + plural(wanted, "token") + ": --max-new-tokens)"
                                   : "(the conversation fills all " + std::to_string(room_) + " tokens: " + remedy() + ")");
    }
  }

  models::SampleResult sample(std::vector<int64_t> context, int64_t most) {
    // One interrupt ends the answer here; a second one while it lasts ends the program.
    const StopSignals signals;
    engine_.set_judge(
        [&](uint64_t, std::span<const int64_t>) { return signals.seen() != 0 ? models::Next::kEnds : models::Next::kGoesOn; });
    const RandomStream stream(arguments_.sampling.seed, 0, 0, static_cast<uint32_t>(turns_));
    engine_.submit({.id = turns_, .prompt = std::move(context), .max_new_tokens = most, .stream = stream});
    GrowingText text(model_.tokenizer);
    std::optional<models::SampleResult> result;
    reused_ = 0;
    while (!result) {
      for (models::SampleResult& ended : engine_.step(model_.model.weights)) result = std::move(ended);
      reused_ += engine_.last_step().reused_tokens;
      if (!arguments_.json) text.grown(result ? without_end(*result) : engine_.sampled(turns_));
    }
    if (!arguments_.json) {
      text.finish();
      std::printf("\n");
      std::fflush(stdout);
    }
    signal_ = signals.seen();
    ++turns_;
    return std::move(*result);
  }

  void print_json(const models::SampleResult& result, int64_t context) const {
    const Json line = {{"text", model_.tokenizer.decode(without_end(result), /*skip_special=*/true)},
                       {"finish", finish_name(result.finish)},
                       {"tokens", result.tokens},
                       {"context_tokens", context},
                       {"reused_tokens", reused_}};
    print_text(line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
    std::fflush(stdout);
  }

  std::string remedy() const {
    const bool all = room_ == model_.model.config.steady_positions();
    return std::string("/reset begins a new one") + (all ? "; the model has no more positions" : ", --context N makes room");
  }

  const ChatArguments& arguments_;
  const SampledModel& model_;
  const int64_t room_;  // tokens of a conversation
  ChatContext context_;
  models::GenerationEngine engine_;
  uint64_t turns_ = 0;
  int64_t reused_ = 0;  // tokens of the last context that the KV cache had
  int signal_ = 0;      // that ended the last answer
  bool all_answered_ = true;
};

}  // namespace

int model_chat(const ChatArguments& arguments) {
  if (!is_utf8(arguments.system)) throw UserError("--system is not UTF-8");
  const text::ChatTemplate chat = template_of(arguments);
  const SampledModel model = load_to_sample(arguments.folder, arguments.sampling);
  return Chat(arguments, model, chat).run();
}

}  // namespace sluice::cli
