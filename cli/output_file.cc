#include "cli/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "cli/exit_code.h"
#include "cli/text.h"

namespace etalon::cli {
namespace {

constexpr int kMaxLinks = 40;  // as many as Linux follows
constexpr size_t kPieceBytes = size_t{1} << 24;

std::string FolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::string NameOf(const std::string& path) { return std::filesystem::path(path).filename().string(); }

bool SameInode(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

// Follows links that lead nowhere too: the file must then be made where the last one points. 0 or an error number.
int FollowLinks(std::string* path) {
  for (int links = 0; links <= kMaxLinks; ++links) {
    struct stat info;
    if (lstat(path->c_str(), &info) != 0) return errno == ENOENT ? 0 : errno;
    if (!S_ISLNK(info.st_mode)) return 0;
    // What a link of /proc/self/fd says need not be a path ("pipe:[7]"); the system follows it all the same.
    if (stat(path->c_str(), &info) == 0 && !S_ISREG(info.st_mode)) return 0;
    char to[PATH_MAX];
    const ssize_t length = readlink(path->c_str(), to, sizeof to);
    if (length < 0) return errno;
    const std::filesystem::path next(std::string(to, static_cast<size_t>(length)));
    *path = next.is_absolute() ? next.string() : (std::filesystem::path(*path).parent_path() / next).string();
  }
  return ELOOP;
}

// Temporary files that a signal's handler removes; each name is whole before its flag is set.
constexpr int kMaxTemporaries = 128;  // all inputs that `check --worst` saves for a few tables, and its report
struct Doomed {
  volatile std::sig_atomic_t set = 0;
  char path[PATH_MAX];
} doomed[kMaxTemporaries];

// A large file takes seconds to write, and somebody who gives up then should not find it later.
void RemoveAndDie(int signal) {
  for (const Doomed& file : doomed) {
    if (file.set != 0) unlink(file.path);
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void Doom(const std::string& path) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const auto before = std::signal(signal, RemoveAndDie);
    if (before == SIG_IGN) std::signal(signal, SIG_IGN);  // nohup, for one
  }
  for (Doomed& file : doomed) {
    if (file.set != 0 || path.size() >= sizeof file.path) continue;
    std::memcpy(file.path, path.c_str(), path.size() + 1);
    file.set = 1;
    return;
  }
}

void Spare(const std::string& path) {
  for (Doomed& file : doomed) {
    if (file.set != 0 && path == file.path) file.set = 0;
  }
}

// 0 or an error number.
int WriteAll(int file, const char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t written = write(file, data, std::min(bytes, kPieceBytes));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    data += written;
    bytes -= static_cast<size_t>(written);
  }
  return 0;
}

// The only way to ask for it; the caller's threads make no files meanwhile.
mode_t Umask() {
  const mode_t mask = umask(0);
  umask(mask);
  return mask;
}

}  // namespace

OutputFile::~OutputFile() { DropTemporary(); }

void OutputFile::DropTemporary() {
  if (temporary_.empty()) return;
  unlink(temporary_.c_str());
  Spare(temporary_);
  temporary_.clear();
}

bool OutputFile::Fail(const char* what, int reason, std::string* error) const {
  *error = PrintablePath(path_) + ": " + what + ": " + std::strerror(reason);
  return false;
}

int OutputFile::MakeTemporary() {
  // The name is short, because the file's own may be as long as the system allows.
  temporary_ = (std::filesystem::path(FolderOf(target_)) / ".etalon-XXXXXX").string();
  const int file = mkstemp(temporary_.data());
  if (file < 0) {
    const int reason = errno;
    temporary_.clear();
    errno = reason;
  } else {
    Doom(temporary_);
  }
  return file;
}

bool OutputFile::Prepare(const std::string& path, std::string* error) {
  path_ = target_ = path;
  const auto refuse = [&](const char* why) {
    *error = PrintablePath(path_) + ": " + why;
    return false;
  };
  const int reason = FollowLinks(&target_);
  if (reason != 0) return Fail("cannot be written", reason, error);
  exists_ = stat(target_.c_str(), &target_stat_) == 0;
  if (!exists_ && errno != ENOENT) return Fail("cannot be written", errno, error);
  if (exists_ && S_ISDIR(target_stat_.st_mode)) return Fail("cannot be written", EISDIR, error);
  if (!exists_ && NameOf(target_).empty()) return refuse("names a folder, not a file");
  if (exists_ && access(target_.c_str(), W_OK) != 0) return Fail("cannot be written", errno, error);
  if (exists_ && !S_ISREG(target_stat_.st_mode)) {
    direct_ = true;
    if (S_ISCHR(target_stat_.st_mode) || S_ISFIFO(target_stat_.st_mode)) return true;
    return refuse("is neither a file nor a character device nor a pipe");  // a disk, for one
  }
  if (stat(FolderOf(target_).c_str(), &folder_stat_) != 0) return Fail("its folder", errno, error);
  const int file = MakeTemporary();  // permissions alone do not say that the file system takes new files
  if (file < 0) return Fail("no file can be made in its folder", errno, error);
  close(file);
  DropTemporary();
  return true;
}

bool OutputFile::SameAs(const OutputFile& other) const {
  if (exists_ && other.exists_) return SameInode(target_stat_, other.target_stat_);
  return !exists_ && !other.exists_ && SameInode(folder_stat_, other.folder_stat_) &&
         NameOf(target_) == NameOf(other.target_);
}

bool OutputFile::IsFile(const std::string& path) const {
  struct stat file;
  return exists_ && stat(path.c_str(), &file) == 0 && SameInode(target_stat_, file);
}

bool OutputFile::IsOpenAs(int descriptor) const {
  struct stat open;
  return exists_ && fstat(descriptor, &open) == 0 && SameInode(target_stat_, open) && !S_ISCHR(open.st_mode);
}

bool OutputFile::IsStandardOutput() const { return IsOpenAs(STDOUT_FILENO); }
bool OutputFile::IsStandardError() const { return IsOpenAs(STDERR_FILENO); }

bool OutputFile::Write(const std::string& head, const void* data, size_t data_bytes, std::string* error) {
  const int file = direct_ ? open(target_.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC) : MakeTemporary();
  if (file < 0) return Fail("cannot be written", errno, error);
  int reason = WriteAll(file, head.data(), head.size());
  if (reason == 0) reason = WriteAll(file, static_cast<const char*>(data), data_bytes);
  if (!direct_) {
    const mode_t mode = exists_ ? target_stat_.st_mode & 0777 : 0666 & ~Umask();
    if (reason == 0 && fchmod(file, mode) != 0) reason = errno;
    // Some file systems find out only now that they are full. Others cannot do this and say EINVAL.
    if (reason == 0 && fsync(file) != 0 && errno != EINVAL) reason = errno;
  }
  if (close(file) != 0 && reason == 0) reason = errno;
  return reason == 0 || Fail("could not be written", reason, error);
}

bool OutputFile::Commit(std::string* error) {
  if (direct_) return true;
  if (rename(temporary_.c_str(), target_.c_str()) != 0) return Fail("could not be put in its place", errno, error);
  Spare(temporary_);
  temporary_.clear();
  committed_ = true;
  return true;
}

void OutputFile::Withdraw() {
  if (committed_ && !exists_) unlink(target_.c_str());
}

int PrepareOutput(const std::string& option, const std::string& path,
                  const std::function<std::string(const OutputFile&)>& input_that_is, OutputFile* file,
                  std::string* error) {
  if (!file->Prepare(path, error)) {
    *error = option + " " + *error;
    return kExitBadInput;
  }
  const auto refuse = [&](const std::string& what) {
    *error = option + " " + PrintablePath(path) + " is " + what;
    return kExitUsage;
  };
  const std::string input = input_that_is(*file);
  if (!input.empty()) return refuse("the same file as the input " + input);
  if (file->IsStandardOutput()) return refuse("the standard output, where the report goes");
  if (file->IsStandardError()) return refuse("the standard error");
  return kExitOk;
}

void LetWritesFail() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace etalon::cli
