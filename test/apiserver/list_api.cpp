// GET of a collection: versions, pages, selectors.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "test/apiserver/api.h"
#include "test/apiserver/gzip.h"
#include "test/apiserver/protobuf.h"
#include "test/apiserver/selector.h"

namespace shunt::test_api {
namespace {

// The state that the request asks for.
Answer<Store::Listing> state_for(Context context, std::size_t table, const ListOptions& options) {
  if (!options.continue_token.empty()) {
    const auto token = parse_continue(options.continue_token);
    if (!token) {
      return refuse(bad_request("continue key is not valid: decoding failed"));
    }
    auto listing = context.store.list_at(table, token->version);
    if (!listing) {
      return refuse(expired_continue());
    }
    return listing;
  }
  if (options.exact) {
    return context.store.list_at(table, options.version);
  }
  const std::uint64_t current = context.store.version();
  if (options.version > current) {
    return refuse(version_too_large(options.version, current));
  }
  return context.store.list(table);
}

struct Page {
  std::vector<ObjectPtr> objects;
  std::string next_start;  // "": this is the last page
  std::size_t remaining = 0;
};

std::string key_at(const ObjectPtr& object) { return key_of(*object); }

// How many are left, for whom that is told: a list with selectors does not know.
std::size_t count_rest(
    Store::Objects::const_iterator at,
    Store::Objects::const_iterator end,
    const Target& target,
    const Selector& selector) {
  if (!selector.everything()) {
    return 0;
  }
  const auto in_namespace = [&](const ObjectPtr& object) { return object->ns == target.ns; };
  return static_cast<std::size_t>(
      target.ns.empty() ? std::distance(at, end) : std::count_if(at, end, in_namespace));
}

Page cut_page(
    const Store::Listing& listing,
    const Target& target,
    const Selector& selector,
    const ListOptions& options) {
  Page page;
  // Version "0" is served from the watch cache, which does not page.
  const std::size_t limit = options.version_text == "0" ? 0 : options.limit;
  const auto token = parse_continue(options.continue_token);
  const Store::Objects& objects = *listing.objects;
  auto at = token ? std::ranges::lower_bound(objects, token->start, {}, key_at) : objects.begin();
  for (; at != objects.end(); ++at) {
    const Object& object = **at;
    if ((!target.ns.empty() && object.ns != target.ns) || !selector.matches(object)) {
      continue;
    }
    if (limit == 0 || page.objects.size() < limit) {
      page.objects.push_back(*at);
      continue;
    }
    // The first key after the last one sent, as the real token has it.
    page.next_start = key_of(*page.objects.back()) + '\0';
    page.remaining = count_rest(at, objects.end(), target, selector);
    break;
  }
  return page;
}

std::string list_metadata(std::uint64_t version, const Page& page, bool count_rest) {
  std::string out = fmt::format(R"({{"resourceVersion":"{}")", version);
  if (!page.next_start.empty()) {
    out += fmt::format(R"(,"continue":"{}")", to_text({version, page.next_start}));
    if (count_rest) {
      out += fmt::format(R"(,"remainingItemCount":{})", page.remaining);
    }
  }
  return out + "}";
}

// Compresses what is large for those who accept it, and streams: a long list never exists as one
// string.
class ListStream {
 public:
  ListStream(const Request& request, Response& response, const char* content_type, std::size_t size)
      : response_(response) {
    constexpr std::size_t kThreshold = 131072;  // 128 KiB
    auto headers = standard_headers(content_type);
    const bool accepted = request.header("accept-encoding").find("gzip") != std::string::npos;
    if (accepted && !response.started() && size > kThreshold) {
      gzip_ = std::make_unique<Gzip>([this](std::string_view bytes) { response_.write(bytes); });
      headers.emplace("Content-Encoding", "gzip");
      headers.emplace("Vary", "Accept-Encoding");
    }
    response_.begin(200, std::move(headers));
  }

  bool write(std::string_view piece) {
    if (gzip_) {
      gzip_->feed(piece);
      return !response_.broken();
    }
    return response_.write(piece);
  }

  void finish() {
    if (gzip_) {
      gzip_->finish();
    }
    (void)response_.end();  // a client that left needs no goodbye
  }

 private:
  Response& response_;
  std::unique_ptr<Gzip> gzip_;
};

void send_json_list(
    const Request& request,
    Response& response,
    const Resource& resource,
    std::string_view metadata,
    const std::vector<ObjectPtr>& objects) {
  std::size_t size = 0;
  for (const ObjectPtr& object : objects) {
    size += object->body.size();
  }
  ListStream stream(request, response, kJsonType, size);
  Indenter indenter;  // for people
  const bool pretty = wants_pretty(request);
  std::string indented;
  const auto write = [&](std::string_view piece) {
    if (pretty) {
      indented.clear();
      indenter.feed(piece, indented);
      piece = indented;
    }
    return stream.write(piece);
  };
  bool here = write(fmt::format(
      R"({{"kind":"{}List","apiVersion":"{}","metadata":{},"items":[)",
      resource.kind,
      resource.api_version(),
      metadata));
  std::string_view comma;
  for (auto at = objects.begin(); here && at != objects.end(); ++at) {
    here = write(comma) && write((*at)->body);
    comma = ",";
  }
  (void)(write("]}") && (pretty || stream.write("\n")));  // finish() answers for a client that left
  stream.finish();
}

void send_protobuf_list(
    const Request& request,
    Response& response,
    const Resource& resource,
    std::string_view metadata,
    const std::vector<ObjectPtr>& objects) {
  const std::string list_metadata = proto::list_metadata(metadata);
  std::size_t size = list_metadata.size();
  for (const ObjectPtr& object : objects) {
    const std::size_t item = object->protobuf(*resource.schema).size();
    size += proto::item_head(item).size() + item;
  }
  ListStream stream(request, response, kProtobufType, size);
  const std::string kind = std::string(resource.kind) + "List";
  bool here = stream.write(proto::envelope_head(resource.api_version(), kind, size)) &&
              stream.write(list_metadata);
  for (auto at = objects.begin(); here && at != objects.end(); ++at) {
    const std::string& item = (*at)->protobuf(*resource.schema);
    here = stream.write(proto::item_head(item.size())) && stream.write(item);
  }
  (void)stream.write(proto::envelope_tail());  // finish() answers for a client that left
  stream.finish();
}

}  // namespace

Answer<> handle_list(
    Context context, const Target& target, const Request& request, Response& response) {
  const Resource& resource = *target.table.resource;
  const auto options = parse_list_options(request, context.options.streaming_lists);
  if (!options) {
    return refuse(options.error());
  }
  const auto selector = Selector::parse(resource, options->labels, options->fields);
  if (!selector) {
    return refuse(selector.error());
  }
  const auto listing = state_for(context, target.table.index, *options);
  if (!listing) {
    return refuse(listing.error());
  }
  const Page page = cut_page(*listing, target, *selector, *options);
  const std::string metadata = list_metadata(listing->version, page, selector->everything());
  const bool protobuf = encoding_for(context, request, resource) == Encoding::AsProtobuf;
  const auto send = protobuf ? send_protobuf_list : send_json_list;
  send(request, response, resource, metadata, page.objects);
  return {};
}

}  // namespace shunt::test_api
