/* Random programs of four threads under MPI_THREAD_MULTIPLE: threads SECONDS [SEED].

   Thread t of each rank does the same sequence of random steps as thread t of all other ranks: it takes all choices from
   a generator that they share. A step is an exchange with a random partner over a random shift, in random forms of
   sending and receiving, or a collective. All contents are checked. The communicators are those of each thread alone,
   and one of all threads, where the tags tell them apart. */
#include "../check.h"
#include <pthread.h>
#include <stdint.h>
#define THREADS 4
#define MOST (1 << 15)
#define LONGEST (1 << 17)

static double seconds;
static uint64_t seed;
static double begin;
static MPI_Comm shared, own[THREADS];

struct thread {
    int number;
    uint64_t common, local;
    long steps;
    unsigned char *out, *in;
};

static uint64_t next(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int below(uint64_t *state, int end) {
    return (int)(next(state) % (uint64_t)end);
}

#define FAIL(thread, what)                                                                              \
    do {                                                                                                \
        fprintf(stderr, "seed %llu, rank %d of %d, thread %d, step %ld, line %d: %s\n",                  \
                (unsigned long long)seed, rank, size, (thread)->number, (thread)->steps, __LINE__, what); \
        MPI_Abort(MPI_COMM_WORLD, 98);                                                                  \
    } while (0)
#define HOLDS(thread, condition)                       \
    do {                                               \
        if (!(condition)) FAIL(thread, #condition);    \
    } while (0)

static void fill(unsigned char *bytes, int len, uint64_t from) {
    for (int i = 0; i < len; i++) bytes[i] = (unsigned char)(from * 31 + (uint64_t)i * 7 + (uint64_t)(i >> 8));
}

static void compare(struct thread *self, const unsigned char *bytes, int len, uint64_t from) {
    for (int i = 0; i < len; i++)
        if (bytes[i] != (unsigned char)(from * 31 + (uint64_t)i * 7 + (uint64_t)(i >> 8))) FAIL(self, "wrong contents");
}

/* Waits in a random way, and returns the status of the first request. */
static MPI_Status finish(struct thread *self, int count, MPI_Request *requests) {
    MPI_Status statuses[4], first;
    int indices[4], done = 0, flag, index;
    memset(&first, 0, sizeof first);
    switch (below(&self->local, 5)) {
    case 0:
        MPI_Waitall(count, requests, statuses);
        return statuses[0];
    case 1:
        do MPI_Testall(count, requests, &flag, statuses); while (!flag);
        return statuses[0];
    case 2:
        for (int i = 0; i < count; i++) {
            MPI_Waitany(count, requests, &index, &statuses[0]);
            HOLDS(self, index != MPI_UNDEFINED);
            if (index == 0) first = statuses[0];
        }
        return first;
    case 3:
        while (done < count) {
            int some;
            MPI_Testsome(count, requests, &some, indices, statuses);
            HOLDS(self, some != MPI_UNDEFINED);
            for (int i = 0; i < some; i++)
                if (indices[i] == 0) first = statuses[i];
            done += some;
        }
        return first;
    default:
        for (int i = 0; i < count; i++) {
            do MPI_Test(&requests[i], &flag, &statuses[i]); while (!flag);
        }
        return statuses[0];
    }
}

static MPI_Request begin_send(struct thread *self, int len, int dest, int tag, MPI_Comm comm) {
    MPI_Request request;
    switch (below(&self->local, 5)) {
    case 0: MPI_Isend(self->out, len, MPI_BYTE, dest, tag, comm, &request); break;
    case 1: MPI_Issend(self->out, len, MPI_BYTE, dest, tag, comm, &request); break;
    case 2: MPI_Ibsend(self->out, len, MPI_BYTE, dest, tag, comm, &request); break;
    case 3: MPI_Isend_c(self->out, len, MPI_UNSIGNED_CHAR, dest, tag, comm, &request); break;
    default:
        MPI_Send_init(self->out, len, MPI_BYTE, dest, tag, comm, &request);
        MPI_Start(&request);
    }
    return request;
}

/* Ends a request, which may be persistent. */
static void end(MPI_Request *request) {
    if (*request != MPI_REQUEST_NULL) MPI_Request_free(request);
}

static void receive(struct thread *self, int len, int source, int tag, MPI_Comm comm, MPI_Request sending) {
    /* A fast rank may be some steps ahead, so only one of source and tag can be any. */
    int any = comm == shared ? 0 : below(&self->local, 3), flag, count = -1;
    int from = any == 1 ? MPI_ANY_SOURCE : source, asked = any == 2 ? MPI_ANY_TAG : tag;
    MPI_Request requests[2] = {MPI_REQUEST_NULL, sending};
    MPI_Message message;
    MPI_Status status;
    switch (below(&self->local, 6)) {
    case 0:
        MPI_Recv(self->in, len, MPI_BYTE, from, asked, comm, &status);
        break;
    case 1:
        MPI_Probe(from, asked, comm, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        HOLDS(self, count == len);
        MPI_Recv(self->in, count, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, comm, &status);
        break;
    case 2:
        MPI_Mprobe(from, asked, comm, &message, &status);
        MPI_Mrecv(self->in, len, MPI_BYTE, &message, &status);
        break;
    case 3:
        do MPI_Improbe(from, asked, comm, &flag, &message, &status); while (!flag);
        MPI_Imrecv(self->in, len, MPI_BYTE, &message, &requests[0]);
        status = finish(self, 2, requests);
        break;
    case 4:
        MPI_Recv_init(self->in, MOST, MPI_BYTE, from, asked, comm, &requests[0]);
        MPI_Start(&requests[0]);
        status = finish(self, 2, requests);
        end(&requests[0]);
        break;
    default:
        MPI_Irecv(self->in, len, MPI_BYTE, from, asked, comm, &requests[0]);
        status = finish(self, 2, requests);
    }
    HOLDS(self, status.MPI_SOURCE == source && status.MPI_TAG == tag);
    MPI_Get_count(&status, MPI_BYTE, &count);
    HOLDS(self, count == len);
    if (requests[1] != MPI_REQUEST_NULL) MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    end(&requests[1]);
}

static int random_length(struct thread *self) {
    int most = 1 << below(&self->common, 16);
    return below(&self->common, most + 1) > MOST ? MOST : below(&self->common, most);
}

/* Each rank sends to the one at a distance, and receives from the one at the same distance on the other side. */
static void shift(struct thread *self) {
    int distance = below(&self->common, size), len = random_length(self);
    MPI_Comm comm = below(&self->common, 3) ? own[self->number] : shared;
    int tag = (int)(THREADS * (self->steps % 10000)) + self->number;
    int dest = (rank + distance) % size, source = (rank + size - distance) % size;
    uint64_t label = next(&self->common);
    MPI_Request request;
    MPI_Status status;
    fill(self->out, len, label + (uint64_t)rank);
    switch (below(&self->common, 6)) {
    case 0:
        MPI_Sendrecv(self->out, len, MPI_BYTE, dest, tag, self->in, len, MPI_BYTE, source, tag, comm, &status);
        break;
    case 1:
        memcpy(self->in, self->out, (size_t)len);
        MPI_Sendrecv_replace(self->in, len, MPI_BYTE, dest, tag, source, tag, comm, &status);
        break;
    case 2:
        MPI_Isendrecv(self->out, len, MPI_BYTE, dest, tag, self->in, len, MPI_BYTE, source, tag, comm, &request);
        MPI_Wait(&request, &status);
        break;
    default:
        receive(self, len, source, tag, comm, begin_send(self, len, dest, tag, comm));
        status.MPI_SOURCE = source;
    }
    HOLDS(self, status.MPI_SOURCE == source);
    compare(self, self->in, len, label + (uint64_t)source);
}

/* A receive that is cancelled, or gets a message of this rank. */
static void cancelled(struct thread *self) {
    int flag, in = -1, out = rank, tag = 1000 + self->number;
    MPI_Request request;
    MPI_Status status;
    MPI_Irecv(&in, 1, MPI_INT, rank, tag, shared, &request);
    if (below(&self->common, 2)) {
        MPI_Send(&out, 1, MPI_INT, rank, tag, shared);
        MPI_Wait(&request, &status);
        HOLDS(self, in == rank);
    } else {
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &flag);
        HOLDS(self, flag && in == -1);
    }
}

static void partitions(struct thread *self) {
    int distance = below(&self->common, size), parts = 1 + below(&self->common, 8), each = below(&self->common, 64);
    int dest = (rank + distance) % size, source = (rank + size - distance) % size;
    uint64_t label = next(&self->common);
    MPI_Request requests[2];
    MPI_Comm comm = own[self->number];
    fill(self->out, parts * each, label + (uint64_t)rank);
    MPI_Precv_init(self->in, parts, each, MPI_BYTE, source, 5, comm, MPI_INFO_NULL, &requests[0]);
    MPI_Psend_init(self->out, parts, each, MPI_BYTE, dest, 5, comm, MPI_INFO_NULL, &requests[1]);
    MPI_Startall(2, requests);
    for (int i = parts - 1; i >= 0; i--) MPI_Pready(i, requests[1]);
    finish(self, 2, requests);
    compare(self, self->in, parts * each, label + (uint64_t)source);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

static void collective(struct thread *self) {
    int64_t mine = rank + 1, sum = -1;
    MPI_Request request;
    switch (below(&self->common, 3)) {
    case 0: MPI_Barrier(own[self->number]); break;
    case 1:
        MPI_Ibarrier(own[self->number], &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        break;
    default:
        MPI_Allreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, own[self->number]);
        HOLDS(self, sum == (int64_t)size * (size + 1) / 2);
    }
}

static int go_on(struct thread *self) {
    int mine = MPI_Wtime() - begin < seconds, all = -1;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, own[self->number]);
    return all;
}

static void *run(void *argument) {
    struct thread *self = argument;
    do {
        for (int i = 0; i < 20; i++, self->steps++) {
            int what = below(&self->common, 12);
            if (what == 0) collective(self);
            else if (what == 1) cancelled(self);
            else if (what == 2) partitions(self);
            else shift(self);
        }
    } while (go_on(self));
    return NULL;
}

int main(int argc, char **argv) {
    int provided;
    pthread_t handles[THREADS];
    struct thread threads[THREADS];
    seconds = argc > 1 ? atof(argv[1]) : 1;
    seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &shared);
    MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0);
    for (int i = 0; i < THREADS; i++) MPI_Comm_dup(MPI_COMM_WORLD, &own[i]);
    begin = MPI_Wtime();
    for (int i = 0; i < THREADS; i++) {
        threads[i] = (struct thread){.number = i, .common = seed * 1000 + (uint64_t)i};
        threads[i].local = threads[i].common * 77 + (uint64_t)rank;
        threads[i].out = malloc(MOST);
        threads[i].in = malloc(MOST);
        pthread_create(&handles[i], NULL, run, &threads[i]);
    }
    long steps = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(handles[i], NULL);
        steps += threads[i].steps;
        free(threads[i].out);
        free(threads[i].in);
        MPI_Comm_free(&own[i]);
    }
    void *address;
    int length;
    MPI_Buffer_detach(&address, &length);
    MPI_Comm_free(&shared);
    if (rank == 0) printf("%ld steps\n", steps);
    MPI_Finalize();
    return 0;
}
