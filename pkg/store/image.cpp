#include "store/image.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "store/packed.h"

namespace shunt::store {
namespace {

using Sizes = std::array<std::uint32_t, 3>;

constexpr std::size_t kPiece = std::size_t{1} << 20;

template <typename Take>
void each_record_in(std::span<const std::uint8_t> bytes, const Take& take) {
  while (!bytes.empty()) {
    Sizes sizes;
    std::memcpy(sizes.data(), bytes.data(), sizeof sizes);
    bytes = bytes.subspan(sizeof sizes);
    const auto text = [&](std::size_t size) {
      std::string out(reinterpret_cast<const char*>(bytes.data()), size);
      bytes = bytes.subspan(size);
      return out;
    };
    kube::ObjectKey key;
    key.name_space = text(sizes[0]);
    key.name = text(sizes[1]);
    take(bytes.first(sizes[2]), key);
    bytes = bytes.subspan(sizes[2]);
  }
}

template <typename Pieces, typename Take>
void each_record(const Pieces& pieces, const Take& take) {
  for (const auto& piece : pieces) {
    each_record_in(piece, take);
  }
}

}  // namespace

std::size_t Image::bytes() const {
  std::size_t size = 0;
  for (const Pieces* pieces : {&services_, &slices_}) {
    for (const auto& piece : *pieces) {
      size += piece.size();
    }
  }
  return size;
}

void Image::add(Pieces& pieces, const kube::ObjectKey& key, std::span<const std::uint8_t> packed) {
  const Sizes sizes{
      static_cast<std::uint32_t>(key.name_space.size()),
      static_cast<std::uint32_t>(key.name.size()),
      static_cast<std::uint32_t>(packed.size())};
  const std::size_t size = sizeof sizes + sizes[0] + sizes[1] + sizes[2];
  if (pieces.empty() || pieces.back().capacity() - pieces.back().size() < size) {
    pieces.emplace_back().reserve(std::max(kPiece, size));
  }
  auto& out = pieces.back();
  const auto* head = reinterpret_cast<const std::uint8_t*>(sizes.data());
  out.insert(out.end(), head, head + sizeof sizes);
  out.insert(out.end(), key.name_space.begin(), key.name_space.end());
  out.insert(out.end(), key.name.begin(), key.name.end());
  out.insert(out.end(), packed.begin(), packed.end());
}

void Image::each_service(const std::function<void(const kube::Service&)>& take) const {
  each_record(services_, [&](std::span<const std::uint8_t> packed, const kube::ObjectKey& key) {
    take(unpack_service(packed, key, names_));
  });
}

void Image::each_slice(const std::function<void(const kube::EndpointSlice&)>& take) const {
  each_record(slices_, [&](std::span<const std::uint8_t> packed, const kube::ObjectKey& key) {
    take(unpack_slice(packed, key, names_));
  });
}

}  // namespace shunt::store
