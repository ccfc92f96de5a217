#include "nodes/rollout/environments/process_environment.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/error.h"
#include "base/shown_text.h"
#include "base/strings.h"

namespace sluice::nodes {
namespace {

using std::chrono::duration;
using std::chrono::duration_cast;

constexpr size_t kShownReply = 200;  // bytes of a wrong one
constexpr size_t kShownErrors = 2000;
constexpr auto kGrace = std::chrono::milliseconds(500);  // to end by itself, for a process that did not reply

std::string shown(const std::string& line) { return shown_text(line, kShownReply); }

// JSON of ASCII alone needs no escapes of ours.
std::string shown(const Json& value) {
  const std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true);
  return text.size() <= kShownReply ? text : text.substr(0, kShownReply) + "...";
}

std::string end_of(const std::string& errors) {
  const std::string_view text = trim(errors);
  return std::string(text.substr(text.size() - std::min(text.size(), kShownErrors)));
}

const Json& expect(const Json& value, bool right, const std::string& key, const char* what) {
  if (!right) throw UserError("its reply has " + sluice::quoted(key) + " = " + shown(value) + ", expected " + what);
  return value;
}

void exchange_with(Subprocess& process, Subprocess::Clock::time_point until) {
  Subprocess* const only = &process;
  Subprocess::exchange({&only, 1}, until);
}

}  // namespace

void ProcessEnvironment::describe(engine::Contract<ProcessEnvironmentParams>& c) {
  using P = ProcessEnvironmentParams;
  c.type("process", "another program: a line of JSON for each turn, and one for each reply");
  c.param("command", &P::command).required().doc("the program and its arguments, without a shell");
  c.param("folder", &P::folder).must_exist().doc("the folder that it works in; unset: that of rlhf-run");
  c.param("workers", &P::workers).between(1, 1024).unit("processes").doc("turns that are replied to at a time");
  c.param("timeout_seconds", &P::timeout_seconds)
      .between(0, 1e6)
      .above(0)
      .harmless()
      .unit("seconds")
      .doc("a reply that takes longer is an error");
  c.check([](const P& params, engine::Findings& findings) {
    if (params.command.empty() || params.command.front().empty())
      findings.error("command", "command names no program", "command = [\"python3\", \"env.py\"]");
  });
}

std::string request_line(const Turn& turn) {
  const Json line = {{"prompt", turn.prompt}, {"label", turn.label},  {"transcript", turn.transcript},
                     {"last", turn.last},     {"turn", turn.index},   {"iteration", turn.iteration},
                     {"group", turn.group},   {"sample", turn.sample}};
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Reply parse_reply(const std::string& line) {
  Json object;
  try {
    object = parse_json(line, "its reply");
  } catch (const UserError&) {
    throw UserError("its reply is no JSON: " + shown(line));
  }
  if (!object.is_object()) throw UserError("its reply is no JSON object: " + shown(line));
  Reply reply;
  for (const auto& [key, value] : object.items()) {
    if (key == "text") {
      reply.text = expect(value, value.is_string(), key, "a string").get<std::string>();
    } else if (key == "done") {
      reply.done = expect(value, value.is_boolean(), key, "true or false").get<bool>();
    } else if (key == "reward") {
      if (!value.is_null()) reply.reward = expect(value, value.is_number(), key, "a number or null").get<double>();
    } else {
      throw UserError("its reply has a key " + shown(key), "a reply has \"text\", \"done\" and \"reward\"");
    }
  }
  return reply;
}

Reply ProcessEnvironment::reply(const Turn& turn) const {
  Subprocess& process = process_of_this_thread();
  try {
    return parse_reply(answer(process, turn));
  } catch (const engine::WorkDropped&) {
    end_process_of_this_thread();  // it still works on the turn
    throw;
  } catch (const UserError& error) {
    const std::string errors = process.errors();
    end_process_of_this_thread();
    fail(error.problems().front().message, errors);
  }
}

void ProcessEnvironment::fail(const std::string& what, const std::string& errors) const {
  Problem problem;
  problem.message = "environment process " + sluice::quoted(join(params_.command, " ")) + ": " + what;
  if (!trim(errors).empty()) problem.notes.push_back("its stderr ends with:\n" + end_of(errors));
  throw UserError(std::move(problem));
}

// One that has ended by itself since its last reply is replaced: it has no state that a turn could miss.
Subprocess& ProcessEnvironment::process_of_this_thread() const {
  std::unique_ptr<Subprocess>* place = nullptr;
  {
    const std::lock_guard lock(mutex_);
    place = &processes_[std::this_thread::get_id()];
  }
  if (*place) exchange_with(**place, Subprocess::Clock::now());
  if (!*place || (*place)->ended()) {
    *place = std::make_unique<Subprocess>(SubprocessOptions{
        .arguments = params_.command, .environment = {}, .folder = params_.folder, .inherited = {}, .user = {}});
  }
  return **place;
}

void ProcessEnvironment::end_process_of_this_thread() const {
  const std::lock_guard lock(mutex_);
  processes_.erase(std::this_thread::get_id());
}

// Waits for: a line of its stdout. Ends when: one came, the process ended or wrote too much, timeout_seconds have passed, or nobody
// needs the reply any more.
std::string ProcessEnvironment::answer(Subprocess& process, const Turn& turn) const {
  using Clock = Subprocess::Clock;
  const auto until = Clock::now() + duration_cast<Clock::duration>(duration<double>(params_.timeout_seconds));
  if (const auto early = process.take_line()) throw UserError("it wrote a line that no turn asked for: " + shown(*early));
  process.send(request_line(turn) + "\n");
  while (true) {
    if (auto reply = process.take_line()) return *reply;
    if (process.ended()) throw UserError("it " + process.how_it_ended() + " before it replied");
    if (process.overflowed()) throw UserError("it wrote more than 64 MiB without an end of a line");
    if (Clock::now() >= until) break;
    turn.wait.go_on();
    exchange_with(process, std::min<Clock::time_point>(until, Clock::now() + engine::OutsideWait::kLook));
  }
  process.kill(kGrace);  // what it has to say of that is in its stderr
  throw UserError("it did not reply within " + real_text(params_.timeout_seconds) + " seconds");
}

}  // namespace sluice::nodes
