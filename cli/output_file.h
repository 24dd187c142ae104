// output_file.h: a file that appears whole or not at all.
#ifndef ETALON_CLI_OUTPUT_FILE_H_
#define ETALON_CLI_OUTPUT_FILE_H_

#include <sys/stat.h>

#include <cstddef>
#include <functional>
#include <string>

namespace etalon::cli {

// A regular file is written under a temporary name beside its place and renamed by Commit, so that a reader never sees
// a part of it and a failure, or a signal that ends the process, leaves what was there before. Symbolic links are
// followed. What exists and is not a regular file (a device, a pipe) is written directly: a rename would put a file in
// the place of /dev/null.
class OutputFile {
 public:
  OutputFile() = default;
  ~OutputFile();  // removes what was written and not committed
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Finds out where the path leads and whether that can be written, and leaves no trace. Each function returns false
  // with the path and the system's reason in *error.
  bool Prepare(const std::string& path, std::string* error);

  bool prepared() const { return !path_.empty(); }
  bool direct() const { return direct_; }
  bool character_device() const { return direct_ && S_ISCHR(target_stat_.st_mode); }  // /dev/null, for one
  bool SameAs(const OutputFile& other) const;
  bool IsFile(const std::string& path) const;
  // Where something else goes, reports or what is said meanwhile; false for a character device, since of /dev/null
  // nothing is lost.
  bool IsStandardOutput() const;
  bool IsStandardError() const;

  // All that the file shall hold, in two pieces.
  bool Write(const std::string& head, const void* data, size_t data_bytes, std::string* error);
  bool Commit(std::string* error);
  // Removes a committed file unless it took the place of another, whose content is gone.
  void Withdraw();

 private:
  bool Fail(const char* what, int reason, std::string* error) const;
  bool IsOpenAs(int descriptor) const;
  int MakeTemporary();  // its descriptor, or -1 with errno
  void DropTemporary();

  std::string path_;       // as given
  std::string target_;     // after all symbolic links
  std::string temporary_;  // empty if there is none
  bool exists_ = false;
  bool direct_ = false;
  bool committed_ = false;
  struct stat target_stat_ = {};  // if it exists
  struct stat folder_stat_ = {};  // of the folder it is in
};

// Prepares a file that an option names, and sees that nothing is lost by it: input_that_is(file) names the input that
// it is, if any, and it is neither where reports go nor where errors do. An exit code; *error begins with the option.
int PrepareOutput(const std::string& option, const std::string& path,
                  const std::function<std::string(const OutputFile&)>& input_that_is, OutputFile* file,
                  std::string* error);

// Where nobody reads and where a file may not grow, writing fails from here on, instead of ending the process with
// files half written.
void LetWritesFail();

}  // namespace etalon::cli

#endif  // ETALON_CLI_OUTPUT_FILE_H_
