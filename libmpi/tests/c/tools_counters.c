// ranks 2
#include "check.h"

/* Performance variables: each handle counts from its own start; levels and peaks are those of the process. The scope of
   control variables is that of a tool that has come too late to change them. */

enum { BYTES = 40 };

static MPI_T_pvar_session session;
static MPI_T_pvar_handle level;

static MPI_T_pvar_handle open_variable(const char *name, int class, int continuous) {
    MPI_T_pvar_handle handle;
    int index, verbosity, found, bind, readonly, is_continuous, atomic, count = 0, described = 0;
    MPI_Datatype datatype;
    MPI_T_enum type;
    CHECK(MPI_T_pvar_get_index(name, class, &index) == MPI_SUCCESS);
    CHECK(MPI_T_pvar_get_info(index, NULL, NULL, &verbosity, &found, &datatype, &type, NULL, &described, &bind, &readonly,
                              &is_continuous, &atomic) == MPI_SUCCESS);
    CHECK(found == class && datatype == MPI_UNSIGNED_LONG_LONG && type == MPI_T_ENUM_NULL && described > 1);
    CHECK(verbosity == MPI_T_VERBOSITY_USER_DETAIL && bind == MPI_T_BIND_NO_OBJECT);
    CHECK(readonly == continuous && is_continuous == continuous && atomic == !continuous);
    CHECK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count) == MPI_SUCCESS && count == 1);
    return handle;
}

static unsigned long long value(MPI_T_pvar_handle handle) {
    unsigned long long value = ~0ull;
    CHECK(MPI_T_pvar_read(session, handle, &value) == MPI_SUCCESS);
    return value;
}

/* Rank 0 sends a message that rank 1 did not expect. */
static void message(void) {
    char data[BYTES] = {0};
    if (rank == 0) {
        MPI_Send(data, BYTES, MPI_BYTE, 1, 5, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    } else {
        MPI_Status status;
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Probe(0, 5, MPI_COMM_WORLD, &status);
        CHECK(value(level) >= BYTES);
        MPI_Recv(data, BYTES, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

int main(void) {
    MPI_T_pvar_session other;
    MPI_T_pvar_handle bytes, again, unexpected, peak;
    unsigned long long before, number = 1000;
    int provided, index, scope, is_sender;
    start();
    is_sender = rank == 0;
    CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS);
    CHECK(MPI_T_cvar_get_info(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, &scope) == MPI_SUCCESS);
    CHECK(scope == MPI_T_SCOPE_READONLY);
    CHECK(MPI_T_pvar_session_create(&session) == MPI_SUCCESS && MPI_T_pvar_session_create(&other) == MPI_SUCCESS);
    bytes = open_variable("eager_bytes", MPI_T_PVAR_CLASS_AGGREGATE, 0);
    again = open_variable("eager_bytes", MPI_T_PVAR_CLASS_AGGREGATE, 0);
    unexpected = open_variable("eager_unexpected", MPI_T_PVAR_CLASS_COUNTER, 0);
    level = open_variable("unexpected_bytes", MPI_T_PVAR_CLASS_LEVEL, 1);
    peak = open_variable("unexpected_bytes_peak", MPI_T_PVAR_CLASS_HIGHWATERMARK, 1);
    CHECK(MPI_T_pvar_get_index("eager_bytes", MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_T_ERR_INVALID_NAME);
    MPI_Barrier(MPI_COMM_WORLD);

    CHECK(MPI_T_pvar_start(session, bytes) == MPI_SUCCESS && MPI_T_pvar_start(session, bytes) == MPI_SUCCESS);
    CHECK(MPI_T_pvar_start(session, unexpected) == MPI_SUCCESS);
    CHECK(value(bytes) == 0 && value(again) == 0);
    message();
    before = value(bytes);
    CHECK(before >= (is_sender ? BYTES : 0) && value(again) == 0);
    CHECK(value(unexpected) >= !is_sender && (is_sender || value(peak) >= BYTES));
    CHECK(MPI_T_pvar_stop(session, bytes) == MPI_SUCCESS);
    message();
    CHECK(value(bytes) == before);
    CHECK(MPI_T_pvar_start(session, bytes) == MPI_SUCCESS);
    message();
    CHECK(value(bytes) >= before + (is_sender ? BYTES : 0));

    before = value(bytes);
    CHECK(MPI_T_pvar_readreset(session, bytes, &number) == MPI_SUCCESS && number == before && value(bytes) == 0);
    number = 1000;
    CHECK(MPI_T_pvar_write(session, bytes, &number) == MPI_SUCCESS && value(bytes) == 1000);
    CHECK(MPI_T_pvar_reset(session, bytes) == MPI_SUCCESS && value(bytes) == 0);
    CHECK(MPI_T_pvar_write(session, level, &number) == MPI_T_ERR_PVAR_NO_WRITE);
    CHECK(MPI_T_pvar_reset(session, peak) == MPI_T_ERR_PVAR_NO_WRITE);
    CHECK(MPI_T_pvar_start(session, level) == MPI_T_ERR_PVAR_NO_STARTSTOP);
    CHECK(MPI_T_pvar_stop(session, peak) == MPI_T_ERR_PVAR_NO_STARTSTOP);
    CHECK(MPI_T_pvar_readreset(session, peak, &number) == MPI_T_ERR_PVAR_NO_ATOMIC);
    CHECK(MPI_T_pvar_read(session, bytes, NULL) == MPI_T_ERR_INVALID);

    /* All that can be started, stopped and reset. */
    CHECK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES) == MPI_SUCCESS);
    message();
    CHECK(value(again) >= (is_sender ? BYTES : 0));
    CHECK(MPI_T_pvar_stop(session, MPI_T_PVAR_ALL_HANDLES) == MPI_SUCCESS);
    CHECK(MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES) == MPI_SUCCESS && value(again) == 0 && value(bytes) == 0);
    CHECK(MPI_T_pvar_start(other, MPI_T_PVAR_ALL_HANDLES) == MPI_SUCCESS);
    CHECK(MPI_T_pvar_read(session, MPI_T_PVAR_ALL_HANDLES, &number) == MPI_T_ERR_INVALID_HANDLE);

    /* A handle belongs to its session, and ends with it. */
    CHECK(MPI_T_pvar_read(other, bytes, &number) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_pvar_handle_free(other, &bytes) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_pvar_handle_free(session, &bytes) == MPI_SUCCESS && bytes == MPI_T_PVAR_HANDLE_NULL);
    CHECK(MPI_T_pvar_read(session, bytes, &number) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_pvar_session_free(&other) == MPI_SUCCESS);
    CHECK(MPI_T_pvar_session_free(&other) == MPI_T_ERR_INVALID_SESSION);
    CHECK(MPI_T_pvar_handle_alloc(other, 0, NULL, &bytes, NULL) == MPI_T_ERR_INVALID_SESSION);
    CHECK(MPI_T_pvar_handle_alloc(session, -1, NULL, &bytes, NULL) == MPI_T_ERR_INVALID_INDEX);

    /* What was counted stays after the job. */
    CHECK(MPI_T_pvar_start(session, again) == MPI_SUCCESS);
    message();
    MPI_Finalize();
    CHECK(value(again) >= (is_sender ? BYTES : 0));
    CHECK(MPI_T_finalize() == MPI_SUCCESS && MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS);
    CHECK(MPI_T_pvar_start(session, again) == MPI_T_ERR_INVALID_SESSION);
    CHECK(MPI_T_finalize() == MPI_SUCCESS);
    return 0;
}
