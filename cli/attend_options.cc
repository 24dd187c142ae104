#include "cli/attend_options.h"

#include <CLI/CLI.hpp>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "cli/command.h"
#include "cli/text.h"

namespace etalon::cli {
namespace {

constexpr int64_t kLargestOffset = int64_t{1} << 62;  // the library's own limit
constexpr const char* kHelp =
    "A row stands at position i + q_offset and sees key t if -LEFT <= t - (i + q_offset) <= RIGHT; --causal and\n"
    "--window hold together. --causal=top-left puts row 0 at key 0, bottom-right the last row at the last key. The\n"
    "masks of other offsets: --window=-1,0 --q-offset=N is causal.\n"
    "A row that sees no key gives out = 0, lse = -inf (or the sink).\n"
    "A score is scaled, then capped, then --alibi is subtracted and --bias added. What geometry, --mask and\n"
    "--segments hide is hidden together.\n"
    "An ARRAY is a .npy file, or with one .npz the name of a member: what ends in .npy or has a / in it is a file.\n"
    "--bias and --mask have the shape [batch, heads, q_len, kv_len], --alibi and --sinks [batch, heads], --segments\n"
    "[batch, q_len]; sizes of 1 count for all, and batch may be missing (of --bias and --mask heads, too).\n"
    "f64 is narrowed to f32, round to nearest even. An index.json beside the file is not looked at (`demo` does).\n"
    "Without --out and --lse nothing is written. After exit code 2 or 3 no output file exists, and one that was there\n"
    "before is unchanged. Exit code 1: the files are written, but on sampled rows the error against f64 is far above\n"
    "what rounding explains, or not finite (sums beyond f32).\n"
    "Examples:\n"
    "  etalon attend layer.npz --causal=bottom-right --out out.npy --lse lse.npy\n"
    "  etalon attend q.npy k.npy v.npy --window=255,0 --q-offset=1024 --scale=0.125 --json\n"
    "  etalon attend layer.npz --causal=top-left --softcap=50 --alibi --bias=bias --mask=mask.npy\n"
    "  etalon attend layer.npz --target=scalar --threads=1 --out-type=f16 --out out.npy";

// Of the text's beginning, which is cut off; false if there is no number from -1 on.
bool TakeLimit(std::string_view* text, int64_t* limit) {
  const auto [end, problem] = std::from_chars(text->data(), text->data() + text->size(), *limit);
  if (problem != std::errc() || *limit < -1) return false;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return true;
}

// A finite f32, rounded once.
bool ParseNumber(const std::string& text, float* number, std::string* error) {
  // strtof, unlike strtod, rounds once. It skips blanks, which no script means to pass.
  char* end = nullptr;
  *number = std::strtof(text.c_str(), &end);
  const std::string quoted = "'" + Printable(text, 40) + "'";
  if (text.empty() || std::isspace(static_cast<unsigned char>(text[0])) != 0 || end != text.c_str() + text.size()) {
    *error = quoted + " is not a number";
    return false;
  }
  if (!std::isfinite(*number)) {
    *error = quoted + " is not a finite number in f32";
    return false;
  }
  return true;
}

std::string ScaleProblem(const std::string& text) {
  float scale;
  std::string error;
  ParseScale(text, &scale, &error);
  return error;
}

std::string SoftcapProblem(const std::string& text) {
  float cap;
  std::string error;
  ParseSoftcap(text, &cap, &error);
  return error;
}

std::string WindowProblem(const std::string& text) {
  Mask mask;
  std::string error;
  ParseWindow(text, &mask, &error);
  return error;
}

void AddArray(CLI::App* command, const char* option, std::string* value, const char* help) {
  command->add_option(option, *value, help)->type_name("ARRAY")->check(EmptyProblem);
}

// What no option is to blame for alone.
void CheckTogether(const AttendOptions& options) {
  const size_t count = options.files.size();
  if (count != 1 && count != 3) {
    throw CLI::ValidationError(
        "FILE", "one .npz file or three .npy files (q, k, v) are needed, not " + std::to_string(count) + " files" +
                    (options.alibi.value_or("").empty()
                         ? ""
                         : "; '" + Printable(*options.alibi, 40) + "' was taken for the slopes of --alibi"));
  }
  if (options.q_offset.has_value() && options.causal != "none") {
    throw CLI::ValidationError("--q-offset", "--causal=" + options.causal +
                                                 " says where row 0 stands; a causal mask of another offset is "
                                                 "--window=-1,0 --q-offset=N");
  }
  if (options.q_offset.has_value() && options.window.empty() && !options.alibi.has_value()) {
    throw CLI::ValidationError("--q-offset", "without --window or --alibi it does not matter where a row stands");
  }
  if (options.prefix.has_value() && MaskOf(options, 0, 0).right < 0) {
    throw CLI::ValidationError("--prefix", "without --causal, or --window with a RIGHT, no key needs it to be seen");
  }
  if (options.segments.empty() && !options.kv_segments.empty()) {
    throw CLI::ValidationError("--kv-segments", "without --segments no row has a number to compare with");
  }
}

}  // namespace

bool ParseScale(const std::string& text, float* scale, std::string* error) {
  if (!ParseNumber(text, scale, error)) return false;
  if (*scale != 0.0f) return true;
  // The descriptor's scale = 0 asks for the default, so that 0 itself cannot be had.
  *error = "'" + Printable(text, 40) +
           "' is 0 in f32, by which the library means the default 1/sqrt(head_dim); for that leave --scale out";
  return false;
}

bool ParseSoftcap(const std::string& text, float* cap, std::string* error) {
  if (!ParseNumber(text, cap, error)) return false;
  if (*cap > 0.0f) return true;
  *error = "'" + Printable(text, 40) + "' is not above 0 in f32; for no cap leave --softcap out";
  return false;
}

bool ParseWindow(const std::string& text, Mask* mask, std::string* error) {
  std::string_view rest = text;
  bool ok = TakeLimit(&rest, &mask->left) && !rest.empty() && rest[0] == ',';
  if (ok) rest.remove_prefix(1);
  ok = ok && TakeLimit(&rest, &mask->right) && rest.empty();
  if (!ok) {
    *error = "'" + Printable(text, 40) +
             "' is not LEFT,RIGHT: two whole numbers, keys before and after the row's own, -1 = no limit";
  }
  return ok;
}

Mask MaskOf(const AttendOptions& options, int64_t q_len, int64_t kv_len) {
  Mask mask;
  std::string ignored;  // checked when it was parsed
  if (!options.window.empty()) ParseWindow(options.window, &mask, &ignored);
  if (options.causal != "none") mask.right = 0;  // the lesser of 0 and any limit
  if (options.causal == "bottom-right") mask.q_offset = kv_len - q_len;
  if (options.q_offset.has_value()) mask.q_offset = *options.q_offset;
  if (options.prefix.has_value()) mask.prefix = *options.prefix;
  return mask;
}

void AddAttendOptions(CLI::App* command, AttendOptions* options) {
  command
      ->add_option(
          "FILE", options->files,
          "One .npz file with arrays q, k and v, or three .npy files in this order: q [heads, q_len, head_dim], "
          "k [kv_heads, kv_len, head_dim], v [kv_heads, kv_len, value_dim], all three with or without a "
          "dimension batch before these; f16, f32 or f64")
      ->required();
  command->add_option("--scale", options->scale, "Factor of the dot products. Default: 1/sqrt(head_dim)")
      ->type_name("S")
      ->check(ScaleProblem);
  command->add_option("--causal", options->causal, "A row sees no key after its own: top-left, bottom-right or none")
      ->type_name("KIND")
      ->check(CLI::IsMember({"top-left", "bottom-right", "none"}));
  command
      ->add_option("--window", options->window,
                   "A row sees so many keys before and after its own position, which do not count that; -1: all")
      ->type_name("LEFT,RIGHT")
      ->check(WindowProblem);
  command
      ->add_option("--q-offset", options->q_offset,
                   "Position of row 0 among the keys, for --window and --alibi. Default: 0")
      ->type_name("N")
      ->check(CLI::Range(-kLargestOffset, kLargestOffset));
  command
      ->add_option("--prefix", options->prefix,
                   "All rows see the first N keys, though they come after their own (not those before a window's LEFT)")
      ->type_name("N")
      ->check(CLI::Range(int64_t{0}, kLargestOffset));
  command->add_option("--softcap", options->softcap, "Scores s become CAP tanh(s / CAP)")
      ->type_name("CAP")
      ->check(SoftcapProblem);
  command
      ->add_option("--alibi", options->alibi,
                   "Subtract a slope of the head's, times the distance of row and key; without SLOPES or with "
                   "'standard' those that models are trained with")
      ->type_name("[SLOPES]")
      ->expected(0, 1)
      ->check(EmptyProblem);
  AddArray(command, "--bias", &options->bias, "Numbers to add to the scores; -inf hides");
  AddArray(command, "--mask", &options->mask, "bool or u8; 0 hides the key from the row");
  AddArray(command, "--sinks", &options->sinks, "A logit for each head that takes weight and has no value");
  AddArray(command, "--segments", &options->segments,
           "A row sees the keys whose number (u8, i32, i64) is its own; keys have those of the rows, unless "
           "--kv-segments gives others");
  AddArray(command, "--kv-segments", &options->kv_segments, "The numbers of the keys");
  command->add_option("--out", options->out, "Write the output, [q's dimensions but the last, value_dim]")
      ->type_name("O.npy")
      ->check(EmptyProblem);
  command->add_option("--lse", options->lse, "Write the logarithms of the sums of exp(score), f32")
      ->type_name("L.npy")
      ->check(EmptyProblem);
  command->add_option("--out-type", options->out_type, "Type of the output: f32 or f16. Default: f32")
      ->type_name("TYPE")
      ->check(CLI::IsMember({"f32", "f16"}));
  command
      ->add_option("--target", options->target,
                   "Kernel table, one of those that `etalon info` lists. Default: ETALON_TARGET, or else the best one")
      ->type_name("NAME")
      ->check(EmptyProblem);
  command->add_option("--threads", options->threads, "Threads to use. Default: the CPUs that this process may run on")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--json", options->as_json, "Print JSON");
  command->footer(kHelp);
  command->callback([options] { CheckTogether(*options); });
}

}  // namespace etalon::cli
