#include "tests/fuzz/run.h"
#include "tests/support/host_environment.h"

namespace etalon::fuzz {
namespace {

// What is wrong with it; empty if nothing.
std::string Complaint(etalon_status status, const etalon_error& error) {
  if (error.status != status) return "error.status is not the answer";
  if (std::memchr(error.field, 0, sizeof error.field) == nullptr ||
      std::memchr(error.text, 0, sizeof error.text) == nullptr) {
    return "a text of the error has no end";
  }
  const size_t field = std::strlen(error.field);
  const size_t text = std::strlen(error.text);
  if (status == ETALON_OK) return field + text == 0 ? "" : std::string("an error on success: ") + error.text;
  if (field == 0 || text <= field + 1) return "an error without text";
  if (!FieldExists(error.field)) return std::string("there is no ") + error.field + ": " + error.text;
  return std::strncmp(error.field, error.text, field) == 0
             ? ""
             : std::string(error.text) + " does not begin with " + error.field;
}

}  // namespace

etalon_status Answer(bool wants_error, const char* environment, const ErrorFunction& f, std::string* wrong) {
  etalon_error error;
  std::memset(&error, 0xA5, sizeof error);
  if (!test::SetHostEnvironment(environment)) test::SetHostEnvironment("default");
  const uint64_t before = test::HostEnvironment();
  const etalon_status status = f(wants_error ? &error : nullptr);
  const uint64_t after = test::HostEnvironment();
  test::SetHostEnvironment("default");
  if (wants_error) *wrong = Complaint(status, error);
  if (before != after) *wrong = "the caller's floating-point environment has changed";
  return status;
}

}  // namespace etalon::fuzz
