// A program over a chain of three libraries.
#include <stdio.h>

int link_of_chain(void);
int cuChain(void);

int main(void) {
    printf("%d %d\n", link_of_chain(), cuChain());
    return 0;
}
