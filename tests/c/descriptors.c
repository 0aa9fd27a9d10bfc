// Gives the number of a descriptor that is not its own, but of a tool in its process, to a file of its own, and goes on: what
// it has must stay its own.
//
// Arguments: the file; "listen" to be the collector itself, at GPUMEM_SOCKET; "quiet" to close stderr.
#include "cuda.h"
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { DESCRIPTORS = 1024 };

static int mine, taken;

static int listen_as_collector(void) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    strncpy(at.sun_path, getenv("GPUMEM_SOCKET"), sizeof at.sun_path - 1);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    OK(bind(listener, (struct sockaddr *)&at, sizeof at));
    OK(listen(listener, 1));
    return listener;
}

static int is_open(int number) { return fcntl(number, F_GETFD) >= 0; }

// Waits until a spool file has been begun: until then the other descriptor may move.
static void wait_for_spool(const char *before) {
    for (struct stat file;; sched_yield())
        for (int number = 3; number < DESCRIPTORS; number++)
            if (!before[number] && !fstat(number, &file) && S_ISREG(file.st_mode) && file.st_size > 8)
                return;
}

// Whether the number is still that of the program's file, and can be written to.
static void check(const char *who) {
    struct stat own, there;
    OK(fstat(mine, &own));
    int same = !fstat(taken, &there) && own.st_dev == there.st_dev && own.st_ino == there.st_ino;
    printf("%s: %s\n", who, !same ? "lost" : write(taken, "mine\n", 5) == 5 ? "kept" : "not writable");
    fflush(stdout);
}

static void check_at_exit(void) { check("at exit"); }

int main(int count, char **words) {
    // Before the first allocation: it runs after everything that was registered later.
    atexit(check_at_exit);
    int is_collector = 0;
    mine = open(words[1], O_CREAT | O_WRONLY | O_APPEND, 0600);
    for (int i = 2; i < count; i++) {
        is_collector |= !strcmp(words[i], "listen");
        if (!strcmp(words[i], "quiet"))
            close(STDERR_FILENO);
    }
    int listener = is_collector ? listen_as_collector() : -1;
    cuda_start();
    static char before[DESCRIPTORS];
    for (int number = 0; number < DESCRIPTORS; number++)
        before[number] = is_open(number);

    CUdeviceptr address = 0;
    OK(cuMemAlloc_v2(&address, 1000));
    int connection = -1;
    if (is_collector) {
        char first;
        connection = accept(listener, NULL, NULL);
        // What it says comes after it has its descriptor where it stays.
        if (recv(connection, &first, 1, 0) != 1)
            return 74;
    } else {
        wait_for_spool(before);
    }
    for (int number = 3; number < DESCRIPTORS; number++)
        if (!before[number] && number != connection && is_open(number))
            taken = number;
    if (!taken || dup2(mine, taken) != taken)
        return 75;

    pid_t child = fork();
    if (!child) {
        check("child");
        OK(cuMemAlloc_v2(&address, 7));
        check("child that allocates");
        _exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status)
        return 76;
    check("parent");
    OK(cuMemAlloc_v2(&address, 1000));
    return 0;
}
