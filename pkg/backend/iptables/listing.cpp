#include "backend/iptables/listing.h"

#include <string>

#include "backend/iptables/names.h"
#include "backend/leftovers/kube_proxy_names.h"
#include "backend/leftovers/save_reader.h"

namespace shunt::backend::iptables {
namespace {

using leftovers::read_save_line;
using leftovers::SaveLine;

// With kube-proxy's canary: a stray here.
bool is_of_mode(Table table, std::string_view chain) {
  return leftovers::is_iptables_mode_chain(to_string(table), chain) || chain == leftovers::kCanary;
}

class Reader {
 public:
  Reader(Table table, Listing& into) : table_(table), into_(into) {}

  Result<> read(std::string_view save) {
    leftovers::for_each_line(save, [&](std::string_view text) {
      if (!problem_) {
        line(read_save_line(text));
      }
    });
    if (!problem_ && open_) {
      problem_ = "ends early";
    }
    if (problem_) {
      return fail(
          Errc::Again,
          std::string("the listing of table ").append(to_string(table_)).append(" ") + problem_);
    }
    return {};
  }

 private:
  void line(const SaveLine& said) {
    switch (said.kind) {
      case SaveLine::Kind::Nothing:
      case SaveLine::Kind::Unknown:  // a comment of the nft variant, or somebody else's rule
        return;
      case SaveLine::Kind::Table:
        problem_ = said.name != to_string(table_) ? "is one of another table"
                   : seen_                        ? "comes twice"
                                                  : nullptr;
        seen_ = open_ = true;
        return;
      case SaveLine::Kind::Commit:
        open_ = false;
        return;
      case SaveLine::Kind::Chain:
        if (is_of_mode(table_, said.name)) {
          into_.chains[{table_, std::string(said.name)}];
        } else if (table_ == Table::Filter && said.name == kGuard) {
          into_.guard_chain = true;
        }
        return;
      case SaveLine::Kind::Rule:
        rule(said);
        return;
    }
  }

  void rule(const SaveLine& said) {
    if (said.name.starts_with("KUBE-")) {
      const auto found = into_.chains.find({table_, std::string(said.name)});
      if (found != into_.chains.end()) {
        found->second.emplace_back(said.rest);
      } else if (table_ == Table::Filter && said.name == kGuard && said.rest == guard_rule()) {
        into_.guard = true;
      }
      return;
    }
    for (std::size_t i = 0; i < jumps().size(); ++i) {
      const Jump& jump = jumps()[i];
      if (jump.table == table_ && jump.from == said.name && is_written_as(jump, said.rest)) {
        into_.jumps.insert(i);
      }
    }
  }

  Table table_;
  Listing& into_;
  bool seen_ = false;
  bool open_ = false;
  const char* problem_ = nullptr;
};

}  // namespace

Result<> read_listing(Table table, std::string_view save, Listing& into) {
  return Reader(table, into).read(save);
}

}  // namespace shunt::backend::iptables
