// Looks up names that end where a page does, with nothing mapped behind it: whoever reads past a name's end dies of it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

int main(void) {
    const size_t page = 4096;
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || munmap(pages + page, page))
        return 70;
    const char *names[] = {"", "c", "cu", "cuMemAlloc_v2", "x", "getpid"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *name = pages + page - strlen(names[i]) - 1;
        strcpy(name, names[i]);
        int found = dlsym(RTLD_DEFAULT, name) != NULL;
        printf("\"%s\" %d, versioned %d\n", name, found, dlvsym(RTLD_DEFAULT, name, "GLIBC_2.2.5") != NULL);
    }
    return 0;
}
