// Whether what an error names is there, as etalon.h spells it: "args.more_sources[2]->k.stride_bytes[3]".
#include <cctype>
#include <cstdlib>
#include <cstring>

#include "tests/fuzz/run.h"

namespace etalon::fuzz {
namespace {

// A member of some struct, or an argument of a function; what it is: a struct, "numbers" or "number".
struct Member {
  const char* of;
  const char* name;
  const char* is;
};

constexpr Member kMembers[] = {
    {"", "desc", "desc"},         {"", "args", "args"},           {"", "states", "states"},
    {"", "tensor", "tensor"},     {"", "workspace", "workspace"}, {"", "memory", "workspace"},
    {"", "parallel", "parallel"}, {"args", "states", "states"},   {"args", "more_sources", "sources"},
};

// Those that are alike, by the struct that they belong to.
struct Members {
  const char* of;
  const char* is;
  const char* names;  // each between two spaces
};

constexpr Members kAlike[] = {
    {"", "number", " plan info bytes num_tasks mask data dtype rank slopes num_heads ETALON_TARGET "},
    {"", "numbers", " shape "},
    {"desc", "number",
     " struct_size num_q_heads num_kv_heads head_dim value_dim max_batch max_q_len max_kv_len q_dtype k_dtype v_dtype "
     "out_dtype left right scale softcap math max_workers options num_sources target "},
    {"args", "tensor", " q k v out lse slopes bias mask sinks scores weights out1 lse1 out2 lse2 "},
    {"args", "numbers",
     " q_offsets q_lens kv_lens kv_firsts kv_starts prefix_lens q_starts q_segments kv_segments block_starts blocks "},
    {"args", "number",
     " struct_size q_offset left right num_sequences prepared_mask target max_workers reserved batch num_heads q_len "
     "kv_len q_block kv_block "},
    {"source", "tensor", " k v bias mask "},
    {"source", "numbers", " q_offsets kv_lens kv_firsts kv_starts prefix_lens "},
    {"source", "number", " struct_size left right q_offset prepared_mask "},
    {"states", "tensor", " m l o "},
    {"tensor", "number", " data dtype rank reserved stride_bytes "},
    {"tensor", "numbers", " shape stride_bytes "},
    {"workspace", "number", " data bytes "},
    {"parallel", "number", " parallel_for ctx workers reserved "},
};

// Null if the struct has no such member.
const char* Find(const char* of, const std::string& name, bool indexed) {
  for (const Member& member : kMembers) {
    if (std::strcmp(member.of, of) == 0 && name == member.name) return member.is;
  }
  for (const Members& members : kAlike) {
    const bool right = std::strcmp(members.of, of) == 0 && std::strstr(members.names, (" " + name + " ").c_str());
    if (right && (!indexed || std::strcmp(members.is, "numbers") == 0)) return members.is;
  }
  return nullptr;
}

}  // namespace

bool FieldExists(const std::string& field) {
  const char* of = "";
  const char* at = field.c_str();
  while (true) {
    std::string name;
    for (; std::isalnum(static_cast<unsigned char>(*at)) != 0 || *at == '_'; ++at) name += *at;
    const bool indexed = *at == '[';
    of = Find(of, name, indexed);
    if (of == nullptr) return false;
    if (indexed) {
      const int64_t most = name == "shape" || name == "stride_bytes" ? ETALON_MAX_RANK
                           : name == "more_sources"                  ? ETALON_MAX_SOURCES - 1
                                                                     : INT64_MAX;
      char* end;
      const long long index = std::strtoll(at + 1, &end, 10);
      if (end == at + 1 || *end != ']' || index < 0 || index >= most) return false;
      at = end + 1;
      of = name == "more_sources" ? "source" : "number";
    }
    if (*at == '\0') return true;
    if (std::strncmp(at, "->", 2) == 0) ++at;
    if (*at != '.' && *at != '>') return false;
    ++at;
  }
}

}  // namespace etalon::fuzz
