#include "cli/run/crash_note.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>

#include "base/text/printable.h"
#include "engine/contract/registry.h"

namespace sluice::cli {
namespace {

struct CrashSignal {
  int number;
  const char* text;
};
constexpr std::array kCrashes{CrashSignal{SIGSEGV, "SIGSEGV, a wrong access to memory"},
                              CrashSignal{SIGBUS, "SIGBUS, as where a file that is mapped was cut short"},
                              CrashSignal{SIGFPE, "SIGFPE, as a division of integers by 0"},
                              CrashSignal{SIGILL, "SIGILL, an instruction that this machine does not have"},
                              CrashSignal{SIGABRT, "SIGABRT, as abort() and an exception that nobody caught"}};

// A signal handler can reach nothing but static storage.
thread_local const char* node_at_work = nullptr;
std::atomic<const char*> help_text{nullptr};

// With what a handler may call.
void say(const char* text) {
  if (text != nullptr && ::write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

void on_crash(int number) {
  for (const CrashSignal& crash : kCrashes) {
    if (crash.number != number) continue;
    say("\nerror: this process was ended by ");
    say(crash.text);
  }
  say(node_at_work != nullptr ? node_at_work : " while a run was under way");
  say(help_text.load());
  ::raise(number);  // what it does when nobody handles it
}

void install() {
  for (const CrashSignal& crash : kCrashes) {
    struct sigaction before {};
    ::sigaction(crash.number, nullptr, &before);
    if (before.sa_handler != SIG_DFL) continue;
    struct sigaction action {};
    action.sa_handler = on_crash;
    action.sa_flags = SA_RESETHAND | SA_NODEFER;
    ::sigaction(crash.number, &action, nullptr);
  }
}

void uninstall() {
  for (const CrashSignal& crash : kCrashes) {
    struct sigaction present {};
    ::sigaction(crash.number, nullptr, &present);
    if (present.sa_handler == on_crash) ::signal(crash.number, SIG_DFL);
  }
}

std::string text_of(const engine::PlanNode& node) {
  const std::string& origin = node.type->origin;
  return ", while node '" + printable(node.name) + "' was at work (" + printable(node.type->info.type) +
         (origin == "builtin" ? ")" : " of plugin " + printable(origin) + ")");
}

}  // namespace

CrashNote::CrashNote(const engine::Plan& plan, const std::string& how_to_go_on)
    : help_("\n      = help: its checkpoints are as they were; " + how_to_go_on + "\n") {
  for (const engine::PlanNode& node : plan.nodes) nodes_.push_back(text_of(node));
  help_text = help_.c_str();
  install();
}

CrashNote::~CrashNote() {
  uninstall();
  help_text = nullptr;
}

void CrashNote::began(int, int node) { node_at_work = nodes_[static_cast<size_t>(node)].c_str(); }

void CrashNote::left(int) { node_at_work = nullptr; }

}  // namespace sluice::cli
