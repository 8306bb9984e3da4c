// lab: the network lab for scripts. `lab up NAME` makes a node with pods and an outside world, the
// other commands work in it, `lab down NAME` removes it with all that runs there.
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <exception>
#include <iostream>
#include <regex>

#include "netns/client.h"
#include "netns/echo_server.h"
#include "netns/lab.h"

namespace {

using namespace shunt;       // NOLINT(google-build-using-namespace): a program's only file
using namespace shunt::lab;  // NOLINT(google-build-using-namespace): as above

struct Arguments {
  std::string name;
  std::string place;
  std::vector<std::string> pods;
  std::string links = "veth";
  std::vector<std::string> command;
  std::vector<std::string> listen;
  std::string server_name;
  bool udp = false;
  bool background = false;
  std::string to;
  std::string from;
  std::size_t count = 1;
  double rate = 200;
  double seconds = 10;
  int timeout_ms = 1000;
};

net::IpAddress ip_of(const std::string& text) {
  const auto ip = net::parse_ip(text);
  if (!ip) {
    throw std::invalid_argument("not an address: " + text);
  }
  return *ip;
}

net::SocketAddress address_of(const std::string& text) {
  const auto address = net::parse_socket_address(text);
  if (!address) {
    throw std::invalid_argument("not an address and port: " + text);
  }
  return *address;
}

// "web-1=10.64.0.1,fd64::1"
PodSpec pod_of(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) {
    throw std::invalid_argument("a pod is NAME=ADDRESS[,ADDRESS]: " + text);
  }
  PodSpec pod{text.substr(0, equals), {}};
  std::istringstream addresses(text.substr(equals + 1));
  for (std::string ip; std::getline(addresses, ip, ',');) {
    pod.ips.push_back(ip_of(ip));
  }
  return pod;
}

Netns place_of(const Arguments& arguments) {
  return Netns::open(namespace_name(arguments.name, arguments.place));
}

int up(const Arguments& arguments) {
  LabSpec spec = default_lab_spec();
  spec.owner = arguments.name;
  spec.links = arguments.links == "bridge" ? LabSpec::Links::Bridge : LabSpec::Links::Veth;
  spec.link_name = arguments.links == "bridge" ? "pods0" : "pod";
  for (const std::string& pod : arguments.pods) {
    spec.pods.push_back(pod_of(pod));
  }
  Lab lab(spec);
  lab.keep();
  for (const std::string& name : namespaces_of(arguments.name)) {
    std::cout << name << "\n";
  }
  return 0;
}

int exec(const Arguments& arguments) {
  place_of(arguments).enter();
  std::vector<std::string> words = arguments.command;
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  throw std::system_error(errno, std::generic_category(), words[0]);
}

// The parent returns once the child serves; the child never does.
void serve_from_here_on(bool background, const Netns& where, const Arguments& arguments) {
  if (background && ::daemon(1, 0) != 0) {
    throw std::system_error(errno, std::generic_category(), "daemon");
  }
  std::vector<std::unique_ptr<EchoServer>> servers;
  const std::string name = arguments.server_name.empty() ? arguments.place : arguments.server_name;
  for (const std::string& listen : arguments.listen) {
    const net::SocketAddress address = address_of(listen);
    servers.push_back(std::make_unique<EchoServer>(where, net::Protocol::Tcp, address, name));
    if (arguments.udp) {
      servers.push_back(std::make_unique<EchoServer>(where, net::Protocol::Udp, address, name));
    }
  }
  where.enter();  // so that `lab down` finds us
  std::cout << name << " serves" << std::endl;
  sigset_t ending;
  ::sigemptyset(&ending);
  ::sigaddset(&ending, SIGTERM);
  ::sigaddset(&ending, SIGINT);
  int signal_number = 0;
  ::sigwait(&ending, &signal_number);
}

int serve(const Arguments& arguments) {
  sigset_t ending;  // before any thread is made, so that only sigwait sees them
  ::sigemptyset(&ending);
  ::sigaddset(&ending, SIGTERM);
  ::sigaddset(&ending, SIGINT);
  ::sigprocmask(SIG_BLOCK, &ending, nullptr);
  serve_from_here_on(arguments.background, place_of(arguments), arguments);
  return 0;
}

int ask_and_report(const Arguments& arguments, LoadSpec spec) {
  spec.question.protocol = arguments.udp ? net::Protocol::Udp : net::Protocol::Tcp;
  spec.question.to = address_of(arguments.to);
  if (!arguments.from.empty()) {
    spec.question.from = net::SocketAddress{ip_of(arguments.from), net::Port{0}};
  }
  spec.question.timeout = std::chrono::milliseconds(arguments.timeout_ms);
  const LoadReport report = run_load(place_of(arguments), spec);
  std::cout << to_text(report);
  for (const LoadReport::Failure& failure : report.failures) {
    std::cout << "  not answered, asked after " << failure.begun.count() << " ms\n";
  }
  return report.unanswered() == 0 ? 0 : 1;
}

int connect(const Arguments& arguments) {
  LoadSpec spec;
  spec.count = arguments.count;
  return ask_and_report(arguments, spec);
}

int load(const Arguments& arguments) {
  LoadSpec spec;
  spec.per_second = arguments.rate;
  spec.time = std::chrono::milliseconds(static_cast<long>(arguments.seconds * 1000));
  return ask_and_report(arguments, spec);
}

void add_name(CLI::App& command, Arguments& arguments) {
  command.add_option("name", arguments.name, "name of the lab: letters and digits")
      ->required()
      ->check([](const std::string& name) {
        return std::regex_match(name, std::regex("[a-z][a-z0-9]*")) ? "" : "not a lab's name";
      });
}

void add_place(CLI::App& command, Arguments& arguments) {
  add_name(command, arguments);
  command.add_option("place", arguments.place, "node, outside or a pod's name")->required();
}

void add_question(CLI::App& command, Arguments& arguments) {
  add_place(command, arguments);
  command.add_option("--to", arguments.to, "ADDRESS:PORT to ask")->required();
  command.add_option("--from", arguments.from, "source address");
  command.add_flag("--udp", arguments.udp, "UDP instead of TCP");
  command.add_option("--timeout-ms", arguments.timeout_ms, "how long to wait for an answer");
}

int run(int argc, char** argv) {
  CLI::App app("A node, its pods and the outside world, in network namespaces");
  app.require_subcommand(1);
  Arguments arguments;
  int (*chosen)(const Arguments&) = nullptr;
  auto command = [&](const char* name, const char* help, int (*action)(const Arguments&)) {
    CLI::App* added = app.add_subcommand(name, help);
    added->callback([&chosen, action] { chosen = action; });
    return added;
  };

  CLI::App* up_command = command("up", "make a lab", up);
  add_name(*up_command, arguments);
  up_command->add_option("--pod", arguments.pods, "NAME=ADDRESS[,ADDRESS], once for each pod");
  up_command->add_option("--links", arguments.links, "how pods are attached")
      ->check(CLI::IsMember({"veth", "bridge"}));

  CLI::App* down_command = command("down", "remove a lab and end what runs there", [](auto& a) {
    remove_lab(a.name);
    return 0;
  });
  add_name(*down_command, arguments);

  CLI::App* exec_command = command("exec", "run a command in a place", exec);
  add_place(*exec_command, arguments);
  exec_command->add_option("command", arguments.command, "after --")->required();

  CLI::App* serve_command = command("serve", "answer with our name, until SIGTERM", serve);
  add_place(*serve_command, arguments);
  serve_command->add_option("--listen", arguments.listen, "ADDRESS:PORT, several allowed")
      ->required();
  serve_command->add_option("--as", arguments.server_name, "our name; the place's by default");
  serve_command->add_flag("--udp", arguments.udp, "UDP as well as TCP");
  serve_command->add_flag("--background", arguments.background, "return once we listen");

  CLI::App* connect_command =
      command("connect", "ask some times, and print who answered how often", connect);
  add_question(*connect_command, arguments);
  connect_command->add_option("--count", arguments.count, "how many times")->capture_default_str();

  CLI::App* load_command = command("load", "ask steadily, and print what failed", load);
  add_question(*load_command, arguments);
  load_command->add_option("--rate", arguments.rate, "questions a second")->capture_default_str();
  load_command->add_option("--seconds", arguments.seconds, "how long")->capture_default_str();

  CLI11_PARSE(app, argc, argv);
  return chosen(arguments);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "lab: " << error.what() << "\n";
    return 2;
  }
}
