#include "virtual_servers/server_table.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace shunt::conformance::virtual_servers {
namespace {

using nlohmann::json;

struct ProtocolWord {
  net::Protocol protocol;
  std::string_view option;  // of ipvsadm
  std::string_view listed;  // in its listing
};
constexpr std::array<ProtocolWord, 3> kProtocols{
    {{net::Protocol::Tcp, "-t", "TCP"},
     {net::Protocol::Udp, "-u", "UDP"},
     {net::Protocol::Sctp, "--sctp-service", "SCTP"}}};

std::optional<net::Protocol> protocol_of(
    std::string_view word, std::string_view ProtocolWord::*column) {
  for (const ProtocolWord& known : kProtocols) {
    if (known.*column == word) {
      return known.protocol;
    }
  }
  return std::nullopt;
}

std::string_view option_of(net::Protocol protocol) {
  for (const ProtocolWord& known : kProtocols) {
    if (known.protocol == protocol) {
      return known.option;
    }
  }
  throw std::invalid_argument("no option for the protocol");
}

net::SocketAddress address_of(const std::string& text) {
  const auto address = net::parse_socket_address(text);
  if (!address) {
    throw std::invalid_argument("not an address and port: " + text);
  }
  return *address;
}

std::uint32_t number_of(const std::string& text) {
  std::uint32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end) {
    throw std::invalid_argument("not a number: " + text);
  }
  return number;
}

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream stream(line);
  for (std::string word; stream >> word;) {
    words.push_back(word);
  }
  return words;
}

// One command of a saved table, word by word.
class SavedLine {
 public:
  explicit SavedLine(const std::string& line) : line_(line), words_(words_of(line)) {}

  bool done() const { return at_ == words_.size(); }
  std::string next() {
    if (done()) {
      throw std::invalid_argument("ipvsadm prints what cannot be read: " + line_);
    }
    return words_[at_++];
  }
  [[noreturn]] void unknown() const {
    throw std::invalid_argument("ipvsadm prints what is not known to this runner: " + line_);
  }

  ServerName server() {
    const auto protocol = protocol_of(next(), &ProtocolWord::option);
    if (!protocol) {
      unknown();
    }
    return {address_of(next()), *protocol};
  }

 private:
  std::string line_;
  std::vector<std::string> words_;
  std::size_t at_ = 0;
};

// Of mh, and the names that ipvsadm has for the bit: of whichever scheduler it knows.
bool says_port(const std::string& flags) {
  return flags.find("mh-port") != std::string::npos || flags.find("sh-port") != std::string::npos ||
         flags.find("flag-2") != std::string::npos;
}

void read_server(SavedLine& line, json& table) {
  const std::string name = to_string(line.server());
  json server{{"reals", json::object()}};
  while (!line.done()) {
    const std::string option = line.next();
    if (option == "-s") {
      server["scheduler"] = line.next();
    } else if (option == "-p") {
      server["affinitySeconds"] = number_of(line.next());
    } else if (option == "-b") {
      const std::string flags = line.next();
      server["hashesSourcePort"] = says_port(flags);
      if (!says_port(flags) || flags.find(',') != std::string::npos) {
        server["flags"] = flags;  // more than a case can say
      }
    } else if (option == "-M") {
      server["netmask"] = line.next();  // printed when clients are taken together
    } else {
      line.unknown();
    }
  }
  table[name] = std::move(server);
}

void read_real(SavedLine& line, json& table) {
  const std::string name = to_string(line.server());
  std::string real;
  std::string forwarding;
  std::uint32_t weight = 1;
  while (!line.done()) {
    const std::string option = line.next();
    if (option == "-r") {
      real = net::to_string(address_of(line.next()));
    } else if (option == "-w") {
      weight = number_of(line.next());
    } else if (option == "-m" || option == "-g" || option == "-i") {
      forwarding = option;
    } else {
      line.unknown();
    }
  }
  json& place = table.at(name).at("reals")[real];
  if (forwarding == "-m") {
    place = weight;
  } else {  // Kubernetes knows masquerading only
    place = fmt::format("weight {}, forwarding {}", weight, forwarding);
  }
}

}  // namespace

ServerName parse_server_name(const std::string& text) {
  const std::size_t slash = text.rfind('/');
  if (slash == std::string::npos) {
    throw std::invalid_argument("not a virtual server: " + text);
  }
  const auto protocol = net::parse_protocol(text.substr(slash + 1));
  if (!protocol) {
    throw std::invalid_argument("not a virtual server: " + text);
  }
  return {address_of(text.substr(0, slash)), *protocol};
}

std::string to_string(const ServerName& name) {
  return fmt::format("{}/{}", net::to_string(name.address), net::to_string(name.protocol));
}

json canonical_table(const json& table) {
  json out = json::object();
  for (const auto& [name, server] : table.items()) {
    json& place = out[to_string(parse_server_name(name))];
    place = server;
    place["scheduler"] = server.value("scheduler", "rr");
    if (server.contains("hashesSourcePort") && !server.at("hashesSourcePort").get<bool>()) {
      place.erase("hashesSourcePort");
    }
    place["reals"] = json::object();
    const json reals = server.value("reals", json::object());
    for (const auto& [real, weight] : reals.items()) {
      place["reals"][net::to_string(address_of(real))] = weight;
    }
  }
  return out;
}

json parse_saved(const std::string& text) {
  json table = json::object();
  std::istringstream lines(text);
  for (std::string text_line; std::getline(lines, text_line);) {
    if (words_of(text_line).empty()) {
      continue;
    }
    SavedLine line(text_line);
    const std::string command = line.next();
    if (command == "-A") {
      read_server(line, table);
    } else if (command == "-a") {
      read_real(line, table);
    } else {
      line.unknown();
    }
  }
  return canonical_table(table);
}

std::string to_saved(const json& table) {
  std::string out;
  const json servers = canonical_table(table);
  for (const auto& [text, server] : servers.items()) {
    const ServerName name = parse_server_name(text);
    const std::string where =
        fmt::format("{} {}", option_of(name.protocol), net::to_string(name.address));
    const std::string scheduler = server.at("scheduler");
    out += fmt::format("-A {} -s {}", where, scheduler);
    if (server.contains("affinitySeconds")) {
      out += fmt::format(" -p {}", server.at("affinitySeconds").get<std::uint32_t>());
    }
    if (server.value("hashesSourcePort", false)) {
      out += fmt::format(" -b {}-port", scheduler);
    }
    out += '\n';
    for (const auto& [real, weight] : server.at("reals").items()) {
      out += fmt::format("-a {} -r {} -m -w {}\n", where, real, weight.get<std::uint32_t>());
    }
  }
  return out;
}

// IP Virtual Server version 1.2.1 (size=4096)
// Prot LocalAddress:Port Scheduler Flags
//   -> RemoteAddress:Port           Forward Weight ActiveConn InActConn
// TCP  10.112.30.1:80 rr
//   -> 10.64.0.31:8080              Masq    1      10         0
CountsByReal parse_counts(const std::string& text) {
  CountsByReal out;
  std::optional<ServerName> server;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> words = words_of(line);
    if (words.size() >= 3 && protocol_of(words[0], &ProtocolWord::listed)) {
      server = {address_of(words[1]), *protocol_of(words[0], &ProtocolWord::listed)};
    } else if (words.size() >= 6 && words[0] == "->" && server) {
      out[{*server, address_of(words[1])}] = {number_of(words[4]), number_of(words[5])};
    }
  }
  return out;
}

}  // namespace shunt::conformance::virtual_servers
