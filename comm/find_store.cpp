#include "comm/find_store.h"

#include <algorithm>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStoreBackend.hpp>

#include "base/error.h"
#include "base/numbers/bytes.h"
#include "base/text/strings.h"

namespace sluice::comm {
namespace {

constexpr std::chrono::milliseconds kBetweenTries{100};
constexpr std::chrono::seconds kAnAnswer{2};  // longer than a store takes for one

using c10d::detail::QueryType;

// What a client of the store says first, and a question whose answer is the number in it.
bool is_store(const Descriptor& socket, Clock::time_point until) {
  constexpr uint32_t kNumber = 0x5105ce;
  ByteWriter question, answer;
  question.number(static_cast<uint8_t>(QueryType::VALIDATE));
  question.number(uint32_t{c10d::detail::validationMagicNumber});
  question.number(static_cast<uint8_t>(QueryType::PING));
  question.number(kNumber);
  answer.number(kNumber);
  const std::string expected = answer.take();
  return ask(socket, question.take(), expected.size(), until) == expected;
}

[[noreturn]] void throw_not_found(const std::string& host, int port, double seconds, bool somebody_listens) {
  const std::string place = host + ":" + std::to_string(port), time = fixed(seconds, 0) + " s";
  if (somebody_listens) {
    throw UserError("what listens at " + place +
                        " is not the store of a run, or rank 0, which serves it, does not answer; this rank has tried for " +
                        time,
                    "look at what rank 0 does; or give all ranks its host and a port that is free there");
  }
  throw UserError("nobody has served the store of the run at " + place + " for " + time,
                  "start rank 0, and give all ranks its host and port");
}

}  // namespace

std::string find_store(const std::string& host, int port, Clock::time_point until, double seconds) {
  bool somebody_listens = false;
  do {
    const auto answer_until = std::min(until, Clock::now() + kAnAnswer);
    const Connected connected = connect_to(host, port, answer_until);
    somebody_listens = static_cast<bool>(connected.socket);
    if (somebody_listens && is_store(connected.socket, answer_until)) return connected.address;
    std::this_thread::sleep_for(kBetweenTries);
  } while (Clock::now() < until);
  throw_not_found(host, port, seconds, somebody_listens);
}

}  // namespace sluice::comm
