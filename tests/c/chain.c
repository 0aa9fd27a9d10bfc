// One link of a chain of libraries: `link_of_chain` (and a name that begins like CUDA's) adds one to what the next library
// in the order of the loader says. The last link, compiled with -DLAST, says 1.
#define _GNU_SOURCE
#include <dlfcn.h>

#ifdef LAST
#define NEXT(name) 1
#else
#define NEXT(name) (1 + ((int (*)(void))dlsym(RTLD_NEXT, name))())
#endif

int link_of_chain(void) { return NEXT("link_of_chain"); }

int cuChain(void) { return NEXT("cuChain"); }
