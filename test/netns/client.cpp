#include "netns/client.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <sstream>

#include "netns/sockets.h"

namespace shunt::lab {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

struct Open {
  UniqueFd fd;
  Clock::time_point asked;
  std::string received;
};

// A close without TIME_WAIT: a load must not run out of ports.
void close_at_once(int fd) {
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

Answer unanswered(int error) {
  Answer answer;
  const bool refused = error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH ||
                       error == ECONNRESET || error == EACCES;
  answer.kind = refused ? Answer::Kind::Refused : Answer::Kind::Failed;
  answer.sys_errno = error;
  return answer;
}

Answer parse_greeting(const std::string& line) {
  Answer answer;
  answer.kind = Answer::Kind::Answered;
  std::istringstream words(line);
  words >> answer.by >> answer.at >> answer.seen_as;
  return answer;
}

// Inside the namespace. A failure of our own side throws; the network's answer comes later.
Open open_question(const Question& question) {
  Open open{open_socket(question.protocol, question.to.ip.family), Clock::now(), {}};
  if (question.from) {
    if (question.from->port == net::Port{0}) {
      const int later = 1;  // the port is chosen at connect, by the whole tuple
      ::setsockopt(open.fd.get(), SOL_IP, IP_BIND_ADDRESS_NO_PORT, &later, sizeof later);
    }
    bind_to(open.fd.get(), *question.from);
  }
  const RawAddress to = to_raw(question.to);
  if (question.protocol == net::Protocol::Tcp) {
    close_at_once(open.fd.get());
  }
  // A refusal may come at once; poll will report it again as an error.
  if (::connect(open.fd.get(), to.get(), to.length) == 0 &&
      question.protocol == net::Protocol::Udp) {
    (void)::send(open.fd.get(), "?", 1, MSG_NOSIGNAL);  // an error shows when receiving
  }
  return open;
}

// The answer, if the socket has one by now.
std::optional<Answer> answer_of(Open& open) {
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(open.fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    return unanswered(error);
  }
  std::array<char, 512> buffer{};
  const ssize_t n = ::recv(open.fd.get(), buffer.data(), buffer.size(), 0);
  if (n < 0) {
    return errno == EAGAIN ? std::nullopt : std::optional(unanswered(errno));
  }
  open.received.append(buffer.data(), static_cast<std::size_t>(n));
  const std::size_t end = open.received.find('\n');
  if (end != std::string::npos) {
    return parse_greeting(open.received.substr(0, end));
  }
  return n == 0 ? std::optional(unanswered(ECONNRESET)) : std::nullopt;
}

class Engine {
 public:
  using Sink = std::function<void(const Answer&, Clock::time_point asked)>;
  Engine(const Question& question, Sink sink) : question_(question), sink_(std::move(sink)) {}

  void ask() { open_.push_back(open_question(question_)); }
  std::size_t open() const { return open_.size(); }

  // Collects what arrives within `wait`, and what has waited too long.
  void collect(milliseconds wait) {
    std::vector<pollfd> polled;
    polled.reserve(open_.size());
    for (const Open& open : open_) {
      polled.push_back({.fd = open.fd.get(), .events = POLLIN, .revents = 0});
    }
    ::poll(polled.data(), polled.size(), static_cast<int>(wait.count()));
    for (std::size_t i = open_.size(); i-- > 0;) {
      std::optional<Answer> answer;
      if (polled[i].revents != 0) {
        answer = answer_of(open_[i]);
      } else if (Clock::now() - open_[i].asked > question_.timeout) {
        answer = Answer{.kind = Answer::Kind::TimedOut, .by = {}, .at = {}, .seen_as = {}};
      }
      if (answer) {
        sink_(*answer, open_[i].asked);
        std::swap(open_[i], open_.back());
        open_.pop_back();
      }
    }
  }

 private:
  Question question_;
  Sink sink_;
  std::vector<Open> open_;
};

// How many questions are due: all that may be open, or as many as the rate asks for by now.
std::size_t due(const LoadSpec& spec, std::size_t asked, std::size_t open, Clock::duration passed) {
  const std::size_t limit =
      spec.per_second > 0 ? std::max<std::size_t>(spec.parallel, 4096) : spec.parallel;
  std::size_t wanted = limit - std::min(limit, open);
  if (spec.per_second > 0) {
    const double until_now = spec.per_second * std::chrono::duration<double>(passed).count() + 1;
    wanted = std::min(
        wanted,
        static_cast<std::size_t>(until_now) - std::min(asked, static_cast<std::size_t>(until_now)));
  }
  return spec.count > 0 ? std::min(wanted, spec.count - asked) : wanted;
}

// A load whose answers do not come must run into its time-outs, not into the usual 1024.
void allow_all_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

LoadReport load(const LoadSpec& spec, const std::stop_token& stop) {
  allow_all_descriptors();
  LoadReport report;
  const Clock::time_point start = Clock::now();
  Engine engine(spec.question, [&](const Answer& answer, Clock::time_point asked) {
    if (answer.kind == Answer::Kind::Answered) {
      ++report.answered[answer.by];
      report.slowest = std::max(
          report.slowest,
          std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - asked));
      return;
    }
    ++(answer.kind == Answer::Kind::Refused    ? report.refused
       : answer.kind == Answer::Kind::TimedOut ? report.timed_out
                                               : report.failed);
    if (report.failures.size() < LoadReport::kMostFailures) {
      report.failures.push_back(
          {std::chrono::duration_cast<milliseconds>(asked - start),
           std::chrono::duration_cast<milliseconds>(Clock::now() - start),
           answer.sys_errno});
    }
  });
  std::size_t asked = 0;
  while (true) {
    const Clock::duration passed = Clock::now() - start;
    const bool over = stop.stop_requested() || (spec.count > 0 && asked >= spec.count) ||
                      (spec.time.count() > 0 && passed >= spec.time);
    if (over && engine.open() == 0) {
      return report;
    }
    for (std::size_t n = over ? 0 : due(spec, asked, engine.open(), passed); n > 0; --n) {
      engine.ask();
      ++asked;
    }
    engine.collect(milliseconds(spec.per_second > 0 ? 1 : 20));
  }
}

}  // namespace

Answer ask(const Netns& where, const Question& question) {
  return where.run([&] {
    std::optional<Answer> result;
    Engine engine(question, [&](const Answer& answer, Clock::time_point) { result = answer; });
    engine.ask();
    while (!result) {
      engine.collect(milliseconds(20));
    }
    return *result;
  });
}

LoadReport run_load(const Netns& where, const LoadSpec& spec, const std::stop_token& stop) {
  return where.run([&] { return load(spec, stop); });
}

std::size_t LoadReport::total() const {
  std::size_t sum = unanswered();
  for (const auto& [server, count] : answered) {
    sum += count;
  }
  return sum;
}

std::string to_text(const LoadReport& report) {
  std::string text;
  std::size_t most = 1;
  for (const auto& [server, count] : report.answered) {
    most = std::max(most, count);
  }
  for (const auto& [server, count] : report.answered) {
    text += fmt::format("{:<24} {:>7}  {}\n", server, count, std::string(count * 40 / most, '#'));
  }
  text += fmt::format(
      "{} asked, {} not answered ({} refused, {} timed out, {} failed); slowest answer {:.1f} ms\n",
      report.total(),
      report.unanswered(),
      report.refused,
      report.timed_out,
      report.failed,
      std::chrono::duration<double, std::milli>(report.slowest).count());
  return text;
}

}  // namespace shunt::lab
