#include "cli/check/full.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "arch/dispatch.h"
#include "cli/check/families.h"
#include "cli/check/family_sum.h"
#include "cli/check/kernel_job.h"

namespace etalon::cli {
namespace {

constexpr const char* kRange = "range";  // the family of functions of one number
constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

bool Asked(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

Wanted WantedOf(const FullOptions& options) {
  return [&options](const std::string& kernel) { return Asked(options.kernels, kernel); };
}

size_t Position(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

std::vector<NamedArray> FileOf(const KernelJob& job, const KernelOutput& output, size_t row) {
  std::vector<NamedArray> arrays = job.input(row);
  const size_t n = job.truth.row_size();
  const std::vector<int64_t> shape = arrays[0].shape.size() == 3 && n > 1
                                         ? std::vector<int64_t>{1, 1, static_cast<int64_t>(n)}
                                         : std::vector<int64_t>{static_cast<int64_t>(n)};
  std::vector<double> exact;
  std::vector<float> narrow;
  for (size_t i = 0; i < n; ++i) {
    exact.push_back(job.truth.value[row * n + i].hi);
    narrow.push_back(static_cast<float>(output.values[row * n + i]));
  }
  if (job.output_is_f32) {
    arrays.push_back(MakeNamedArray("out", NpyType::kF32, shape, narrow.data()));
  } else {
    arrays.push_back(MakeNamedArray("out", NpyType::kF64, shape, output.values.data() + row * n));
  }
  arrays.push_back(MakeNamedArray("exact", NpyType::kF64, shape, exact.data()));
  return arrays;
}

class Measurement {
 public:
  Measurement(const std::vector<std::string>& tables, const FullOptions& options)
      : options_(options), sums_(tables.size()), worst_(tables.size()) {
    for (const std::string& name : tables) {
      tables_.emplace_back();
      if (ChooseTable(name.c_str(), &tables_.back()) != TableChoice::kOk) throw std::logic_error("no table " + name);
    }
  }

  // One truth, all tables.
  void Run(const KernelJob& job, const std::string& family, size_t family_index) {
    const Key key = {Position(FullKernelNames(), job.kernel), family_index};
    uint64_t first_hash = 0;
    for (size_t t = 0; t < tables_.size(); ++t) {
      const KernelOutput output = job.run(tables_[t]);
      FamilySum& sum = sums_[t].try_emplace(key, job.kernel, family).first->second;
      const auto [row, ulp] = sum.Add(job.truth, output);
      if (t == 0) first_hash = output.hash;
      if (!options_.keep_worst || (t > 0 && output.hash == first_hash)) continue;
      WorstInput& worst = worst_[t][key.first];
      if (ulp <= worst.ulp) continue;
      worst = {job.kernel, family, ulp, FileOf(job, output, row)};
    }
  }

  std::vector<FullResult> Results() const {
    std::vector<FullResult> results(tables_.size());
    for (size_t t = 0; t < tables_.size(); ++t) {
      for (const auto& [key, sum] : sums_[t]) results[t].errors.push_back(sum.Of());
      for (const auto& [kernel, worst] : worst_[t]) results[t].worst.push_back(worst);
    }
    return results;
  }

 private:
  using Key = std::pair<size_t, size_t>;  // kernel, family

  const FullOptions& options_;
  std::vector<KernelTable> tables_;
  std::vector<std::map<Key, FamilySum>> sums_;
  std::vector<std::map<size_t, WorstInput>> worst_;
};

}  // namespace

std::vector<std::string> FullFamilyNames() {
  std::vector<std::string> names;
  for (const Family family : kFamilies) names.push_back(FamilyName(family));
  names.push_back(kRange);
  return names;
}

std::vector<std::string> FullKernelNames() {
  std::vector<std::string> names = FamilyKernels();
  names.insert(names.end(), FunctionKernels().begin(), FunctionKernels().end());
  return names;
}

bool MeasuresAnything(const FullOptions& options) {
  const auto any_of = [&](const std::vector<std::string>& kernels) {
    return std::any_of(kernels.begin(), kernels.end(),
                       [&](const std::string& kernel) { return Asked(options.kernels, kernel); });
  };
  const std::vector<std::string> families = FullFamilyNames();
  return std::any_of(families.begin(), families.end(), [&](const std::string& family) {
    return Asked(options.families, family) && any_of(family == kRange ? FunctionKernels() : FamilyKernels());
  });
}

bool HasInputs(const FullOptions& options, std::string* error) {
  if (!Asked(options.families, FamilyName(Family::kReal))) return true;  // all others are made of nothing
  for (const DType type : kTypes) {
    std::vector<FamilyCase> cases;
    if (MeasuresType(type, WantedOf(options)) && !MakeFamily(Family::kReal, type, &cases, error)) return false;
  }
  return true;
}

double FullWork(const FullOptions& options) {
  double work = 0.0;
  for (const std::string& name : FullFamilyNames()) work += Asked(options.families, name) ? 1.0 : 0.0;
  return work;
}

bool MeasureInFull(const std::vector<std::string>& tables, const FullOptions& options, Progress* progress,
                   std::vector<FullResult>* results, std::string* error) {
  Measurement measurement(tables, options);
  const Wanted wanted = WantedOf(options);
  const std::vector<std::string> names = FullFamilyNames();
  for (size_t i = 0; i < names.size(); ++i) {
    if (!Asked(options.families, names[i])) continue;
    progress->Say("double-double truth: " + names[i]);
    if (names[i] == kRange) {
      for (const KernelJob& job : FunctionJobs(wanted)) measurement.Run(job, kRange, i);
    } else {
      for (const DType type : kTypes) {
        std::vector<FamilyCase> cases;
        if (!MeasuresType(type, wanted)) continue;
        if (!MakeFamily(kFamilies[i], type, &cases, error)) return false;
        for (const FamilyCase& c : cases) {
          for (const KernelJob& job : JobsOf(c, type, wanted)) measurement.Run(job, names[i], i);
        }
      }
    }
    progress->Finish(1.0);
  }
  *results = measurement.Results();
  return true;
}

}  // namespace etalon::cli
