#include "backend/nft/program_version.h"

#include <cstdint>
#include <string_view>

#include "base/fnv1a.h"

namespace shunt::backend::nft {
namespace {

class Digest {
 public:
  void text(std::string_view value) {
    number(value.size());
    hash_.bytes(value);
  }
  void number(std::uint64_t value) {
    for (unsigned shift = 0; shift < 64; shift += 8) {
      hash_.byte(static_cast<std::uint8_t>(value >> shift));
    }
  }
  std::string hex() const {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string out;
    for (unsigned shift = 64; shift > 0; shift -= 4) {
      out += kDigits[hash_.value() >> (shift - 4) & 15];
    }
    return out;
  }

 private:
  Fnv1a hash_;
};

void digest(Digest& out, const LoadPayload& e) {
  out.number(static_cast<std::uint64_t>(e.base));
  out.number(e.offset);
  out.number(e.length);
  out.number(e.reg);
}
void digest(Digest& out, const LoadMeta& e) {
  out.number(static_cast<std::uint64_t>(e.key));
  out.number(e.reg);
}
void digest(Digest& out, const LoadCt& e) {
  out.number(static_cast<std::uint64_t>(e.key));
  out.number(e.reg);
}
void digest(Digest& out, const LoadAddressType& e) {
  out.number(static_cast<std::uint64_t>(e.of));
  out.number(e.reg);
}
void digest(Digest& out, const LoadImmediate& e) {
  out.number(e.reg);
  out.text(std::string(e.bytes.begin(), e.bytes.end()));
}
void digest(Digest& out, const Bitwise& e) {
  out.number(e.reg);
  out.number(e.mask);
  out.number(e.exclusive);
}
void digest(Digest& out, const Compare& e) {
  out.number(static_cast<std::uint64_t>(e.op));
  out.number(e.reg);
  out.text(std::string(e.bytes.begin(), e.bytes.end()));
}
void digest(Digest& out, const SetMark& e) { out.number(e.reg); }
void digest(Digest& out, const RandomNumber& e) {
  out.number(e.reg);
  out.number(e.modulus);
}
void digest(Digest& out, const Lookup& e) {
  out.text(e.set);
  out.number(e.reg);
  out.number(e.data_reg ? *e.data_reg + 1 : 0);
  out.number(e.invert ? 1 : 0);
}
void digest(Digest& out, const UpdateSet& e) {
  out.text(e.set);
  out.number(e.reg);
  out.number(e.data_reg ? *e.data_reg + 1 : 0);
  out.number(static_cast<std::uint64_t>(e.timeout.count()));
}
void digest(Digest& out, const Verdict& e) {
  out.number(static_cast<std::uint64_t>(e.kind));
  out.text(e.chain);
}
void digest(Digest& out, const DestinationNat& e) {
  out.number(e.address_reg);
  out.number(e.port_reg);
}
void digest(Digest&, const Masquerade&) {}
void digest(Digest&, const Reject&) {}

void digest(Digest& out, const Fragment& fragment) {
  for (const Set& set : fragment.sets) {
    out.text(set.name);
    out.number(static_cast<std::uint64_t>(set.shape));
    out.number(static_cast<std::uint64_t>(set.holds));
    out.number(set.size);
    out.number((set.interval ? 1U : 0U) | (set.counter ? 2U : 0U));
  }
  for (const Chain& chain : fragment.chains) {
    out.text(chain.name);
    if (chain.hook) {
      out.number(static_cast<std::uint64_t>(chain.hook->type));
      out.number(static_cast<std::uint64_t>(chain.hook->point));
      out.number(static_cast<std::uint64_t>(static_cast<std::int64_t>(chain.hook->priority)));
    }
  }
  for (const Rule& rule : fragment.rules) {
    out.text(rule.chain);
    for (const Expression& expression : rule.expressions) {
      out.number(expression.index());
      std::visit([&](const auto& e) { digest(out, e); }, expression);
    }
  }
}

}  // namespace

std::string program_version(const Program& program, const Fragment& sample) {
  Digest out;
  out.number(static_cast<std::uint64_t>(program.family));
  digest(out, program);
  digest(out, sample);
  return out.hex();
}

}  // namespace shunt::backend::nft
