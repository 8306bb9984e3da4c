#include "runner/command_line.h"

#include <charconv>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string_view>

namespace shunt::conformance {
namespace {

// The value of an option into the line; false when it makes no sense.
using Take = std::function<bool(const std::string& value, CommandLine& line)>;
using Problem = std::optional<std::string>;

std::set<std::string, std::less<>> split(const std::string& text) {
  std::set<std::string, std::less<>> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) {
    words.insert(word);
  }
  return words;
}

template <typename Number>
bool take_number(const std::string& text, Number least, Number& number) {
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc() && read.ptr == end && number >= least;
}

// The modes of kube-proxy, and the bank's profile that each follows.
const std::map<std::string, std::string>& profiles() {
  static const std::map<std::string, std::string> profiles{
      {"nftables", "nft"}, {"ipvs", "nft"}, {"iptables", "ipt"}};
  return profiles;
}

bool take_mode(const std::string& mode, CommandLine& line) {
  const auto profile = profiles().find(mode);
  if (profile == profiles().end()) {
    return false;
  }
  line.options.mode = mode;
  line.options.profile = profile->second;
  return true;
}

bool take_settle(const std::string& value, CommandLine& line) {
  std::int64_t count = 0;
  if (!take_number<std::int64_t>(value, 0, count)) {
    return false;
  }
  line.packet_flow.settle = std::chrono::milliseconds(count);
  return true;
}

// A text that may be anything.
Take text(std::function<std::string&(CommandLine&)> where) {
  return [where = std::move(where)](const std::string& value, CommandLine& line) {
    where(line) = value;
    return true;
  };
}

const std::map<std::string, Take, std::less<>>& options_with_value() {
  static const std::map<std::string, Take, std::less<>> options{
      {"--mode", take_mode},
      {"--filter", text([](CommandLine& l) -> std::string& { return l.options.filter; })},
      {"--needs", text([](CommandLine& l) -> std::string& { return l.options.needs; })},
      {"--agent", text([](CommandLine& l) -> std::string& { return l.packet_flow.agent; })},
      {"--api-server",
       text([](CommandLine& l) -> std::string& { return l.packet_flow.api_server; })},
      {"--settle-ms", take_settle},
      {"--patience",
       [](const std::string& value, CommandLine& line) {
         return take_number(value, 1, line.packet_flow.patience);
       }},
      {"--kinds",
       [](const std::string& value, CommandLine& line) {
         line.options.kinds = split(value);
         return true;
       }},
      {"--capabilities",
       [](const std::string& value, CommandLine& line) {
         line.packet_flow.capabilities = split(value);
         return true;
       }},
      {"--every",
       [](const std::string& value, CommandLine& line) {
         return take_number<std::size_t>(value, 1, line.options.every);
       }},
      {"-j",
       [](const std::string& value, CommandLine& line) {
         return take_number<std::size_t>(value, 1, line.options.at_once);
       }},
  };
  return options;
}

bool take_flag(const std::string& argument, CommandLine& line) {
  if (argument == "--list") {
    line.options.list = true;
  } else if (argument == "--no-status-socket") {
    line.packet_flow.has_status_socket = false;
  } else if (argument == "--help" || argument == "-h") {
    line.help = true;
  } else {
    return false;
  }
  return true;
}

// "--name=value" and "-jN" as two words.
std::vector<std::string> separated(const std::vector<std::string>& arguments) {
  std::vector<std::string> words;
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    if (argument.starts_with("--") && equals != std::string::npos) {
      words.push_back(argument.substr(0, equals));
      words.push_back(argument.substr(equals + 1));
    } else if (argument.starts_with("-j") && argument.size() > 2) {
      words.emplace_back("-j");
      words.push_back(argument.substr(2));
    } else {
      words.push_back(argument);
    }
  }
  return words;
}

}  // namespace

const char* const kUsage =
    "usage: conformance DIR... [--mode nftables|ipvs|iptables] [--filter TEXT] [--needs WORD]\n"
    "                   [--kinds A,B...] [--every N] [--list] [-j N]\n"
    "                   [--agent COMMAND] [--no-status-socket] [--settle-ms N]\n"
    "                   [--api-server PROGRAM] [--capabilities A,B...] [--patience N]\n"
    "test/conformance/RUNNER.md says what they mean.\n";

Problem parse_command_line(const std::vector<std::string>& arguments, CommandLine& line) {
  const std::vector<std::string> words = separated(arguments);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (const auto option = options_with_value().find(word); option != options_with_value().end()) {
      if (i + 1 == words.size()) {
        return word + " wants a value";
      }
      if (!option->second(words[++i], line)) {
        return word + ": \"" + words[i] + "\" will not do";
      }
    } else if (!word.starts_with("-")) {
      line.roots.emplace_back(word);
    } else if (!take_flag(word, line)) {
      return "no option " + word;
    }
  }
  if (line.roots.empty() && !line.help) {
    return "no directory";
  }
  return std::nullopt;
}

}  // namespace shunt::conformance
