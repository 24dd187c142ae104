// rows.h: the rows of the table, a function for each file of them. `target` is the kernel table they run on.
#ifndef ETALON_BENCH_ROWS_H_
#define ETALON_BENCH_ROWS_H_

#include <string>
#include <vector>

#include "bench/support/subject.h"

namespace etalon::bench {

void AddLimitRows(const std::string& target, const Sizes& sizes, std::vector<Row>* rows);
void AddPrefillRows(const std::string& target, const Sizes& sizes, std::vector<Row>* rows);
void AddExtrasRows(const std::string& target, const Sizes& sizes, std::vector<Row>* rows);
void AddDecodeRows(const std::string& target, const Sizes& sizes, std::vector<Row>* rows);
void AddPagedRows(const std::string& target, const Sizes& sizes, std::vector<Row>* rows);
void AddPrimitiveRows(const std::string& target, const Sizes& sizes, std::vector<Row>* rows);
void AddOverheadRows(const std::string& target, const Sizes& sizes, std::vector<Row>* rows);
void AddCaseRows(const std::string& target, const Sizes& sizes, std::vector<Row>* rows);

}  // namespace etalon::bench

#endif  // ETALON_BENCH_ROWS_H_
