#include "nodes/rollout/environments/process_environment.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/error.h"
#include "base/text/shown_text.h"
#include "base/text/strings.h"

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

// In lines of a message, which are indented: else their ends would be shown as \n.
std::string end_of(const std::string& errors) {
  const std::string_view text = trim(errors), end = text.substr(text.size() - std::min(text.size(), kShownErrors));
  std::string lines;
  for (const std::string& line : split(end, '\n')) lines += "\n          " + line;
  return lines;
}

const Json& expect(const Json& value, bool right, const std::string& key, const char* what) {
  if (!right) throw UserError("its reply has " + sluice::quoted(key) + " = " + shown(value) + ", expected " + what);
  return value;
}

void exchange_with(Subprocess& process, Subprocess::Clock::time_point until) {
  Subprocess* const only = &process;
  Subprocess::exchange({&only, 1}, until);
}

// Without it a line too many would be taken for the reply to the next turn, and so would each one after it.
void check_id(int64_t id, const Json& reply, const std::string& line) {
  constexpr const char* kHelp = "each reply has the \"id\" of its turn; write nothing else to stdout";
  const auto found = reply.find("id");
  if (found == reply.end()) throw UserError("its reply has no \"id\": " + shown(line), kHelp);
  if (*found != id)
    throw UserError("its reply is to the turn with id " + shown(*found) + ", and " + std::to_string(id) + " was asked for",
                    kHelp);
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
  c.param("start_timeout_seconds", &P::start_timeout_seconds)
      .between(0, 1e6)
      .harmless()
      .unit("seconds")
      .doc("how much longer the first reply of a process may take, since it starts");
  c.check([](const P& params, engine::Findings& findings) {
    if (params.command.empty() || params.command.front().empty())
      findings.error("command", "command names no program", "command = [\"python3\", \"env.py\"]");
  });
}

std::string request_line(int64_t id, const Turn& turn) {
  const Json line = {{"id", id},
                     {"prompt", turn.prompt},
                     {"label", turn.label},
                     {"transcript", turn.transcript},
                     {"last", turn.last},
                     {"turn", turn.index},
                     {"iteration", turn.iteration},
                     {"group", turn.group},
                     {"sample", turn.sample}};
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Reply parse_reply(int64_t id, const std::string& line) {
  Json object;
  try {
    object = parse_json(line, "its reply");
  } catch (const UserError&) {
    throw UserError("its reply is no JSON: " + shown(line));
  }
  if (!object.is_object()) throw UserError("its reply is no JSON object: " + shown(line));
  check_id(id, object, line);
  Reply reply;
  for (const auto& [key, value] : object.items()) {
    if (key == "id") continue;
    if (key == "text") {
      reply.text = expect(value, value.is_string(), key, "a string").get<std::string>();
    } else if (key == "done") {
      reply.done = expect(value, value.is_boolean(), key, "true or false").get<bool>();
    } else if (key == "reward") {
      if (!value.is_null()) reply.reward = expect(value, value.is_number(), key, "a number or null").get<double>();
    } else {
      throw UserError("its reply has a key " + shown(key), "a reply has \"id\", \"text\", \"done\" and \"reward\"");
    }
  }
  return reply;
}

Reply ProcessEnvironment::reply(const Turn& turn) const {
  Worker& worker = worker_of_this_thread();
  try {
    const int64_t id = worker.replies;
    Reply reply = parse_reply(id, answer(worker, request_line(id, turn), turn.wait));
    ++worker.replies;
    return reply;
  } catch (const engine::WorkDropped&) {
    end_process_of_this_thread();  // it still works on the turn
    throw;
  } catch (const UserError& error) {
    const std::string errors = worker.process->errors();
    end_process_of_this_thread();
    fail(error.problems().front(), errors);
  }
}

void ProcessEnvironment::fail(const Problem& what, const std::string& errors) const {
  Problem problem;
  problem.message = "environment process " + sluice::quoted(join(params_.command, " ")) + ": " + what.message;
  if (!trim(errors).empty()) problem.notes.push_back("its stderr ends with:" + end_of(errors));
  problem.help = what.help;
  throw UserError(std::move(problem));
}

// One that has ended by itself since its last reply is replaced: it has no state that a turn could miss.
ProcessEnvironment::Worker& ProcessEnvironment::worker_of_this_thread() const {
  Worker* worker = nullptr;
  {
    const std::lock_guard lock(mutex_);
    worker = &workers_[std::this_thread::get_id()];
  }
  if (worker->process) exchange_with(*worker->process, Subprocess::Clock::now());
  if (!worker->process || worker->process->ended()) {
    worker->replies = 0;
    worker->process = std::make_unique<Subprocess>(SubprocessOptions{
        .arguments = params_.command, .environment = {}, .folder = params_.folder, .inherited = {}, .user = {}});
  }
  return *worker;
}

void ProcessEnvironment::end_process_of_this_thread() const {
  const std::lock_guard lock(mutex_);
  workers_.erase(std::this_thread::get_id());
}

// Waits for: a line of its stdout. Ends when: one came, the process ended or wrote too much, its time is over, or nobody needs
// the reply any more.
std::string ProcessEnvironment::answer(const Worker& worker, const std::string& request, const engine::OutsideWait& wait) const {
  using Clock = Subprocess::Clock;
  Subprocess& process = *worker.process;
  const duration<double> limit(params_.timeout_seconds + (worker.replies > 0 ? 0 : params_.start_timeout_seconds));
  const auto until = Clock::now() + duration_cast<Clock::duration>(limit);
  if (const auto early = process.take_line()) throw UserError("it wrote a line that no turn asked for: " + shown(*early));
  process.send(request + "\n");
  while (true) {
    if (auto reply = process.take_line()) return *reply;
    if (process.ended()) throw UserError("it " + process.how_it_ended() + " before it replied");
    if (process.overflowed()) throw UserError("it wrote more than 64 MiB without an end of a line");
    if (Clock::now() >= until) break;
    wait.go_on();
    exchange_with(process, std::min<Clock::time_point>(until, Clock::now() + engine::OutsideWait::kLook));
  }
  process.kill(kGrace);  // what it has to say of that is in its stderr
  throw_late(worker);
}

void ProcessEnvironment::throw_late(const Worker& worker) const {
  const std::string timeout = real_text(params_.timeout_seconds);
  if (worker.replies > 0) throw UserError("it did not reply within " + timeout + " seconds");
  throw UserError(
      "it did not reply within " + real_text(params_.start_timeout_seconds) + " + " + timeout + " seconds of its start",
      "a larger start_timeout_seconds, if it only takes long to load; it must read lines from its stdin and flush "
      "each that it writes");
}

}  // namespace sluice::nodes
