// The engine once more, with exact skip.
#define NETSIM_BUILD skipping
#define NETSIM_SKIPS true
#define NETSIM_PARTS false
#include "engine.cpp"
