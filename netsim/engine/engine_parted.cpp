// The engine once more, for runs over several threads.
#define NETSIM_BUILD parted
#define NETSIM_SKIPS false
#define NETSIM_PARTS true
#include "engine.cpp"
