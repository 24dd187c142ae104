# build pf against build dir $1
g++ -O2 -std=c++17 -I/work/main pf.cc $1/libetalon_internal.a -o pf_$2
